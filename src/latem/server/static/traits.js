// Traits as controls: sliders for numbers and grades, lists for categories.

import { button, counted, debounce, freshId, h, short, spaced } from "./dom.js";

const SHOWN = 60; // single traits shown at once; a button shows more
const BIG = 40; // the first family of at most so many traits starts open

/** Whether two values of a trait are the same. */
export function same(one, other) {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((each) => other.includes(each));
  }
  return one === other;
}

function shownValue(trait, value) {
  if (value === null || value === undefined) return "unknown";
  if (Array.isArray(value)) return value.join(", ") || "none";
  if (trait.kind !== "number") return String(value);
  return trait.unit ? `${short(value)} ${trait.unit}` : short(value);
}

function slider(trait, id, get, set) {
  const ordered = trait.kind === "ordered";
  const output = h("output", { for: id });
  const input = h("input", {
    id, type: "range",
    min: ordered ? 0 : trait.low, max: ordered ? trait.values.length - 1 : trait.high,
    step: ordered ? 1 : trait.step || "any",
    on: {
      input: () => { set(read(), false); paint(); },
      change: () => { set(read(), true); paint(); },
    },
  });
  function read() {
    return ordered ? trait.values[Number(input.value)] : Number(input.value);
  }
  function paint() {
    const value = get();
    const middle = ordered ? (trait.values.length - 1) / 2 : (trait.low + trait.high) / 2;
    const place = ordered ? trait.values.indexOf(value) : value;
    input.value = value === null ? middle : place;
    output.textContent = shownValue(trait, value);
    input.setAttribute("aria-valuetext", output.textContent);
  }
  return { control: [input, output], paint };
}

function list(trait, id, get, set) {
  const select = h(
    "select", { id, on: { change: () => set(select.value, true) } },
    trait.values.map((value) => h("option", { value }, value)),
  );
  return { control: [select], paint: () => { select.value = get() ?? ""; } };
}

function boxes(trait, id, get, set) {
  const inputs = trait.values.map((value) => h("input", {
    type: "checkbox", value, on: { change: () => set(inputs.filter((each) => each.checked).map((each) => each.value), true) },
  }));
  const group = h(
    "div", { class: "boxes", role: "group", id, "aria-label": spaced(trait.label) },
    inputs.map((input) => h("label", {}, input, spaced(input.value))),
  );
  return {
    control: [group],
    paint: () => inputs.forEach((each) => { each.checked = (get() ?? []).includes(each.value); }),
  };
}

/**
 * The traits of a class as controls.
 *
 * value(trait) gives a trait's value now, change(trait, value, whole) is called when a person
 * moves one; `whole` is false while a slider is still being dragged.
 */
export function traitControls({ value, change }) {
  let families = [];
  let painters = new Map(); // names of traits on the page → functions that paint them
  let limit = SHOWN;

  const search = h("input", {
    type: "search", id: "trait-search", placeholder: "Search traits", autocomplete: "off",
    on: { input: debounce(80, () => { limit = SHOWN; draw(); }) },
  });
  const groups = h("div", { class: "traits" });
  const element = h(
    "div", {}, h("label", { for: "trait-search", class: "unseen-text" }, "Search traits"), search, groups,
  );

  function row(trait, name) {
    const label = spaced(name);
    const id = freshId("trait");
    const kinds = { number: slider, ordered: slider, category: list, several: boxes };
    const parts = kinds[trait.kind](trait, id, () => value(trait), (next, whole) => {
      change(trait, next, whole);
      paint();
    });
    const reset = button("↺", () => { change(trait, trait.value, true); paint(); }, {
      class: "reset", "aria-label": `Reset ${label}`, title: "Back to where it began",
    });
    const text = trait.kind === "several" ? h("span", {}, label) : h("label", { for: id }, label);
    const item = h("div", { class: "trait" }, text, parts.control, reset);
    function paint() {
      parts.paint();
      const moved = !same(value(trait), trait.value);
      item.classList.toggle("moved", moved);
      reset.disabled = !moved;
    }
    painters.set(trait.name, [...(painters.get(trait.name) ?? []), paint]);
    paint();
    return item;
  }

  function group(family, open) {
    const body = h("div", {});
    const moved = h("span", { class: "moved-count" });
    const details = h(
      "details", { open },
      h("summary", {}, h("span", {}, spaced(family.name)), moved, h("small", {}, String(family.traits.length))),
      body,
    );
    function paintCount() {
      const n = family.traits.filter((trait) => !same(value(trait), trait.value)).length;
      moved.textContent = n ? `${n} changed` : "";
    }
    function build() {
      if (!details.open || body.childElementCount) return;
      let built = 0;
      const more = button("Show more", add, { class: "small" });
      function add() {
        more.remove();
        const some = family.traits.slice(built, built + SHOWN).map((trait) => row(trait, trait.label));
        body.append(...some);
        if (built) some[0].querySelector("input, select")?.focus();
        built += some.length;
        if (built < family.traits.length) body.append(more);
      }
      add();
    }
    details.addEventListener("toggle", build);
    painters.set(`family ${family.name}`, [paintCount]);
    paintCount();
    build();
    return details;
  }

  function found(wanted) {
    const hits = [];
    for (const family of families) {
      for (const trait of family.traits) {
        const label = family.traits.length > 1 ? `${family.name}: ${trait.label}` : trait.label;
        if (spaced(label).toLowerCase().includes(spaced(wanted))) hits.push([trait, label]);
      }
    }
    return hits;
  }

  function rows(pairs) {
    const shown = pairs.slice(0, limit).map(([trait, label]) => row(trait, label));
    if (pairs.length > limit) {
      shown.push(button(`Show more of ${pairs.length}`, () => { limit += SHOWN; draw(); }, { class: "small" }));
    }
    return shown;
  }

  function draw() {
    painters = new Map();
    const wanted = search.value.trim().toLowerCase();
    if (wanted) {
      const hits = found(wanted);
      groups.replaceChildren(
        h("p", { class: "hint" }, hits.length ? counted(hits.length, "trait") : `No trait has '${search.value}' in its name.`),
        ...rows(hits),
      );
      return;
    }
    const many = families.filter((family) => family.traits.length > 1);
    const single = families.filter((family) => family.traits.length === 1).map((family) => [family.traits[0], family.name]);
    const first = many.find((family) => family.traits.length <= BIG) ?? many[0];
    groups.replaceChildren(
      ...many.map((family) => group(family, family === first)),
      ...rows(single),
    );
  }

  return {
    element,
    show(next) {
      families = next;
      draw();
    },
    paint() {
      for (const each of painters.values()) for (const paint of each) paint();
    },
    /** The trait of a name, or undefined. */
    trait(name) {
      for (const family of families) {
        const hit = family.traits.find((trait) => trait.name === name);
        if (hit) return hit;
      }
      return undefined;
    },
  };
}
