// Maps and scores: how good the model is, where it errs, and what its maps have learned.

import {
  counted, h, latest, percent, problemBox, segmented, short, showProblem,
} from "./dom.js";
import { get } from "./api.js";
import { bar } from "./bars.js";
import { classFrame } from "./cards.js";
import { ceiling, legend, shareChart } from "./chart.js";
import { galleryPart } from "./gallery.js";
import { labelOf } from "./state.js";

export const title = "Maps and scores";

const WAIT = 1500; // milliseconds between questions while the scores are computed

const SORTS = {
  worst: (one, other) => one.accuracy - other.accuracy || one.label.localeCompare(other.label),
  best: (one, other) => other.accuracy - one.accuracy || one.label.localeCompare(other.label),
  name: (one, other) => one.label.localeCompare(other.label),
  images: (one, other) => other.images - one.images || one.label.localeCompare(other.label),
};

function figure(value, name, hint) {
  return h("li", {}, h("b", {}, value), h("span", { class: "name" }, name), hint ? h("span", { class: "hint" }, hint) : null);
}

function figures(result) {
  const { together, reliability } = result;
  const list = [
    figure(percent(result.top_1), "accuracy per class", `chance: ${percent(result.chance)}`),
    result.top_5 === null ? null : figure(percent(result.top_5), "among the first five"),
    figure(result.n_images.toLocaleString("en-GB"), "pictures", `of ${counted(result.n_classes, "class", "classes")}`),
    together ? figure(percent(together.stacked.harmonic), "seen and unseen (H)", `without a penalty: ${percent(together.plain.harmonic)}`) : null,
    together ? figure(percent(together.ausuc), "area under the curve") : null,
    reliability ? figure(percent(reliability.ece_after), "calibration error", `before: ${percent(reliability.ece_before)}`) : null,
  ];
  return h("ul", { class: "figures" }, list.filter(Boolean));
}

function classLine(each) {
  const mistake = each.mistaken_for ? `, mostly named ${each.mistaken_label || labelOf(each.mistaken_for)} (${each.mistakes})` : "";
  return h(
    "li", {}, classFrame(each),
    h("span", { class: "class-name" }, h("b", {}, each.label), h("small", {}, `${counted(each.images, "picture")}${mistake}`)),
    bar(each.accuracy), h("span", { class: "value" }, percent(each.accuracy)),
  );
}

function perClass(result) {
  const list = h("ul", { class: "class-bars", tabindex: "0", "aria-label": "Accuracy of each class" });
  const draw = (order) => list.replaceChildren(...[...result.per_class].sort(SORTS[order]).map(classLine));
  const sort = segmented({
    legend: "Sort by", value: "worst", onChange: draw,
    options: [
      { value: "worst", label: "Worst first" }, { value: "best", label: "Best first" },
      { value: "name", label: "Name" }, { value: "images", label: "Pictures" },
    ],
  });
  draw("worst");
  return h("section", { class: "panel" }, h("h2", {}, "Accuracy of each class"), sort.element, list);
}

function confusions(result) {
  if (!result.confusions.length) return null;
  const rows = result.confusions.map((each) => h(
    "tr", {}, h("th", { scope: "row" }, each.true_label), h("td", {}, each.named_label),
    h("td", { class: "number" }, `${each.count} of ${each.of}`),
  ));
  return h(
    "section", { class: "panel" }, h("h2", {}, "What is taken for what"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of confusions" }, h(
      "table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "In truth"), h("th", { scope: "col" }, "Named"),
        h("th", { scope: "col", class: "number" }, "Pictures"))),
      h("tbody", {}, rows),
    )),
  );
}

function reliabilityPart(result) {
  const { reliability: found, missing } = result;
  const head = h("h2", {}, "Can its sureness be trusted?");
  if (!found) return missing?.calibrate ? h("section", { class: "panel" }, head, h("p", { class: "hint" }, missing.calibrate)) : null;
  const all = [...found.before, ...found.after];
  const most = Math.max(...all.map((each) => each.count), 1);
  const line = (bins, name) => {
    const filled = bins.filter((each) => each.count);
    return {
      name, points: filled.map((each) => [each.confidence, each.accuracy]),
      dots: filled.map((each) => 2 + 5 * Math.sqrt(each.count / most)),
    };
  };
  const { svg } = shareChart({
    label: `Reliability: calibration error ${percent(found.ece_before)} before and ${percent(found.ece_after)} after calibration.`,
    across: "how sure it was", up: "how often it was right", diagonal: true,
    lines: [line(found.before, "second"), line(found.after, "first")],
  });
  return h(
    "section", { class: "panel" }, head, svg,
    legend([["second", `before: error ${percent(found.ece_before)}`], ["first", `calibrated: error ${percent(found.ece_after)}`], ["even", "as sure as right"]]),
    h("p", { class: "hint" }, `Larger dots hold more pictures. Temperature ${short(found.temperature)}.`),
  );
}

