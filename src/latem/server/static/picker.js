// A dialog to pick a picture out of the dataset.

import { button, counted, h, latest, problemBox, segmented, showProblem } from "./dom.js";
import { get } from "./api.js";
import { combo } from "./combo.js";
import { imageFrame } from "./cards.js";
import { anyImage, remember, state } from "./state.js";

const PAGE = 60; // pictures fetched at once

/** The dialog; open() shows it, onPick(image) is called with the image picked. */
export function picker({ onPick }) {
  const requests = latest();
  let among = "unseen";
  let name = null;
  let shown = 0;

  const box = problemBox();
  const count = h("p", { class: "hint", role: "status" });
  const pictures = h("ul", { class: "grid small-cards" });
  const more = button("Show more", () => load(shown), { class: "small", hidden: true });
  const which = segmented({
    legend: "Pictures of", value: among,
    options: [
      { value: "unseen", label: "Unseen" },
      { value: "seen", label: "Seen" },
      { value: "all", label: "All" },
    ],
    onChange: (value) => { among = value; name = null; filter.value = ""; load(0); },
  });
  const filter = combo({
    label: "Of one class", placeholder: "Any class", onPick: (value) => { name = value || null; load(0); },
    options: () => [
      { value: "", label: "Any class" },
      ...state.classes.filter((each) => each.n_images && fits(each)).map((each) => ({
        value: each.name, label: each.label, symbol: each.symbol, note: String(each.n_images),
      })),
    ],
  });
  filter.value = "";
  const element = h(
    "dialog", { class: "picker", "aria-label": "Pick a picture of the dataset" },
    h("div", { class: "dialog-head" },
      h("h2", {}, "Pick a picture"),
      button("×", () => element.close(), { class: "close", "aria-label": "Close" })),
    h("div", { class: "row filters" },
      which.element, filter.element, button("Surprise me", surprise)),
    box, count, pictures, more,
  );

  function fits(each) {
    return among === "all" || (among === "seen") === each.seen;
  }

  function card(image) {
    const label = image.name && image.name !== image.label ? `${image.label}: ${image.name}` : image.label;
    return h("li", {}, h(
      "button", { type: "button", class: "card", title: label, on: { click: () => take(image) } },
      imageFrame(image), h("span", { class: "caption" }, image.label),
    ));
  }

  async function load(offset) {
    try {
      const found = await get("api/images", { among, name, offset, limit: PAGE }, requests.next());
      remember(found.images);
      const cards = found.images.map(card);
      if (offset) pictures.append(...cards);
      else pictures.replaceChildren(...cards);
      shown = offset + found.images.length;
      count.textContent = `${counted(found.n, "picture")}, ${shown.toLocaleString("en-GB")} shown.`;
      more.hidden = shown >= found.n;
      showProblem(box, null);
    } catch (error) {
      showProblem(box, error);
    }
  }

  function take(image) {
    element.close();
    onPick(image);
  }

  async function surprise() {
    try {
      const image = await anyImage(among);
      if (image) take(image);
    } catch (error) {
      showProblem(box, error);
    }
  }

  return {
    element,
    open() {
      element.showModal();
      if (!shown) load(0);
    },
  };
}
