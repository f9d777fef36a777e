// Out of which classes an answer is chosen: the unseen ones, the seen ones, all, or an own list.

import { button, counted, h, segmented } from "./dom.js";
import { combo } from "./combo.js";
import { changes, classOptions, labelOf, model, state } from "./state.js";

const GROUPS = { unseen: "all unseen classes", seen: "all seen classes", all: "all classes" };

function groupSize(group) {
  const { n_seen: seen, n_unseen: unseen } = model();
  return { seen, unseen, all: seen + unseen }[group];
}

/** The choice of candidates. onChange() is called when it is another one. */
export function candidates({ legend, onChange }) {
  let own = [];
  const chips = h("ul", { class: "chips", "aria-label": "My list of classes" });
  const hint = h("p", { class: "hint" });
  const pick = combo({
    label: "Add a class", placeholder: "Search classes", empties: true,
    options: () => classOptions((each) => !own.includes(each.name)),
    onPick: (name) => change([...own, name]),
  });
  const groups = h("div", { class: "row" });
  const panel = h("div", { class: "own-list", hidden: true }, pick.element, groups, chips, hint);
  const start = groupSize("unseen") ? "unseen" : "all";
  const which = segmented({
    legend, value: start, onChange: () => { draw(); onChange(); },
    options: [
      { value: "unseen", label: "Unseen", disabled: !groupSize("unseen") },
      { value: "seen", label: "Seen", disabled: !groupSize("seen") },
      { value: "all", label: "All" },
      { value: "own", label: "My list" },
    ],
  });
  const meaning = h("p", { class: "hint" });
  const element = h("div", { class: "candidates" }, which.element, meaning, panel);

  function meaningOf(group) {
    if (group === "unseen") {
      return `${counted(groupSize("unseen"), "class", "classes")} it knows only from a description.`;
    }
    if (group === "seen") {
      return `${counted(groupSize("seen"), "class", "classes")} it was trained with pictures of.`;
    }
    if (group === "all") return `Seen and unseen together: ${groupSize("all").toLocaleString("en-GB")}.`;
    return "";
  }

  function change(next) {
    own = next;
    draw();
    onChange();
  }

  function draw() {
    const mine = which.value === "own";
    panel.hidden = !mine;
    meaning.textContent = meaningOf(which.value);
    meaning.hidden = mine;
    if (!mine) return;
    groups.replaceChildren(...Object.entries(GROUPS)
      .filter(([group]) => group !== "all" && groupSize(group) && !own.includes(group))
      .map(([group, text]) => button(`Add ${text}`, () => change([...own, group]), { class: "small" })));
    chips.replaceChildren(...own.map((name) => {
      const text = GROUPS[name] ?? labelOf(name);
      const label = `Take ${text} off the list`;
      const drop = button("×", () => change(own.filter((each) => each !== name)), { "aria-label": label });
      return h("li", { class: "chip" }, text, drop);
    }));
    hint.textContent = own.length ? "" : "The list is empty: add the classes it may answer with.";
  }

  function forget() {
    const kept = own.filter((name) => name in GROUPS || state.byName.has(name));
    if (kept.length === own.length) return;
    own = kept;
    draw();
  }
  changes.addEventListener("classes", forget);

  draw();
  return {
    element,
    /** A group, a list, or null for an empty list. */
    get value() {
      if (which.value !== "own") return which.value;
      return own.length ? [...own] : null;
    },
    set value(next) {
      which.value = Array.isArray(next) ? "own" : next;
      if (Array.isArray(next)) own = [...next];
      draw();
    },
    /** Whether a class may be the answer. */
    includes(name) {
      const each = state.byName.get(name);
      const wanted = which.value === "own" ? own : [which.value];
      if (wanted.includes(name)) return true;
      if (!each || each.invented) return false;
      return wanted.includes("all") || wanted.includes(each.seen ? "seen" : "unseen");
    },
    close() {
      changes.removeEventListener("classes", forget);
    },
  };
}
