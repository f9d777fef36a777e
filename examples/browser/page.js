// The page: a photo in, names out.

import { loaded } from "./namer.js";
import { decoded } from "./pixels.js";

const MODEL = "model.onnx";
const SHOWN = 5;

const by = (id) => document.getElementById(id);
const percent = (share) => `${(100 * share).toFixed(1)}%`;

let namer;
let picture = null;
let latest = 0;

function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function complain(error) {
  by("problem").textContent = error ? error.message : "";
  by("problem").hidden = !error;
}

function chosen() {
  return [...by("classes").querySelectorAll("input:checked")].map((box) => Number(box.value));
}

function row({ name, probability, score }) {
  const made = element("li");
  const number = element("data", namer.calibrated ? percent(probability) : score.toPrecision(3));
  number.value = namer.calibrated ? probability : score;
  const bar = element("div", "", "bar");
  bar.setAttribute("aria-hidden", "true");
  bar.append(element("span"));
  bar.firstChild.style.setProperty("--width", percent(probability));
  made.append(element("span", name), number, bar);
  return made;
}

function sentence(answer, n) {
  const [best] = answer.classes;
  const among = n === 1 ? "the only candidate" : `among ${n} classes`;
  const parts = [];
  if (!namer.calibrated) parts.push(`Best ${among}. The model was never calibrated: the order counts, not the size.`);
  else if (answer.verdict === "none of these") {
    parts.push(`Too unlike all of them. Had it to be one: ${percent(best.probability)} for ${best.name}, ${among}.`);
  } else parts.push(`${percent(best.probability)} sure, ${among}.`);
  if (answer.strangeness !== null) {
    parts.push(`${percent(answer.strangeness)} of pictures of other things look at least as much like one of these classes.`);
  }
  return parts.join(" ");
}

const BEFORE = { "none of these": "None of these — most like", doubtful: "Perhaps" };

function show(answer, n) {
  const name = element("p", "", "name");
  if (answer.verdict in BEFORE) name.append(element("span", BEFORE[answer.verdict], "before"));
  name.append(element("span", answer.classes[0].name));
  by("answer").replaceChildren(name, element("p", sentence(answer, n), "hint"));
  by("ranking").replaceChildren(...answer.classes.slice(0, SHOWN).map(row));
}

function nothing(text) {
  by("answer").replaceChildren(element("p", text, "hint"));
  by("ranking").replaceChildren();
}

function busy(yes) {
  by("answer").setAttribute("aria-busy", String(yes));
}

async function answer() {
  const mine = ++latest;
  busy(true);
  const places = namer.open ? chosen() : namer.names.map((_, place) => place);
  if (namer.open) by("chosen").textContent = `${places.length} of ${namer.names.length} classes may be the answer.`;
  if (!places.length) nothing("Choose at least one class below.");
  else if (!picture) nothing("Nothing named yet.");
  else {
    const found = await namer.name(picture, places);
    if (mine !== latest) return; // something else was asked meanwhile
    show(found, places.length);
  }
  busy(false);
}

async function take(file) {
  const mine = ++latest;
  complain(null);
  busy(true);
  try {
    const pixels = await decoded(file);
    if (mine !== latest) return;
    picture = pixels;
    const shown = by("shown");
    URL.revokeObjectURL(shown.src);
    shown.src = URL.createObjectURL(file);
    shown.alt = `Your photo, ${file.name}`;
    shown.hidden = false;
    await answer();
  } catch (error) {
    complain(error);
    busy(false);
  }
}

function listClasses() {
  by("candidates").hidden = !namer.open;
  by("classes").replaceChildren(...namer.names.map((name, place) => {
    const box = element("input");
    Object.assign(box, { type: "checkbox", value: place, checked: true });
    const label = element("label");
    label.append(box, element("span", String(name)));
    return label;
  }));
}

function listen() {
  const first = (files) => { if (files?.length) take(files[0]); };
  const drop = by("drop");
  by("file").addEventListener("change", (event) => first(event.target.files));
  document.addEventListener("paste", (event) => first(event.clipboardData.files));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") first(event.dataTransfer.files);
    });
  }
  by("classes").addEventListener("change", () => answer().catch(complain));
  for (const [id, checked] of [["all", true], ["none", false]]) {
    by(id).addEventListener("click", () => {
      for (const label of by("classes").querySelectorAll("label:not([hidden])")) label.firstChild.checked = checked;
      answer().catch(complain);
    });
  }
  by("search").addEventListener("input", () => {
    const wanted = by("search").value.trim().toLowerCase();
    for (const label of by("classes").children) label.hidden = !label.textContent.toLowerCase().includes(wanted);
  });
}

try {
  namer = await loaded(MODEL);
  listClasses();
  listen();
  by("parts").hidden = false;
  by("state").textContent = `Ready: ${namer.about.model}, ${namer.names.length} classes.`;
  await answer();
} catch (error) {
  by("state").textContent = "";
  complain(error);
}
