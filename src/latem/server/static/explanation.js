// Why one class and not another, and the training pictures nearest to an image.

import { capital, h, latest, problemBox, short, showProblem } from "./dom.js";
import { post } from "./api.js";
import { pulls } from "./bars.js";
import { grid, imageLink } from "./cards.js";
import { remember } from "./state.js";

function mapsText(why) {
  if (!(why.n_maps > 1)) return "";
  const first = `Of the model's maps, 0 to ${why.n_maps - 1}, map ${why.map} fired for ${why.labels.named}`;
  if (why.map === why.runner_up_map) return `${first} and for ${why.labels.runner_up}.`;
  return `${first}, map ${why.runner_up_map} for ${why.labels.runner_up}.`;
}

function draw(why) {
  const named = capital(why.labels.named);
  const other = capital(why.labels.runner_up);
  const behind = why.lead < 0 ? ` ${other} is ahead.` : "";
  return [
    h("p", {}, `Scores: ${named} ${short(why.score)}, ${other} ${short(why.runner_up_score)}; `
      + `a lead of ${short(why.lead)}.${behind} ${mapsText(why)}`),
    h(
      "p", { class: "sides" },
      h("span", { class: "side-against" }, `← for ${other}`),
      h("span", { class: "side-for" }, `for ${named} →`),
    ),
    pulls(why.families, why.rest, why.lead),
    why.text ? h("details", { class: "words" }, h("summary", {}, "In words"), h("pre", {}, why.text)) : null,
  ];
}

/** A panel that explains; show(image, candidates, best, against) asks the server. */
export function explanationPanel() {
  const requests = latest();
  const heading = h("h2", {}, "Why");
  const body = h("div", { class: "why" });
  const box = problemBox();
  const element = h("section", { class: "panel", hidden: true, "aria-label": "Why" }, heading, box, body);

  async function show(image, classes, against) {
    element.hidden = false;
    element.setAttribute("aria-busy", "true");
    if (!body.childElementCount) body.replaceChildren(h("p", { class: "hint" }, "Comparing the traits …"));
    try {
      const asked = { ...image, classes, n: 8 };
      if (against) asked.against = against;
      const why = await post("api/explain", asked, requests.next());
      showProblem(box, null);
      heading.textContent = `Why ${capital(why.labels.named)} rather than ${capital(why.labels.runner_up)}`;
      body.replaceChildren(...draw(why).filter(Boolean));
      element.setAttribute("aria-busy", "false");
      return why;
    } catch (error) {
      if (error.name !== "AbortError") {
        body.replaceChildren();
        element.setAttribute("aria-busy", "false");
      }
      showProblem(box, error);
      return null;
    }
  }

  function hide() {
    requests.stop();
    element.hidden = true;
    body.replaceChildren();
    showProblem(box, null);
  }
  return { element, show, hide };
}

/** The pictures of the training set that look most like an image. */
export function neighboursPanel() {
  const requests = latest();
  const box = problemBox();
  const body = h("div", {});
  const heading = h("h2", {}, "Nearest pictures");
  const element = h("section", { class: "panel", hidden: true, "aria-label": "Nearest pictures" }, heading, box, body);

  async function show(image) {
    try {
      const { neighbours, of } = await post("api/neighbours", { ...image, n: 8 }, requests.next());
      remember(neighbours);
      showProblem(box, null);
      element.hidden = !neighbours.length;
      heading.textContent = `Nearest ${of}`;
      body.replaceChildren(grid(neighbours.map((each) => imageLink(each, [
        h("span", { class: "line" }, `likeness ${each.likeness.toFixed(2)}`),
      ])), "grid eight"));
    } catch (error) {
      element.hidden = error.name === "AbortError" ? element.hidden : false;
      showProblem(box, error);
    }
  }

  function hide() {
    requests.stop();
    element.hidden = true;
    body.replaceChildren();
    showProblem(box, null);
  }
  return { element, show, hide };
}
