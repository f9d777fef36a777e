// The gallery: what the model takes for each class, each trait and each of its maps.

import { h, latest, percent, problemBox, segmented, showProblem, spaced } from "./dom.js";
import { get } from "./api.js";
import { bar } from "./bars.js";
import { grid, imageLink } from "./cards.js";
import { remember } from "./state.js";

const NAMES = { class: "By class", trait: "By trait", map: "By map" };
const FIRST = 12; // groups shown before a person asks for all

function caption(image) {
  const lines = [];
  if (image.fits === false) lines.push(h("span", { class: "line no" }, `named ${image.named_label ?? image.named}`));
  else if (image.fits) lines.push(h("span", { class: "line yes" }, "named right"));
  if (image.note) lines.push(h("span", { class: "line" }, spaced(image.note)));
  return lines;
}

function groupPart(group) {
  return h(
    "section", { class: "gallery-group" },
    h("h3", {}, spaced(group.label || group.title)),
    group.share === null || group.share === undefined ? null
      : h("p", { class: "usage" }, bar(group.share), h("span", {}, `fires for ${percent(group.share)} of pictures`)),
    group.notes.map((note) => h("p", { class: "hint" }, spaced(note))),
    grid(group.images.map((image) => imageLink(image, caption(image))), "grid eight"),
  );
}

/** The section with its tabs; load() fetches the first kind that exists. */
export function galleryPart() {
  const requests = latest();
  const box = problemBox();
  const tabs = h("div", {});
  const about = h("p", { class: "hint" });
  const body = h("div", { class: "gallery-groups" });
  const element = h("section", { class: "panel", hidden: true }, h("h2", {}, "Gallery"), tabs, about, box, body);
  let drawn = false;

  function drawTabs(kinds, by) {
    if (drawn) return;
    drawn = true;
    const choice = segmented({
      legend: "Pictures arranged", hideLegend: true, value: by, onChange: (kind) => load(kind),
      options: kinds.map((kind) => ({ value: kind, label: NAMES[kind] ?? kind })),
    });
    tabs.replaceChildren(choice.element);
  }

  async function load(by = null) {
    body.setAttribute("aria-busy", "true");
    try {
      const found = await get("api/gallery", { by, n: 8 }, requests.next());
      element.hidden = false;
      showProblem(box, null);
      drawTabs(found.kinds, found.by);
      about.textContent = found.caption;
      for (const group of found.groups) remember(group.images);
      draw(found.groups);
    } catch (error) {
      if (by || error.status !== 409) element.hidden = error.name === "AbortError" && element.hidden;
      if (by) body.replaceChildren();
      showProblem(box, error);
    }
    body.setAttribute("aria-busy", "false");
  }

  function draw(groups, all = false) {
    const shown = all ? groups : groups.slice(0, FIRST);
    body.replaceChildren(...shown.map(groupPart));
    if (shown.length < groups.length) {
      body.append(h("p", {}, h("button", { type: "button", on: { click: () => draw(groups, true) } }, `Show all ${groups.length}`)));
    }
  }

  return { element, load };
}
