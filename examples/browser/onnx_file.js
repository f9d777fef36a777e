// What a page has to know of an ONNX file of `latem export`, read from its bytes.
//
// onnxruntime-web tells neither the metadata of a file nor the defaults of its inputs, and takes no
// input that has a default. So both are read here, and the defaults are taken out of the file: then
// they are inputs like any other, to be given in every run. An ONNX file is a protobuf message, a
// row of numbered fields; only those below are looked at.

const MODEL = { graph: 7, metadata: 14 };
const GRAPH = { initializer: 5, input: 11 };
const TENSOR = { dims: 1, type: 2, name: 8, bytes: 9 };
const ENTRY = { key: 1, value: 2 };
const VALUE = { name: 1 };
const TYPES = { 1: ["float32", Float32Array], 9: ["bool", Uint8Array] };
const KEY = "latem";

const text = (bytes) => new TextDecoder().decode(bytes);

function varint(bytes, place) {
  let value = 0;
  for (let factor = 1; place < bytes.length; factor *= 128) {
    const byte = bytes[place++];
    value += (byte & 127) * factor;
    if (byte < 128) return [value, place];
  }
  throw new Error("it is cut short");
}

/** Fields of a message: their number, their content, and all of their bytes. */
function* fields(bytes) {
  let place = 0;
  while (place < bytes.length) {
    const start = place;
    let [tag, content] = varint(bytes, place);
    const kind = tag % 8;
    let value = null;
    if (kind === 0) {
      [value, place] = varint(bytes, content);
    } else if (kind === 1 || kind === 5) {
      place = content + (kind === 1 ? 8 : 4);
    } else if (kind === 2) {
      const [length, from] = varint(bytes, content);
      place = from + length;
      value = bytes.subarray(from, place);
    } else {
      throw new Error(`it has a field of kind ${kind}`);
    }
    if (place > bytes.length) throw new Error("it is cut short");
    yield { number: (tag - kind) / 8, value, whole: bytes.subarray(start, place) };
  }
}

function find(bytes, number) {
  for (const field of fields(bytes)) if (field.number === number) return field.value;
  return null;
}

function tensor(bytes) {
  const dims = [];
  let type = null;
  let raw = new Uint8Array();
  for (const { number, value } of fields(bytes)) {
    if (number === TENSOR.type) type = value;
    else if (number === TENSOR.bytes) raw = value;
    else if (number === TENSOR.dims && typeof value === "number") dims.push(value);
    else if (number === TENSOR.dims) {
      for (let place = 0, size; place < value.length; dims.push(size)) [size, place] = varint(value, place);
    }
  }
  if (!(type in TYPES)) throw new Error(`a default of type ${type} was not expected`);
  const [name, Kind] = TYPES[type];
  return { type: name, dims, data: new Kind(raw.slice().buffer) };
}

function lengthAsBytes(length) {
  const made = [];
  for (; length > 127; length = Math.floor(length / 128)) made.push((length % 128) + 128);
  return [...made, length];
}

function joined(parts) {
  const made = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    made.set(part, place);
    place += part.length;
  }
  return made;
}

/**
 * A file of `latem export`, taken apart.
 *
 * @param {Uint8Array} bytes of the file
 * @returns {{about: object, defaults: object, bytes: Uint8Array}} what the file says of itself, the
 *   defaults of its inputs by name, and the file without these
 */
export function readModel(bytes) {
  const defaults = {};
  const parts = [];
  let about = null;
  for (const { number, value, whole } of fields(bytes)) {
    if (number === MODEL.metadata && text(find(value, ENTRY.key)) === KEY) {
      about = JSON.parse(text(find(value, ENTRY.value)));
    }
    if (number !== MODEL.graph) {
      parts.push(whole);
      continue;
    }
    const inputs = new Set();
    for (const field of fields(value)) {
      if (field.number === GRAPH.input) inputs.add(text(find(field.value, VALUE.name)));
    }
    const kept = [];
    for (const field of fields(value)) {
      const name = field.number === GRAPH.initializer ? text(find(field.value, TENSOR.name)) : null;
      if (inputs.has(name)) defaults[name] = tensor(field.value);
      else kept.push(field.whole);
    }
    const graph = joined(kept);
    parts.push(new Uint8Array([MODEL.graph * 8 + 2, ...lengthAsBytes(graph.length)]), graph);
  }
  return { about, defaults, bytes: joined(parts) };
}
