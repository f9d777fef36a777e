// Requests to the server: the model's name goes with each, errors come back as whole sentences.

export const settings = {
  model: null, // name of the model that requests are about
  signIn: async () => false, // asks for a token; true if the server took it
};

const LONGEST_WAIT = 30; // seconds that a busy server may ask us to wait

/** What the server said was wrong; `message` can be shown as it is. */
export class Problem extends Error {
  constructor(status, message, wait = 0) {
    super(message);
    this.name = "Problem";
    this.status = status;
    this.wait = wait;
  }
}

async function problemOf(answer) {
  let detail = "";
  try {
    const body = await answer.json();
    if (typeof body.detail === "string") detail = body.detail;
    detail = detail || body.title || "";
  } catch {
    detail = "";
  }
  const wait = Number(answer.headers.get("Retry-After")) || 1;
  const text = detail || `The server answered ${answer.status} ${answer.statusText}.`;
  return new Problem(answer.status, text, Math.min(wait, LONGEST_WAIT));
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("given up", "AbortError"));
    });
  });
}

async function ask(method, path, options, tries = { busy: 1, door: 1 }) {
  let answer;
  try {
    answer = await fetch(path, { method, credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The server does not answer. See whether `latem serve` still runs.");
  }
  if (answer.ok) return answer;
  const problem = await problemOf(answer);
  const busy = answer.status === 503 || answer.status === 429;
  if (busy && tries.busy > 0) {
    await pause(problem.wait, options.signal);
    return ask(method, path, options, { ...tries, busy: 0 });
  }
  if (answer.status === 401 && tries.door > 0 && (await settings.signIn())) {
    return ask(method, path, options, { ...tries, door: 0 });
  }
  throw problem;
}

/** A path with its query; the model is named unless `model` is given as null. */
export function address(path, query = {}) {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries({ model: settings.model, ...query })) {
    if (value === null || value === undefined || value === "") continue;
    for (const each of [value].flat()) search.append(key, each);
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

export async function get(path, query = {}, signal = undefined) {
  const answer = await ask("GET", address(path, query), { signal });
  return answer.json();
}

export async function remove(path, query = {}) {
  await ask("DELETE", address(path, query), {});
}

export async function post(path, body, signal = undefined) {
  const named = settings.model ? { model: settings.model, ...body } : body;
  const answer = await ask("POST", path, {
    signal,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(named),
  });
  return answer.status === 204 ? null : answer.json();
}

/** Send pictures as a form; `fields` are plain values or, for lists, JSON. */
export async function sendPictures(path, files, fields = {}, signal = undefined) {
  const form = new FormData();
  for (const [key, value] of Object.entries({ model: settings.model, ...fields })) {
    if (value === null || value === undefined) continue;
    form.append(key, Array.isArray(value) ? JSON.stringify(value) : String(value));
  }
  for (const file of files) form.append("pictures", file, file.name || "picture.png");
  const answer = await ask("POST", path, { signal, body: form });
  return answer.json();
}

/** Try a token at the door; a Problem of status 401 if it does not fit. */
export async function openSession(token) {
  const answer = await fetch("api/session", {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (!answer.ok) throw await problemOf(answer);
}

/** Address of the picture of a row of the dataset. */
export function pictureAddress(row, size) {
  return `api/pictures/${row}?size=${size}`;
}
