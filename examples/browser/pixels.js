// From a picture file to the pixels that a model takes: what latem does with Pillow, in a browser.
//
// A canvas makes pictures smaller in ways of its own, which no model was trained with. So the
// square in the middle is cut and resized here, step by step as Pillow does it: weights from a
// filter that grows with the step, in fixed point, along the rows and along the columns. Bytes are
// rounded in between, so the order of the two counts: Pillow 13 takes the columns first of pictures
// that are tall enough, as `columnsFirst` says (found by comparing, not documented); earlier
// versions never do.

const PRECISION = 2 ** 22;
const MOST_PIXELS = 178956970; // as latem has it

const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

const FILTERS = {
  bilinear: { reach: 1, weight: (x) => Math.max(1 - Math.abs(x), 0) },
  bicubic: {
    reach: 2,
    weight(x) {
      const a = -0.5;
      x = Math.abs(x);
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
    },
  },
  lanczos: { reach: 3, weight: (x) => (-3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

/** For each new pixel the first old one that counts, and the weights from there on. */
function weights(n, from, to, size, filter) {
  const scale = Math.fround(to - from) / size;
  const step = Math.max(scale, 1);
  const reach = filter.reach * step;
  return Array.from({ length: size }, (_, i) => {
    const centre = from + (i + 0.5) * scale;
    const first = Math.max(Math.trunc(centre - reach + 0.5), 0);
    const last = Math.min(Math.trunc(centre + reach + 0.5), n);
    const found = new Float64Array(last - first);
    let sum = 0;
    for (let k = 0; k < found.length; k += 1) {
      found[k] = filter.weight((k + first - centre + 0.5) * (1 / step));
      sum += found[k];
    }
    return { first, found: found.map((one) => fixed(sum === 0 ? one : one / sum)) };
  });
}

const fixed = (weight) => Math.trunc((weight < 0 ? -0.5 : 0.5) + weight * PRECISION);
const asByte = (sum) => Math.min(Math.max(Math.floor((sum + PRECISION / 2) / PRECISION), 0), 255);

/** Along one axis: `lines` lines of new pixels from old ones that stand `apart` entries apart. */
function along(old, table, lines, [oldLine, oldApart], made, [madeLine, madeApart]) {
  for (let line = 0; line < lines; line += 1) {
    for (let i = 0; i < table.length; i += 1) {
      const { first, found } = table[i];
      for (let colour = 0; colour < 3; colour += 1) {
        let place = line * oldLine + first * oldApart + colour;
        let sum = 0;
        for (let k = 0; k < found.length; k += 1, place += oldApart) sum += found[k] * old[place];
        made[line * madeLine + i * madeApart + colour] = asByte(sum);
      }
    }
  }
}

const columnsFirst = (width, height, size) => height > size && height - size > 2 * (width - size);

function nearest({ width, data }, size, [left, top, right, bottom]) {
  const made = new Uint8Array(size * size * 3);
  const [across, down] = [(right - left) / size, (bottom - top) / size];
  for (let y = 0, at = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1, at += 3) {
      const row = Math.floor(top + (y + 0.5) * down);
      const place = 4 * (row * width + Math.floor(left + (x + 0.5) * across));
      for (let colour = 0; colour < 3; colour += 1) made[at + colour] = data[place + colour];
    }
  }
  return made;
}

/**
 * A box of a picture, resized.
 *
 * @param {{width: number, height: number, data: Uint8ClampedArray}} picture RGBA
 * @param {number} size of the square that comes out
 * @param {number[]} box left, top, right, bottom
 * @param {string} interpolation
 * @returns {Uint8Array} RGB, row by row
 */
export function resized(picture, size, box, interpolation) {
  const [left, top, right, bottom] = box.map(Math.fround); // Pillow has them in single precision
  if (interpolation === "nearest") return nearest(picture, size, [left, top, right, bottom]);
  const filter = FILTERS[interpolation];
  const { width, height, data } = picture;
  const columns = weights(width, left, right, size, filter);
  const rows = weights(height, top, bottom, size, filter);
  const made = new Uint8Array(size * size * 3);
  if (columnsFirst(width, height, size)) {
    const between = new Uint8Array(size * width * 3);
    along(data, rows, width, [4, width * 4], between, [3, width * 3]);
    along(between, columns, size, [width * 3, 3], made, [size * 3, 3]);
    return made;
  }
  const start = rows[0].first;
  const last = rows[size - 1];
  const n = last.first + last.found.length - start;
  const between = new Uint8Array(n * size * 3);
  along(data.subarray(start * width * 4), columns, n, [width * 4, 4], between, [size * 3, 3]);
  const down = rows.map(({ first, found }) => ({ first: first - start, found }));
  along(between, down, size, [3, size * 3], made, [3, size * 3]);
  return made;
}

/** The part of a picture that an encoder looks at, at its size: see `encoder` in the metadata. */
export function prepared(picture, { size, crop, interpolation, squash }) {
  const { width, height } = picture;
  const [across, down] = squash ? [width, height] : Array(2).fill(Math.min(width, height) * crop);
  const [left, top] = [(width - across) / 2, (height - down) / 2];
  return resized(picture, size, [left, top, left + across, top + down], interpolation);
}

/** A picture file as pixels: upright as EXIF says, on white, colours as they stand in the file. */
export async function decoded(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, {
      imageOrientation: "from-image", colorSpaceConversion: "none", premultiplyAlpha: "none",
    });
  } catch {
    throw new Error(`“${file.name}” cannot be read as a picture; choose a JPEG, PNG or WebP file.`);
  }
  const { width, height } = bitmap;
  try {
    if (width * height > MOST_PIXELS) throw new Error("too many");
    const canvas = new OffscreenCanvas(width, height);
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, width, height);
    pen.drawImage(bitmap, 0, 0);
    return { width, height, data: pen.getImageData(0, 0, width, height).data };
  } catch {
    throw new Error(`“${file.name}” has ${width} × ${height} pixels, too many for this browser; make it smaller.`);
  } finally {
    bitmap.close();
  }
}