function harmonic(seen, unseen) {
  return seen + unseen ? (2 * seen * unseen) / (seen + unseen) : 0;
}

function nearest(values, wanted) {
  let best = 0;
  values.forEach((value, index) => { if (Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = index; });
  return best;
}

function togetherPart(result) {
  const { together: found, missing } = result;
  const head = h("h2", {}, "Seen against unseen classes");
  if (!found) return missing?.generalized ? h("section", { class: "panel" }, head, h("p", { class: "hint" }, missing.generalized)) : null;
  const { gammas, seen, unseen } = found;
  const chart = shareChart({
    label: `Accuracy on unseen classes against accuracy on seen ones; area ${percent(found.ausuc)}.`,
    across: `accuracy on ${counted(found.n_seen, "seen class", "seen classes")}`,
    up: `accuracy on ${counted(found.n_unseen, "unseen class", "unseen classes")}`,
    lines: [{ name: "first", points: seen.map((each, index) => [each, unseen[index]]) }],
    highX: ceiling(seen), highY: ceiling(unseen),
  });
  const start = nearest(gammas, found.gamma);
  chart.choose(found.stacked.seen, found.stacked.unseen);
  const output = h("output", { for: "gamma", class: "gamma-out" });
  const slider = h("input", {
    id: "gamma", type: "range", min: 0, max: gammas.length - 1, step: 1, on: { input: () => show(Number(slider.value)) },
  });
  function show(index) {
    const h1 = harmonic(seen[index], unseen[index]);
    const text = `γ ${short(gammas[index])}: seen ${percent(seen[index])}, unseen ${percent(unseen[index])}, H ${percent(h1)}`;
    output.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    chart.mark(seen[index], unseen[index]);
  }
  slider.value = start;
  show(start);
  return h(
    "section", { class: "panel" }, head, chart.svg,
    h("div", { class: "gamma" }, h("label", { for: "gamma" }, "Penalty γ on the scores of seen classes"), slider, output),
    legend([["first", "every penalty"], ["chosen", `chosen: γ ${short(found.gamma)}`], ["moving", "the slider"]]),
  );
}

function verdictPart(result) {
  if (!result.verdicts) return null;
  const parts = Object.entries(result.verdicts);
  const kinds = [...new Set(parts.flatMap(([, shares]) => Object.keys(shares)))];
  return h(
    "section", { class: "panel" }, h("h2", {}, "Verdicts"),
    h("p", { class: "hint" }, "What share of pictures of each kind gets which verdict."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of verdicts" }, h(
      "table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Pictures of"), kinds.map((kind) => h("th", { scope: "col", class: "number" }, kind)))),
      h("tbody", {}, parts.map(([part, shares]) => h(
        "tr", {}, h("th", { scope: "row" }, part), kinds.map((kind) => h("td", { class: "number" }, percent(shares[kind] ?? 0))),
      ))),
    )),
  );
}

export function create(root) {
  const requests = latest();
  const box = problemBox();
  const status = h("p", { class: "note calm", role: "status" }, "Asking for the scores …");
  const body = h("div", { class: "score-parts" });
  const gallery = galleryPart();
  let timer = 0;
  let ready = false;

  root.append(
    h("h1", { tabindex: "-1" }, title),
    h("p", { class: "lead" }, "Measured on pictures of classes that the model has never seen."),
    status, box, body, gallery.element,
  );

  function draw(result) {
    const parts = [
      figures(result), perClass(result),
      h("div", { class: "pair" }, [reliabilityPart(result), togetherPart(result)].filter(Boolean)),
      h("div", { class: "pair" }, [confusions(result), verdictPart(result)].filter(Boolean)),
    ];
    body.replaceChildren(...parts.filter((part) => part.childElementCount));
  }

  async function load() {
    clearTimeout(timer);
    try {
      const found = await get("api/scores", {}, requests.next());
      showProblem(box, null);
      status.hidden = found.status === "ready";
      if (found.status === "ready") {
        ready = true;
        draw(found.result);
        gallery.load();
      } else if (found.status === "computing") {
        status.textContent = "Computing the scores; they will stand here in a moment.";
        timer = setTimeout(load, WAIT);
      } else {
        status.textContent = found.why || "There are no scores to show.";
        gallery.load();
      }
    } catch (error) {
      showProblem(box, error);
    }
  }

  return {
    show() {
      if (!ready) load();
    },
    hide() {
      clearTimeout(timer);
    },
    close() {
      clearTimeout(timer);
      requests.close();
    },
  };
}
