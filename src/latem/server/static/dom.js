// Small helpers that every view uses: elements, numbers as text, messages.

const SVG = "http://www.w3.org/2000/svg";
let count = 0;

/** An id that no other element of the page has. */
export function freshId(stem) {
  count += 1;
  return `${stem}-${count}`;
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else if (name === "vars") {
      for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element. `on` holds listeners, `vars` custom properties; text is never parsed. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** A push button. */
export function button(text, onClick, properties = {}) {
  return h("button", { type: "button", on: { click: onClick }, ...properties }, text);
}

/** A number between 0 and 1 as a percentage; never "100 %" or "0 %" for what only comes near. */
export function percent(share) {
  if (share === null || share === undefined) return "–";
  const hundred = 100 * share;
  if (hundred === 0) return "0 %";
  if (hundred > 0 && hundred < 0.1) return "< 0.1 %";
  if (hundred < 100 && hundred > 99.9) return "> 99.9 %";
  const digits = hundred < 10 || (hundred > 99 && hundred < 100) ? 1 : 0;
  return `${hundred.toFixed(digits)} %`;
}

/** A number in a few digits, with a true minus sign. */
export function short(number, sign = false) {
  if (number === null || number === undefined) return "–";
  const size = Math.abs(number);
  let text = size.toPrecision(3);
  if (size === 0) text = "0";
  else if (size >= 1000) text = Math.round(size).toLocaleString("en-GB");
  else if (size >= 0.001) text = String(Number(text));
  if (number < 0) return `−${text}`;
  return sign && number > 0 ? `+${text}` : text;
}

/** A count with its noun: "1 class", "1,204 classes". */
export function counted(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en-GB")} ${n === 1 ? one : many}`;
}

export function capital(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : text;
}

/** Names of a table as people write them: "has_bill::cone_like" is "has bill: cone like". */
export function spaced(text) {
  return String(text).replaceAll("::", ": ").replaceAll("_", " ").trim();
}

/** Say something to people who listen to the page. */
export function announce(text) {
  const live = document.getElementById("live");
  if (live) live.textContent = text;
}

/** A place for errors beside the thing they are about. */
export function problemBox() {
  return h("div", { class: "problem", role: "alert" });
}

/** Show what went wrong, or nothing for null. A request that was given up is not an error. */
export function showProblem(box, error) {
  if (error && error.name === "AbortError") return;
  const text = error ? error.message || String(error) : "";
  box.replaceChildren(...(text ? [h("p", {}, text)] : []));
}

/** Call a function when no further call has come for so many milliseconds. */
export function debounce(milliseconds, run) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), milliseconds);
  };
}

/** A chain of requests of which only the last counts: the one before is given up. */
export function latest() {
  let controller = null;
  let closed = false;
  return {
    next() {
      controller?.abort();
      controller = new AbortController();
      if (closed) controller.abort(); // what was begun before the end asks nothing any more
      return controller.signal;
    },
    stop() {
      controller?.abort();
    },
    close() {
      closed = true;
      controller?.abort();
    },
  };
}

/** A group of radio buttons that looks like one switch. */
export function segmented({ legend, options, value, onChange, hideLegend = false }) {
  const name = freshId("segment");
  const inputs = new Map();
  const labels = options.map((option) => {
    const input = h("input", {
      type: "radio", name, value: option.value, disabled: option.disabled,
      on: { change: () => onChange(option.value) },
    });
    input.checked = option.value === value;
    inputs.set(option.value, input);
    const hint = option.hint ? h("small", {}, ` ${option.hint}`) : null;
    return h("label", {}, input, h("span", {}, option.label, hint));
  });
  const element = h(
    "fieldset", { class: "segmented" },
    h("legend", { class: hideLegend ? "unseen-text" : null }, legend),
    h("div", {}, labels),
  );
  return {
    element,
    get value() {
      return [...inputs].find(([, input]) => input.checked)?.[0] ?? null;
    },
    set value(next) {
      if (inputs.has(next)) inputs.get(next).checked = true;
    },
  };
}
