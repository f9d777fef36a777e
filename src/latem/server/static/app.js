// The page itself: which view is shown, which model is asked, and the door.

import { announce, h, problemBox, showProblem } from "./dom.js";
import { settings } from "./api.js";
import { signIn } from "./door.js";
import { loadAbout, loadClasses, model, state } from "./state.js";
import * as picture from "./picture.js";
import * as invent from "./invent.js";
import * as album from "./album.js";
import * as scores from "./scores.js";

const VIEWS = { picture, invent, album, scores };
const main = document.getElementById("main");
const made = new Map(); // views that have been opened: name → {root, view}
let shown = null; // name of the view on the page

function parse() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: path in VIEWS ? path : "picture", query: new URLSearchParams(query) };
}

function make(name) {
  const root = h("div", { class: `view ${name}` });
  const view = VIEWS[name].create(root);
  made.set(name, { root, view });
}

function route(first = false) {
  if (!settings.model) return;
  const { name, query } = parse();
  if (!made.has(name)) make(name);
  if (shown !== name) {
    if (shown) made.get(shown)?.view.hide();
    main.replaceChildren(made.get(name).root);
    shown = name;
    document.title = `${VIEWS[name].title} – latem explorer`;
    for (const link of document.querySelectorAll(".tabs a")) {
      const here = link.getAttribute("href") === `#/${name}`;
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (first !== true) {
      main.querySelector("h1").focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  } else if (query.has("row")) window.scrollTo(0, 0);
  made.get(name).view.show(query);
}

function forgetViews() {
  if (shown) made.get(shown)?.view.hide();
  for (const { view } of made.values()) view.close?.();
  made.clear();
  shown = null;
}

function showServed() {
  const { models, dataset } = state.about;
  const served = document.getElementById("served");
  const parts = [];
  if (models.length > 1) {
    const choice = h(
      "select", { id: "model", on: { change: () => useModel(choice.value) } },
      models.map((each) => h("option", { value: each.name }, each.name)),
    );
    choice.value = settings.model;
    parts.push(h("label", { for: "model" }, "Model"), choice);
  } else if (models.length) parts.push(h("span", {}, `Model ${models[0].name}`));
  if (dataset) parts.push(h("span", { class: "dataset", title: dataset.note || null }, dataset.name));
  served.replaceChildren(...parts);
  const info = model();
  if (!info) return;
  const kind = [info.kind, info.table ? `class table ${info.table}` : "", info.encoder ? `encoder ${info.encoder}` : ""];
  document.getElementById("about").textContent = ` · ${kind.filter(Boolean).join(", ")}`;
}

async function useModel(name) {
  settings.model = name;
  forgetViews();
  showServed();
  await openViews(false);
  announce(`Model ${name}.`);
}

async function openViews(first) {
  try {
    await loadClasses();
    route(first);
  } catch (error) {
    refuse(error);
  }
}

function refuse(error) {
  const box = problemBox();
  main.replaceChildren(
    h("h1", { tabindex: "-1" }, "latem explorer"), box,
    h("p", {}, h("button", { type: "button", class: "main", on: { click: () => start(false) } }, "Try again")),
  );
  showProblem(box, error);
}

async function start(first = true) {
  try {
    await loadAbout();
    if (state.about.token_needed && !state.about.signed_in) {
      if (!(await settings.signIn())) throw new Error("This server asks for a token before it answers.");
      await loadAbout();
    }
    showServed();
    if (!settings.model) throw new Error("This server serves no model.");
  } catch (error) {
    refuse(error);
    return;
  }
  await openViews(first);
}

settings.signIn = signIn;
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.querySelector("h1")?.focus();
});
window.addEventListener("hashchange", () => route());
start();
