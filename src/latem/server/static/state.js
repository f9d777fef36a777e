// What the page knows of the server: what it serves and which classes there are.

import { get, settings } from "./api.js";

export const state = { about: null, classes: [], byName: new Map() };

/** Sends "classes" when the list of classes has changed. */
export const changes = new EventTarget();

/** What the server says of the model in use. */
export function model() {
  return state.about.models.find((each) => each.name === settings.model) ?? null;
}

export async function loadAbout() {
  state.about = await get("api/about", { model: null });
  const names = state.about.models.map((each) => each.name);
  if (!names.includes(settings.model)) settings.model = names[0] ?? null;
  return state.about;
}

export async function loadClasses() {
  const { classes } = await get("api/classes");
  state.classes = classes.map((each) => ({ ...each, name: String(each.name) }));
  state.byName = new Map(state.classes.map((each) => [each.name, each]));
  changes.dispatchEvent(new Event("classes"));
}

export function labelOf(name) {
  return state.byName.get(String(name))?.label ?? String(name);
}

export function invented() {
  return state.classes.filter((each) => each.invented);
}

/** In one word what a class is to the model. */
export function kindOf(each) {
  if (each.invented) return "invented";
  return each.seen ? "seen" : "unseen";
}

/** Classes as options of a combobox. */
export function classOptions(keep = () => true) {
  return state.classes.filter(keep).map((each) => ({
    value: each.name, label: each.label, symbol: each.symbol, note: kindOf(each),
  }));
}

const images = new Map(); // images of the dataset that the page has met, by row

/** Keep what the server said of images, so that a link to one needs no second question. */
export function remember(list) {
  for (const image of list) images.set(image.row, image);
}

/** What the server knows of the image of a row. */
export async function imageOfRow(row) {
  if (!images.has(row)) {
    const found = await get("api/images", { among: "all", offset: row, limit: 1 });
    remember(found.images); // among all, images stand in the order of their rows
  }
  if (!images.has(row)) throw new Error(`The dataset has no image ${row}.`);
  return images.get(row);
}

/** One image of the dataset by chance. */
export async function anyImage(among) {
  const { n } = await get("api/images", { among, offset: 0, limit: 1 });
  if (!n) return null;
  const offset = Math.floor(Math.random() * n);
  const found = await get("api/images", { among, offset, limit: 1 });
  remember(found.images);
  return found.images[0] ?? null;
}
