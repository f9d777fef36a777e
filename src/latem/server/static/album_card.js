// One picture of an album: what it was named, how sure, and a way to put it right.

import { button, capital, h, percent, short } from "./dom.js";
import { bar } from "./bars.js";
import { combo } from "./combo.js";
import { classOptions, labelOf } from "./state.js";
import { verdictWords } from "./verdicts.js";

function sureness(answer) {
  const best = answer.classes?.[0];
  if (answer.mode === "by hand") return [h("span", { class: "line" }, "named by hand")];
  if (!best) return [];
  if (best.probability === null) return [h("span", { class: "line" }, `score ${short(best.score)}`)];
  if (answer.verdict === "none of these") return [h("span", { class: "line" }, "too unlike all of them")];
  return [bar(best.probability, "thin"), h("span", { class: "line" }, `${percent(best.probability)} sure`)];
}

/** The card of a picture. correct(item, name) is called with a name, or null to take it back. */
export function albumCard(item, correct) {
  const body = h("div", { class: "caption" });
  const change = button("Change", () => edit(), { class: "small" });
  const takeBack = button("Undo", () => { correct(item, null); change.focus(); }, { class: "small" });
  const place = h("div", { class: "row" }, change, takeBack);
  const image = h("img", { src: item.url, alt: `Picture ${item.file.name}`, loading: "lazy", decoding: "async" });
  const element = h("li", { class: "card" }, h("span", { class: "frame" }, image), body, place);

  function edit() {
    const said = combo({
      label: `Name of ${item.file.name}`, placeholder: "Search classes", options: () => classOptions(), hideLabel: true,
      onPick: (name) => { done(); correct(item, name); },
    });
    const leave = button("Cancel", done, { class: "small" });
    const editor = h("div", { class: "editor" }, said.element, leave);
    said.input.addEventListener("keydown", (event) => { if (event.key === "Escape") done(); });
    function done() {
      editor.replaceWith(place);
      change.focus();
    }
    place.replaceWith(editor);
    said.input.focus();
  }

  function paint() {
    const { answer } = item;
    const words = verdictWords(answer);
    const byHand = answer.mode === "by hand";
    const now = answer.answer ?? answer.classes?.[0]?.class;
    const other = answer.mode === "transductive" && answer.alone && answer.alone !== now;
    element.className = `card ${byHand ? "hand" : words.tone}`;
    body.replaceChildren(
      h("span", { class: "card-name" },
        byHand || !words.before ? null : h("span", { class: "before" }, `${words.before} `), h("b", {}, words.name)),
      ...sureness(answer),
      ...(other ? [h("span", { class: "line" }, `alone: ${capital(labelOf(answer.alone))}`)] : []),
      h("span", { class: "line file", title: item.file.name }, item.file.name),
    );
    change.setAttribute("aria-label", `Change the name of ${item.file.name}`);
    takeBack.setAttribute("aria-label", `Undo the name given to ${item.file.name}`);
    takeBack.hidden = !byHand;
  }
  return { element, paint };
}
