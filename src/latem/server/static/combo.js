// A text field with a list of choices below it, as the ARIA authoring practices describe it.

import { counted, freshId, h } from "./dom.js";

const SHOWN = 60; // choices in the list at once; typing narrows them

function matching(options, typed) {
  const wanted = typed.trim().toLowerCase();
  if (!wanted) return options;
  const starts = [];
  const holds = [];
  for (const option of options) {
    const label = option.label.toLowerCase();
    if (label.startsWith(wanted)) starts.push(option);
    else if (label.includes(wanted) || String(option.value).toLowerCase().includes(wanted)) {
      holds.push(option);
    }
  }
  return [...starts, ...holds];
}

/**
 * A searchable choice of one.
 *
 * options() gives the choices: {value, label, symbol, note}. onPick(value) is called for a choice.
 * With `empties` the field is cleared after each pick, to pick several one after the other.
 */
export function combo({ label, options, onPick, placeholder = "", empties = false, hideLabel }) {
  const id = freshId("combo");
  let open = false;
  let active = -1;
  let shown = [];
  let value = null;

  const list = h("ul", { id: `${id}-list`, role: "listbox", "aria-label": label, hidden: true });
  const more = h("p", { class: "combo-more", hidden: true });
  const input = h("input", {
    id, type: "text", role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false",
    "aria-controls": list.id, autocomplete: "off", spellcheck: "false", placeholder,
  });
  const popup = h("div", { class: "combo-popup", hidden: true }, list, more);
  const element = h(
    "div", { class: "combo" },
    h("label", { for: id, class: hideLabel ? "unseen-text" : null }, label),
    input, popup,
  );

  function labelOfValue() {
    return options().find((option) => option.value === value)?.label ?? "";
  }

  function mark(next) {
    active = next;
    [...list.children].forEach((item, index) => {
      item.setAttribute("aria-selected", String(index === active));
      if (index === active) item.scrollIntoView({ block: "nearest" });
    });
    if (active >= 0) input.setAttribute("aria-activedescendant", list.children[active].id);
    else input.removeAttribute("aria-activedescendant");
  }

  function draw(typed) {
    const found = matching(options(), typed);
    shown = found.slice(0, SHOWN);
    list.replaceChildren(...shown.map((option, index) => h(
      "li", {
        role: "option", id: `${id}-${index}`, "aria-selected": "false",
        on: { click: () => pick(option) },
      },
      option.symbol ? h("span", { class: "combo-symbol", "aria-hidden": "true" }, option.symbol) : null,
      h("span", {}, option.label),
      option.note ? h("small", {}, option.note) : null,
    )));
    let hint = "";
    if (!found.length) hint = "Nothing of that name.";
    else if (found.length > SHOWN) hint = `${counted(found.length - SHOWN, "more", "more")}: type on`;
    more.textContent = hint;
    more.hidden = !hint;
    mark(typed.trim() && shown.length ? 0 : -1);
  }

  function setOpen(next) {
    open = next;
    popup.hidden = !open;
    list.hidden = !open || !shown.length;
    input.setAttribute("aria-expanded", String(open && shown.length > 0));
    if (!open) input.removeAttribute("aria-activedescendant");
  }

  function show(typed) {
    draw(typed);
    setOpen(true);
  }

  function close() {
    setOpen(false);
    input.value = empties ? "" : labelOfValue();
  }

  function pick(option) {
    value = empties ? null : option.value;
    setOpen(false);
    input.value = empties ? "" : option.label;
    onPick(option.value);
  }

  popup.addEventListener("mousedown", (event) => event.preventDefault()); // keeps the focus
  input.addEventListener("input", () => show(input.value));
  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => open || show(""));
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!open) show("");
      if (!shown.length) return;
      const step = event.key === "ArrowDown" ? 1 : -1;
      const start = active < 0 && step < 0 ? 0 : active;
      mark((start + step + shown.length) % shown.length);
    } else if (event.key === "Enter" && open) {
      event.preventDefault();
      if (active >= 0) pick(shown[active]);
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });

  return {
    element,
    input,
    get value() {
      return value;
    },
    set value(next) {
      value = next;
      input.value = empties ? "" : labelOfValue();
    },
  };
}
