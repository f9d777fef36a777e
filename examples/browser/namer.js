// A model that names pictures: a file of `latem export --pictures`, run by onnxruntime-web.

import { readModel } from "./onnx_file.js";
import { prepared } from "./pixels.js";

const RUNTIME = "./node_modules/onnxruntime-web/dist/ort.wasm.min.mjs";

async function runtime() {
  try {
    return await import(RUNTIME);
  } catch {
    throw new Error("onnxruntime-web is not in node_modules: run “npm install” in the folder of this page.");
  }
}

async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok) {
    throw new Error(`There is no ${address} beside this page: write one with “latem export MODEL --onnx ${address} --pictures”.`);
  }
  return new Uint8Array(await answer.arrayBuffer());
}

function opened(bytes, address) {
  let file;
  try {
    file = readModel(bytes);
  } catch (error) {
    throw new Error(`${address} cannot be read as an ONNX file: ${error.message}.`);
  }
  if (!file.about) throw new Error(`${address} is not a file of latem export.`);
  if (!file.about.pictures) {
    throw new Error(`${address} takes features, not pictures: write it with “latem export MODEL --onnx ${address} --pictures”.`);
  }
  return file;
}

/** Load a model from beside the page. */
export async function loaded(address) {
  const file = opened(await fetched(address), address);
  const ort = await runtime();
  ort.env.wasm.numThreads = 1; // more need headers that a plain file server does not send
  ort.env.logLevel = "error";
  const session = await ort.InferenceSession.create(file.bytes, {
    executionProviders: ["wasm"], logSeverityLevel: 3,
  });
  return new Namer(ort, session, file);
}

class Namer {
  constructor(ort, session, { about, defaults }) {
    Object.assign(this, { ort, session, about, defaults });
    this.names = about.classes;
    this.open = "class_table" in defaults;
    this.calibrated = "temperature" in about.calibration;
  }

  /**
   * Name a picture among some of the classes.
   *
   * @param {{width: number, height: number, data: Uint8ClampedArray}} picture RGBA
   * @param {number[]} chosen places of the candidates among `names`
   * @returns {Promise<object>} `classes`, best first, and `verdict` and `strangeness`, if known
   */
  async name(picture, chosen) {
    const { size } = this.about.encoder;
    const feeds = { pictures: this.tensor("uint8", prepared(picture, this.about.encoder), [1, size, size, 3]) };
    const given = { ...this.defaults, ...(this.open ? this.among(chosen) : {}) };
    for (const [name, { type, data, dims }] of Object.entries(given)) feeds[name] = this.tensor(type, data, dims);
    const { scores, probabilities, verdict, strangeness } = await this.session.run(feeds);
    const places = this.open ? chosen : this.names.map((_, place) => place);
    const classes = places.map((place, column) => ({
      name: String(this.names[place]),
      score: scores.data[column],
      probability: probabilities.data[column],
    }));
    classes.sort((one, other) => other.probability - one.probability);
    return {
      classes,
      verdict: verdict ? this.about.verdicts[Number(verdict.data[0])] : null,
      strangeness: strangeness ? strangeness.data[0] : null,
    };
  }

  tensor(type, data, dims) {
    return new this.ort.Tensor(type, data, dims);
  }

  /** Inputs that make some of the classes the candidates. */
  among(chosen) {
    const [, width] = this.defaults.class_table.dims;
    const table = new Float32Array(chosen.length * width);
    chosen.forEach((place, row) => {
      table.set(this.defaults.class_table.data.subarray(place * width, (place + 1) * width), row * width);
    });
    const seen = chosen.map((place) => this.about.seen[place]);
    const mixed = seen.includes(true) && seen.includes(false);
    const names = new Set(chosen.map((place) => this.names[place]));
    const bools = (values) => ({ type: "bool", data: Uint8Array.from(values, Number), dims: [values.length] });
    return {
      class_table: { type: "float32", data: table, dims: [chosen.length, width] },
      seen: bools(seen),
      seen_penalty: {
        type: "float32", dims: [1], data: Float32Array.of(mixed ? this.about.calibration.seen_penalty ?? 0 : 0),
      },
      ...(this.about.learned ? { rivals: bools(this.about.learned.map((name) => !names.has(name))) } : {}),
    };
  }
}
