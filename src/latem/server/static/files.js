// Pictures out of what people drop, paste or choose: files, and folders with all they hold.

const ENDINGS = /\.(jpe?g|png|webp|gif|bmp|tiff?|avif|heic)$/i;

/** Whether a file is a picture by its kind or, where the browser knows none, by its ending. */
export function isPicture(file) {
  return file.type ? file.type.startsWith("image/") : ENDINGS.test(file.name);
}

/** Files by their paths, numbers in them counted: folders come in any order. */
export function inOrder(files) {
  const path = (file) => file.webkitRelativePath || file.name;
  return [...files].sort((one, other) => path(one).localeCompare(path(other), "en", { numeric: true }));
}

function size(bytes) {
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
}

/** Why a file is not worth sending, or "". */
export function refusal(file, limit) {
  if (!isPicture(file)) return `'${file.name}' is not a picture; choose a JPEG, PNG or WebP file.`;
  if (limit && file.size > limit) {
    return `'${file.name}' has ${size(file.size)}; this server takes at most ${size(limit)}.`;
  }
  return "";
}

function readEntries(reader) {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

async function walk(entry, found) {
  if (entry.isFile) {
    found.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
    return;
  }
  const reader = entry.createReader();
  for (let batch = await readEntries(reader); batch.length; batch = await readEntries(reader)) {
    for (const each of batch) await walk(each, found);
  }
}

/** Every file of a drop, those in folders included. */
export async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const plain = [...transfer.files]; // empty once this function has waited
  if (!entries.length) return plain;
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

/** Let people drop files on an element. onFiles(files) gets them, folders read through. */
export function dropZone(element, onFiles) {
  let depth = 0;
  element.addEventListener("dragenter", (event) => {
    event.preventDefault();
    depth += 1;
    element.classList.add("over");
  });
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("dragleave", () => {
    depth -= 1;
    if (depth <= 0) element.classList.remove("over");
  });
  element.addEventListener("drop", async (event) => {
    event.preventDefault();
    depth = 0;
    element.classList.remove("over");
    onFiles(await droppedFiles(event.dataTransfer));
  });
}
