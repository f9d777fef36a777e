// Try a picture: which class is it, how sure is that, and why.

import {
  announce, button, capital, h, latest, percent, problemBox, short, showProblem,
} from "./dom.js";
import { post, sendPictures } from "./api.js";
import { bar } from "./bars.js";
import { camera } from "./camera.js";
import { candidates } from "./candidates.js";
import { classFrame, imageFrame } from "./cards.js";
import { explanationPanel, neighboursPanel } from "./explanation.js";
import { dropZone, isPicture, refusal } from "./files.js";
import { picker } from "./picker.js";
import { anyImage, imageOfRow, kindOf, model, state } from "./state.js";
import { doubt, verdictWords } from "./verdicts.js";

export const title = "Try a picture";

const RATES = [["", "as the model chose"], ["0.01", "1 in 100"], ["0.05", "5 in 100"],
  ["0.1", "10 in 100"], ["0.2", "20 in 100"]];

export function create(root) {
  const info = model();
  const { dataset, limits } = state.about;
  const requests = latest();
  let image = null; // the image of the dataset in use, else null
  let file = null; // the file in use, else null
  let url = ""; // what the file is shown from

  const preview = h("div", { class: "preview" });
  const truth = h("p", { class: "truth" });
  const box = problemBox();
  const chooser = h("input", {
    type: "file", accept: "image/*", class: "unseen-text", tabindex: "-1", "aria-hidden": "true",
    on: { change: () => { if (chooser.files[0]) takeFile(chooser.files[0]); chooser.value = ""; } },
  });
  const shots = camera({ onPicture: takeFile });
  const shelf = dataset ? picker({ onPick: goTo }) : null;
  const sources = h("div", { class: "row sources" });
  if (info.names_pictures) {
    sources.append(
      button("Choose a file", () => chooser.click(), { class: "main" }),
      button("Camera", () => shots.open()),
    );
  }
  if (shelf) {
    sources.append(
      button("From the dataset", () => shelf.open(), { class: info.names_pictures ? null : "main" }),
      button("Surprise me", surprise),
    );
  }
  const drop = h("div", { class: "drop" }, preview, truth, sources, chooser);
  const which = candidates({ legend: "Name it out of", onChange: () => run() });
  const rate = h(
    "select", { id: "rate", on: { change: () => run() } },
    RATES.map(([value, text]) => h("option", { value }, text)),
  );
  const strictness = info.rejects ? h(
    "details", { class: "settings" }, h("summary", {}, "How strict"),
    h("label", { for: "rate" }, "Pictures of other things that may be named all the same"), rate,
  ) : null;

  const verdict = h("div", { class: "verdict" });
  const ranking = h("ol", { class: "ranking" });
  const hint = h("p", { class: "hint" });
  const answer = h(
    "section", { class: "panel answer", "aria-label": "Answer", hidden: true }, verdict, ranking, hint,
  );
  const why = explanationPanel();
  const near = neighboursPanel();
  const empty = h("p", { class: "empty" }, emptyText());

  root.append(
    h("h1", { tabindex: "-1" }, title),
    h("p", { class: "lead" }, "The model names it from descriptions of classes alone, if need be, and says why."),
    h(
      "div", { class: "split" },
      h("div", { class: "side" }, whyNoPhotos(), drop, box, which.element, strictness),
      h("div", { class: "results" }, empty, answer, why.element, near.element),
    ),
    shots.element, ...(shelf ? [shelf.element] : []),
  );
  if (info.names_pictures) {
    dropZone(drop, (files) => files.length && takeFile(files.find(isPicture) ?? files[0]));
  }
  showPreview();

  function emptyText() {
    if (info.names_pictures) return "Drop a picture, paste one, or choose one. The answer will stand here.";
    if (dataset) return "Choose a picture of the dataset. The answer will stand here.";
    return "There is nothing to name: this server has no dataset, and the model cannot read pictures.";
  }

  function whyNoPhotos() {
    if (info.names_pictures) return null;
    const offer = dataset ? " Pictures of the dataset can be tried." : "";
    return h("p", { class: "note" }, `No photos of your own here: ${info.why_no_pictures}${offer}`);
  }

  function showPreview() {
    if (url && !file) {
      URL.revokeObjectURL(url);
      url = "";
    }
    if (file) preview.replaceChildren(h("img", { src: url, alt: `Your picture, ${file.name}` }));
    else if (image) preview.replaceChildren(imageFrame(image, 640, pictureAlt()));
    else {
      preview.replaceChildren(h("p", {}, info.names_pictures
        ? "Drop a picture here, or paste one" : "Choose a picture of the dataset"));
    }
    preview.classList.toggle("empty-preview", !file && !image);
    truth.replaceChildren();
  }

  function pictureAlt() {
    return `Picture of the dataset: ${image.label}`;
  }

  function takeFile(next) {
    if (!info.names_pictures) {
      showProblem(box, new Error(info.why_no_pictures));
      return;
    }
    const refused = refusal(next, limits.upload_bytes);
    if (refused) {
      showProblem(box, new Error(refused));
      return;
    }
    image = null;
    file = next;
    if (url) URL.revokeObjectURL(url);
    url = URL.createObjectURL(file);
    if (location.hash.includes("row=")) history.pushState(null, "", "#/picture");
    showPreview();
    run().then(showAnswer);
  }

  function goTo(next) {
    if (location.hash === `#/picture?row=${next.row}`) takeRow(next.row);
    else location.hash = `#/picture?row=${next.row}`;
  }

  async function takeRow(row) {
    try {
      image = await imageOfRow(row);
      file = null;
      showPreview();
      await run();
      showAnswer();
    } catch (error) {
      showProblem(box, error);
    }
  }

  /** In a narrow window the answer stands below the picture, perhaps out of sight. */
  function showAnswer() {
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!answer.hidden) verdict.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
  }

  async function surprise() {
    const group = ["unseen", "seen", "all"].includes(which.value) ? which.value : "unseen";
    try {
      const next = await anyImage(group);
      if (next) goTo(next);
    } catch (error) {
      showProblem(box, error);
    }
  }

  function ask(signal) {
    const settings = { classes: which.value, top: 5 };
    if (rate.value) settings.false_accept_rate = Number(rate.value);
    if (image) return post("api/predict", { row: image.row, ...settings }, signal);
    return sendPictures("api/predict", [file], { ...settings, keep: true }, signal);
  }

  async function run() {
    if (!image && !file) return;
    if (which.value === null) return;
    answer.setAttribute("aria-busy", "true");
    root.classList.add("working");
    const signal = requests.next();
    try {
      const result = await ask(signal);
      const first = result.answers[0];
      if (first.error) throw new Error(first.error);
      showProblem(box, null);
      draw(result, first);
      settle();
    } catch (error) {
      showProblem(box, error);
      if (error.name === "AbortError") return;
      answer.hidden = true;
      why.hide();
      near.hide();
      settle();
    }
  }

  function settle() {
    answer.setAttribute("aria-busy", "false");
    root.classList.remove("working");
  }

  function draw(result, first) {
    const best = first.classes[0];
    const handle = image ? { row: image.row } : { image: first.image };
    const known = handle.row !== undefined || Boolean(handle.image);
    empty.hidden = true;
    answer.hidden = false;
    verdict.replaceChildren(...verdictLines(result, first));
    showTruth(first);
    const scores = first.classes.map((each) => each.score);
    const low = Math.min(...scores);
    const range = Math.max(...scores) - low;
    const explains = info.explains && known && first.classes.length > 1;
    const rows = first.classes.map((each, index) => {
      const share = each.probability ?? (range ? 0.05 + (0.95 * (each.score - low)) / range : 1);
      const inside = [
        classFrame(each),
        h("span", { class: "ranked" },
          h("span", { class: "ranked-name" }, capital(each.label), h("small", { class: `tag ${kindOf(each)}` }, kindOf(each))),
          bar(share)),
        h("span", { class: "value" }, each.probability === null ? short(each.score) : percent(each.probability)),
      ];
      if (!explains) return h("li", {}, h("div", { class: "rank" }, inside));
      const said = index ? `Explain ${capital(best.label)} against ${each.label}` : `Explain ${each.label}`;
      return h("li", {}, h(
        "button", {
          type: "button", class: "rank", "aria-pressed": String(index === 0), title: said,
          on: { click: (event) => explain(event.currentTarget, index ? each.class : null) },
        }, inside,
      ));
    });
    ranking.replaceChildren(...rows);
    hint.textContent = explains ? "Press a class to see why the best name beats it." : "";

    function explain(pressed, against) {
      for (const each of ranking.querySelectorAll("button")) {
        each.setAttribute("aria-pressed", String(each === pressed));
      }
      why.show(handle, which.value, against).then((told) => {
        if (told) announce(`${told.labels.named} rather than ${told.labels.runner_up}: lead ${short(told.lead)}.`);
      });
    }
    if (explains) why.show(handle, which.value, null);
    else why.hide();
    if (dataset && known) near.show(handle);
    else near.hide();
    announce(verdictWords(first).full);
  }

  function verdictLines(result, first) {
    const words = verdictWords(first);
    return [
      h("p", { class: `named ${words.tone}` },
        words.before ? h("span", { class: "before" }, words.before) : null, h("strong", {}, words.name)),
      h("p", { class: "how-sure" }, doubt(result, first, info)),
    ];
  }

  function showTruth(first) {
    if (!image) return;
    const refused = first.verdict === "none of these";
    let right = first.answer === image.class && !refused;
    let text = "and so it was named";
    if (!which.includes(String(image.class))) {
      right = refused;
      text = refused ? "not among these classes, as the model says" : "not among these classes";
    } else if (!right) {
      const place = first.classes.findIndex((each) => each.class === image.class);
      if (place < 0) text = "not among the first five";
      else text = place ? `the name in place ${place + 1}` : "the likeliest, but turned down";
    }
    truth.replaceChildren("In truth: ", h("b", {}, capital(image.label)), h("span", {
      class: right ? "yes" : "no",
    }, ` – ${text}`));
  }

  function paste(event) {
    const pasted = [...(event.clipboardData?.files ?? [])].find(isPicture);
    if (!pasted) return;
    event.preventDefault();
    takeFile(pasted);
  }

  return {
    show(query) {
      document.addEventListener("paste", paste);
      const name = query.get("class");
      if (name && state.byName.has(name)) which.value = info.n_unseen ? ["unseen", name] : ["all", name];
      const row = Number(query.get("row"));
      if (query.has("row") && Number.isInteger(row) && row !== image?.row) takeRow(row);
      else if (name) run();
    },
    hide() {
      document.removeEventListener("paste", paste);
    },
    close() {
      requests.close();
      which.close();
      if (url) URL.revokeObjectURL(url);
    },
  };
}
