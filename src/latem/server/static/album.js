// An album: many pictures at once, named one by one or together, put right by hand.

import {
  announce, button, counted, h, latest, problemBox, segmented, showProblem,
} from "./dom.js";
import { address, post, remove } from "./api.js";
import { albumCard } from "./album_card.js";
import { candidates } from "./candidates.js";
import { dropZone, inOrder, isPicture } from "./files.js";
import { model, state } from "./state.js";
import { upload } from "./upload.js";
import { doubtOf, verdictWords } from "./verdicts.js";

export const title = "An album";

const ORDERS = {
  order: (one, other) => one.number - other.number,
  doubt: (one, other) => doubtOf(other.answer) - doubtOf(one.answer) || one.number - other.number,
  name: (one, other) => nameOf(one).localeCompare(nameOf(other)) || one.number - other.number,
};

function nameOf(item) {
  return verdictWords(item.answer).name;
}

function partOf(item) {
  if (item.answer.mode === "by hand") return "by hand";
  return item.answer.verdict ?? "named";
}

export function create(root) {
  const info = model();
  const { limits } = state.about;
  const requests = latest();
  let album = null; // id on the server
  let items = new Map(); // pictures by number: {number, file, url, answer, card}
  let labels = {}; // names given by hand, by number
  let order = "order";
  let part = "all";
  let together = false;
  let uploading = null;

  const box = problemBox();
  const progress = h("progress", { id: "upload", max: 1, value: 0 });
  const progressText = h("label", { for: "upload" });
  const cancel = button("Cancel", () => uploading?.abort());
  const bar = h("div", { class: "uploading", hidden: true }, progressText, progress, cancel);
  const files = chooser({ multiple: true, accept: "image/*" });
  const folder = chooser({ webkitdirectory: true });
  const drop = h(
    "div", { class: "drop wide-drop" },
    h("p", {}, "Drop a folder or many pictures here"),
    h("div", { class: "row sources" },
      button("Choose pictures", () => files.click(), { class: "main" }),
      button("Choose a folder", () => folder.click())),
    h("p", { class: "hint" }, `At most ${counted(limits.album_pictures, "picture")}. The server keeps what it measured of them for this session, not the pictures.`),
    files, folder, bar,
  );
  const which = candidates({ legend: "Name them out of", onChange: () => name() });
  const jointly = h("input", {
    type: "checkbox", id: "together", "aria-describedby": "together-hint",
    on: { change: () => { together = jointly.checked; name(); } },
  });
  const settings = h(
    "div", { class: "album-settings" }, which.element,
    h("div", { class: "switch" },
      h("label", { for: "together" }, jointly, "Name them together (transductive)"),
      h("p", { class: "hint", id: "together-hint" },
        "The pictures of the album help to name each other: good for many pictures of few classes, of no use for one.")),
  );
  const summary = h("p", { class: "summary", role: "status" });
  const bad = h("details", { class: "unreadable", hidden: true });
  const tools = h("div", { class: "row spread album-tools", hidden: true });
  const list = h("ul", { class: "grid album-grid" });
  const none = h("p", { class: "hint", hidden: true }, "No picture of the album is of that kind.");

  root.append(
    h("h1", { tabindex: "-1" }, title),
    h("p", { class: "lead" }, "Name a whole folder, look at the doubtful ones, put wrong names right."),
    ...(info.names_pictures ? [drop, box, settings, bad, summary, tools, none, list]
      : [h("p", { class: "note" }, `An album needs a model that can read pictures: ${info.why_no_pictures}`)]),
  );
  dropZone(drop, add);

  function chooser(properties) {
    const input = h("input", {
      type: "file", class: "unseen-text", tabindex: "-1", "aria-hidden": "true", ...properties,
      on: { change: () => { add([...input.files]); input.value = ""; } },
    });
    return input;
  }

  async function add(chosen) {
    if (uploading) return;
    const pictures = inOrder(chosen.filter(isPicture));
    if (!pictures.length) {
      showProblem(box, new Error("There is no picture among these files; JPEG, PNG and WebP can be read."));
      return;
    }
    const space = limits.album_pictures - items.size;
    if (pictures.length > space) {
      showProblem(box, new Error(
        `These are ${counted(pictures.length, "picture")}, but the album has room for ${space} of at most ${limits.album_pictures}.`,
      ));
      return;
    }
    showProblem(box, null);
    uploading = new AbortController();
    bar.hidden = false;
    const refused = [];
    try {
      if (!album) album = (await post("api/albums", {})).album;
      await upload(album, pictures, {
        limits, signal: uploading.signal, onProgress: showProgress,
        onAdded: (file, answer) => {
          if (answer.error) refused.push([file.name, answer.error]);
          else items.set(answer.number, { number: answer.number, file, url: URL.createObjectURL(file) });
        },
      });
    } catch (error) {
      showProblem(box, error);
      if (error.name === "AbortError") announce("The upload is cancelled; what had arrived is kept.");
    } finally {
      uploading = null;
      bar.hidden = true;
    }
    showRefused(refused);
    if (items.size) await name();
  }

  function showProgress(done, all) {
    progress.max = all;
    progress.value = done;
    progressText.textContent = `${done} of ${counted(all, "picture")}`;
  }

  function showRefused(refused) {
    bad.hidden = !refused.length;
    bad.open = true;
    bad.replaceChildren(
      h("summary", {}, `${counted(refused.length, "file")} could not be read`),
      h("ul", {}, refused.map(([file, why]) => h("li", {}, h("b", {}, file), `: ${why}`))),
    );
  }

  async function name() {
    if (!album || !items.size || which.value === null) return;
    list.setAttribute("aria-busy", "true");
    summary.textContent = "Naming …";
    try {
      const kept = Object.fromEntries(Object.entries(labels).filter(([, given]) => which.includes(given)));
      const left = Object.keys(labels).length - Object.keys(kept).length;
      const asked = { classes: which.value, together, labels: kept, top: 5 };
      const result = await post(`api/albums/${album}/names`, asked, requests.next());
      for (const answer of result.answers) {
        const item = items.get(answer.number);
        if (item) item.answer = answer;
      }
      showProblem(box, null);
      const changed = together ? ` Together, ${counted(result.n_changed, "name")} came out otherwise than alone.` : "";
      const outside = left ? ` ${counted(left, "name")} given by hand ${left === 1 ? "is" : "are"} not among these classes.` : "";
      summary.textContent = `${counted(items.size, "picture")} named ${result.among}.${changed}${outside}`;
      draw();
    } catch (error) {
      if (error.name !== "AbortError") summary.textContent = "";
      showProblem(box, error);
    }
    list.setAttribute("aria-busy", "false");
  }

  /** A name given by hand; a class that was no candidate becomes one. */
  function correct(item, given) {
    if (given === null) delete labels[item.number];
    else {
      labels[item.number] = given;
      if (!which.includes(given)) which.value = [which.value].flat().concat(given);
    }
    name();
  }

  function draw() {
    const named = [...items.values()].filter((item) => item.answer);
    const counts = new Map();
    for (const item of named) counts.set(partOf(item), (counts.get(partOf(item)) ?? 0) + 1);
    if (part !== "all" && !counts.has(part)) part = "all";
    drawTools(named.length, counts);
    for (const item of named) {
      item.card ??= albumCard(item, correct);
      item.card.paint();
    }
    place(named);
  }

  function place(named = [...items.values()].filter((item) => item.answer)) {
    const wanted = named.filter((item) => part === "all" || partOf(item) === part).sort(ORDERS[order]);
    none.hidden = wanted.length > 0 || !named.length;
    const held = document.activeElement;
    list.replaceChildren(...wanted.map((item) => item.card.element));
    if (list.contains(held)) held.focus({ preventScroll: true });
  }

  function drawTools(n, counts) {
    tools.hidden = !n;
    const parts = ["named", "doubtful", "none of these", "by hand"].filter((each) => counts.has(each));
    const sort = segmented({
      legend: "Sort by", value: order, onChange: (value) => { order = value; place(); },
      options: [{ value: "order", label: "Order" }, { value: "doubt", label: "Doubt" }, { value: "name", label: "Name" }],
    });
    const filter = segmented({
      legend: "Show", value: part, onChange: (value) => { part = value; place(); },
      options: [
        { value: "all", label: "All", hint: String(n) },
        ...parts.map((each) => ({ value: each, label: each, hint: String(counts.get(each)) })),
      ],
    });
    tools.replaceChildren(
      sort.element, filter.element,
      h("div", { class: "row" },
        h("a", { class: "button", href: address(`api/albums/${album}/answers.csv`), download: "" }, "Download CSV"),
        button("Clear the album", clear)),
    );
  }

  async function clear() {
    const gone = album;
    album = null;
    labels = {};
    for (const item of items.values()) URL.revokeObjectURL(item.url);
    items = new Map();
    summary.textContent = "";
    showRefused([]);
    list.replaceChildren();
    tools.hidden = true;
    root.querySelector("h1").focus();
    try {
      await remove(`api/albums/${gone}`);
      announce("The album is cleared.");
    } catch (error) {
      showProblem(box, error);
    }
  }

  return {
    show() {},
    hide() {},
    close() {
      uploading?.abort();
      requests.close();
      which.close();
      for (const item of items.values()) URL.revokeObjectURL(item.url);
      if (album) remove(`api/albums/${album}`).catch(() => announce("The album stays on the server until the session ends."));
    },
  };
}
