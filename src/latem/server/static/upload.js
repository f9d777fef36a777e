// Pictures to an album, a few per request, one request after the other.

import { sendPictures } from "./api.js";
import { refusal } from "./files.js";

const AT_ONCE = 8; // pictures per request

/** Groups of files that fit one request by number and by bytes. */
export function chunks(files, limits) {
  const most = Math.min(AT_ONCE, limits.pictures_per_request || AT_ONCE);
  const room = limits.upload_bytes || Infinity;
  const groups = [];
  let group = [];
  let bytes = 0;
  for (const file of files) {
    if (group.length && (group.length === most || bytes + file.size > 0.9 * room)) {
      groups.push(group);
      group = [];
      bytes = 0;
    }
    group.push(file);
    bytes += file.size;
  }
  return group.length ? [...groups, group] : groups;
}

/**
 * Send files to an album.
 *
 * onAdded(file, answer) is called for each file with its number or its error, onProgress(done,
 * all) after each request. A file the server would refuse is not sent.
 */
export async function upload(album, files, { limits, signal, onAdded, onProgress }) {
  const fit = [];
  for (const file of files) {
    const error = refusal(file, limits.upload_bytes);
    if (error) onAdded(file, { error });
    else fit.push(file);
  }
  let done = 0;
  onProgress(0, fit.length);
  for (const group of chunks(fit, limits)) {
    const { added } = await sendPictures(`api/albums/${album}/pictures`, group, {}, signal);
    added.forEach((answer, index) => onAdded(group[index], answer));
    done += group.length;
    onProgress(done, fit.length);
  }
}
