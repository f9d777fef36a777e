// Invent a class: start from one that exists, move its traits, and see which pictures fit.

import {
  announce, button, capital, counted, debounce, h, latest, problemBox, segmented, short, showProblem, spaced,
} from "./dom.js";
import { get, post } from "./api.js";
import { bar } from "./bars.js";
import { imageFrame } from "./cards.js";
import { combo } from "./combo.js";
import { keptClasses } from "./kept.js";
import { classOptions, model, remember, state } from "./state.js";
import { same, traitControls } from "./traits.js";

export const title = "Invent a class";

const PAUSE = 40; // milliseconds without a move before the pictures are ranked anew
const PICTURES = 60;

export function create(root) {
  const info = model();
  const requests = latest();
  const starts = latest();
  let like = null; // the class it starts from; null: the mean of all
  let set = {}; // traits that were moved, by name
  let past = [];
  let future = [];
  let among = info.n_unseen ? "unseen" : "all";

  const box = problemBox();
  const described = h("p", { class: "described" }, " ");
  const status = h("p", { class: "hint" });
  const slots = h("ul", { class: "grid live-grid" });
  const undoButton = button("Undo", () => travel(past, future), { disabled: true });
  const redoButton = button("Redo", () => travel(future, past), { disabled: true });
  const resetButton = button("Reset all", () => { note(); set = {}; refresh(); }, { disabled: true });
  const controls = traitControls({
    value: (trait) => (trait.name in set ? set[trait.name] : trait.value),
    change: move,
  });
  const start = combo({
    label: "Start from", placeholder: "Search classes",
    options: () => [{ value: "", label: "The mean of all classes" }, ...classOptions((each) => !each.invented)],
    onPick: (name) => { note(); like = name || null; set = {}; begin(); },
  });
  start.value = "";
  const byTraits = h("div", { class: "by-traits" },
    start.element, h("div", { class: "row" }, undoButton, redoButton, resetButton), controls.element);
  const words = wordsPart();
  const ways = info.words && info.describes ? segmented({
    legend: "Describe it by", value: "traits",
    options: [{ value: "traits", label: "Traits" }, { value: "words", label: info.words === "text" ? "A sentence" : "Words" }],
    onChange: (way) => useWay(way),
  }) : null;
  let way = info.describes ? "traits" : info.words ? "words" : "start";

  const amongSwitch = segmented({
    legend: "Pictures of", value: among, hideLegend: true,
    options: [{ value: "unseen", label: "Unseen", disabled: !info.n_unseen }, { value: "seen", label: "Seen" }, { value: "all", label: "All" }],
    onChange: (value) => { among = value; rank(); },
  });
  const kept = keptClasses({ describe: description });

  root.append(
    h("h1", { tabindex: "-1" }, title),
    h("p", { class: "lead" }, "Describe a class that need not exist. The pictures that fit it best come first."),
    h(
      "div", { class: "split invent-split" },
      h("div", { class: "side" }, ways?.element ?? null, whyNot(), byTraits, words.element, kept.element),
      h("section", { class: "panel live", "aria-label": "Pictures that fit" },
        described, h("div", { class: "row spread" }, amongSwitch.element, status), box, slots),
    ),
  );
  useWay(way);

  function whyNot() {
    if (info.describes) return null;
    const text = info.words ? "The columns of this model's class table have no names, so there are no traits to move. Type a description instead."
      : `This model's class table has no traits to move. ${info.why_no_words} Pictures can still be ranked by a class that exists.`;
    return h("p", { class: "note" }, text);
  }

  function wordsPart() {
    const sentence = info.words === "text";
    const label = sentence ? "A sentence about the class" : "Words for the class";
    const input = h("textarea", {
      id: "words", rows: 3, placeholder: sentence ? "a small red bird with a thick orange beak" : "red bird beak",
      on: { input: debounce(150, () => rank()) },
    });
    return { element: h("div", { class: "by-words", hidden: true }, h("label", { for: "words" }, label), input), input };
  }

  function useWay(next) {
    way = next;
    byTraits.hidden = way === "words";
    controls.element.hidden = way === "start";
    words.element.hidden = way !== "words";
    kept.element.hidden = way === "start";
    if (way === "words") rank();
    else begin();
  }

  /** What the class is, as the server wants to hear it; null while there is nothing to say. */
  function description() {
    if (way === "words") return words.input.value.trim() ? { text: words.input.value.trim() } : null;
    if (way === "start") return like ? { class: like } : null;
    return like ? { like, set } : { set };
  }

  function note() {
    past.push({ like, set: { ...set } });
    future = [];
  }

  let dragged = false;
  function move(trait, value, whole) {
    if (!dragged) note();
    dragged = !whole;
    set = { ...set };
    if (same(value, trait.value)) delete set[trait.name];
    else set[trait.name] = value;
    const last = past[past.length - 1];
    if (whole && last.like === like && sameSet(last.set, set)) past.pop();
    paintButtons();
    controls.paint();
    soon();
  }

  function sameSet(one, other) {
    const names = Object.keys(one);
    return names.length === Object.keys(other).length
      && names.every((name) => name in other && same(one[name], other[name]));
  }

  function travel(from, to) {
    if (!from.length) return;
    to.push({ like, set: { ...set } });
    const there = from.pop();
    const other = there.like !== like;
    ({ like, set } = there);
    start.value = like ?? "";
    if (other) begin();
    else refresh();
    announce(`${counted(Object.keys(set).length, "trait")} changed.`);
  }

  function paintButtons() {
    undoButton.disabled = !past.length;
    redoButton.disabled = !future.length;
    resetButton.disabled = !Object.keys(set).length;
  }

  function refresh() {
    paintButtons();
    controls.paint();
    rank();
  }

  async function begin() {
    paintButtons();
    try {
      if (way === "traits") {
        controls.element.inert = true; // until they are those of the class it starts from
        const { families } = await get("api/traits", { like }, starts.next());
        controls.show(families);
        controls.element.inert = false;
      }
    } catch (error) {
      showProblem(box, error);
      return;
    }
    paintButtons();
    await rank();
  }

  async function rank() {
    const what = description();
    if (!what) {
      status.textContent = way === "start" ? "Choose a class to start from." : "Type a description to rank the pictures.";
      slots.replaceChildren();
      described.textContent = " ";
      return;
    }
    if (!state.about.dataset) {
      status.textContent = "This server has no dataset, so there are no pictures to rank. The class can still be kept.";
      return;
    }
    const begun = performance.now();
    try {
      const found = await post("api/retrieve", { ...what, among, k: PICTURES }, requests.next());
      showProblem(box, null);
      remember(found.images);
      described.textContent = capital(spaced(found.described));
      const shown = `${found.images.length} best of ${counted(found.n, "picture")}`;
      status.textContent = `${shown}, ${Math.max(1, Math.round(performance.now() - begun))} ms`;
      paint(found.images);
    } catch (error) {
      showProblem(box, error);
    }
  }
  const soon = debounce(PAUSE, rank);

  /** Pictures change in their places: a card is built anew only if it shows another picture. */
  function paint(images) {
    const scores = images.map((image) => image.score);
    const low = Math.min(...scores);
    const range = Math.max(...scores) - low || 1;
    images.forEach((image, index) => {
      let slot = slots.children[index];
      if (!slot) {
        slot = h("li", {}, h("a", { class: "card" }));
        slots.append(slot);
      }
      const link = slot.firstElementChild;
      const strength = bar(0.04 + (0.96 * (image.score - low)) / range, "thin");
      if (slot.dataset.row === String(image.row)) {
        link.querySelector(".bar").replaceWith(strength);
      } else {
        slot.dataset.row = image.row;
        link.href = `#/picture?row=${image.row}`;
        link.replaceChildren(imageFrame(image), strength, h("span", { class: "caption" }, h("b", {}, image.label)));
      }
      link.title = `${image.label}: score ${short(image.score)}`;
    });
    while (slots.children.length > images.length) slots.lastElementChild.remove();
  }

  function keys(event) {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    if (event.target.matches("textarea, input:not([type=range], [type=checkbox], [type=radio])")) return;
    event.preventDefault();
    if (event.shiftKey) travel(future, past);
    else travel(past, future);
  }

  return {
    show() {
      document.addEventListener("keydown", keys);
    },
    hide() {
      document.removeEventListener("keydown", keys);
    },
    close() {
      requests.close();
      starts.close();
      kept.close();
    },
  };
}
