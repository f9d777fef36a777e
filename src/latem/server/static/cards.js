// Pictures as they are shown everywhere: a photo, else the class's symbol, else its name.

import { h } from "./dom.js";
import { pictureAddress } from "./api.js";

function standIn(symbol, label) {
  if (symbol) return h("span", { class: "symbol", "aria-hidden": "true" }, symbol);
  return h("span", { class: "word", "aria-hidden": "true" }, label);
}

/** A frame that shows a picture of the dataset. `alt` is empty where the name stands beside it. */
export function frame({ row, symbol, label, size = 160, alt = "" }) {
  const box = h("span", { class: "frame" });
  if (row === null || row === undefined) {
    box.append(standIn(symbol, label));
    if (alt) box.append(h("span", { class: "unseen-text" }, alt));
    return box;
  }
  const image = h("img", {
    src: pictureAddress(row, size), alt, loading: "lazy", decoding: "async",
    on: { error: () => image.replaceWith(standIn(symbol, label)) },
  });
  box.append(image);
  return box;
}

/** Frame of an image of the dataset. */
export function imageFrame(image, size = 160, alt = "") {
  const row = image.picture ? image.row : null;
  return frame({ row, symbol: image.symbol, label: image.label, size, alt });
}

/** Frame with a typical picture of a class. */
export function classFrame(each, size = 160) {
  return frame({ row: each.picture, symbol: each.symbol, label: each.label, size });
}

/** A link to an image's page among the tries, with lines below it. */
export function imageLink(image, lines = []) {
  return h(
    "a", { class: "card", href: `#/picture?row=${image.row}` },
    imageFrame(image),
    h("span", { class: "caption" }, h("b", {}, image.label), lines),
  );
}

/** A grid of cards. */
export function grid(cards, className = "grid") {
  return h("ul", { class: className }, cards.map((card) => h("li", {}, card)));
}
