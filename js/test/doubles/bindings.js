/** The wasm module, as far as the package's own code can tell. */

import { createHash } from "node:crypto";

/** What the last engines did. */
export const seen = {
  /** @type {number[]} */
  files: [],
  /** @type {string[]} */
  options: [],
  freed: 0,
  /** @type {string[]} */
  generations: [],
};

/** What the next calls do: `reads` are the pieces that loading reads, in this order. */
export const script = {
  /** @type {[offset: number, length: number][] | null} */
  reads: null,
  /** @type {unknown} */
  loadThrows: null,
  /** @type {unknown} */
  generateThrows: null,
  /** Whether the module traps in the middle of a promise, so that the promise never settles. */
  hangs: false,
};

/** What was read by the last load. @type {Uint8Array[]} */
export let pieces = [];

export class Sha256 {
  #hash = createHash("sha256");
  update(/** @type {Uint8Array} */ bytes) {
    this.#hash.update(bytes);
  }
  hex() {
    return this.#hash.digest("hex");
  }
}

export class WasmCancel {
  state = { set: false };
  cancel() {
    this.state.set = true;
  }
  share() {
    const other = new WasmCancel();
    other.state = this.state;
    return other;
  }
  free() {}
}

export const turn = () => new Promise((resolve) => setTimeout(resolve, 1));

class WasmEngine {
  report() {
    return JSON.stringify({ chosen: "cpu", rungs: [] });
  }
  info() {
    return JSON.stringify({ architecture: "double", name: null, backend: "cpu" });
  }
  stats() {
    return JSON.stringify({ dispatches: 1 });
  }
  encode(/** @type {string} */ text) {
    return Uint32Array.from(text, (c) => c.charCodeAt(0));
  }
  encode_chat(/** @type {string} */ json) {
    return this.encode(JSON.parse(json).map((/** @type {any} */ m) => `${m.role}:${m.content};`).join(""));
  }
  /** A conversation of which one message made room. @param {string} messages @param {string} options */
  chat_prompt(messages, options) {
    const dropped_messages = JSON.parse(options).overflow === "shift" ? 1 : 0;
    const tokens = [...this.encode_chat(JSON.stringify(JSON.parse(messages).slice(dropped_messages)))];
    return JSON.stringify({ tokens, keep: 2, dropped_messages });
  }
  decode(/** @type {Uint32Array} */ tokens) {
    return String.fromCharCode(...tokens);
  }
  /** @param {Uint32Array} tokens @param {string} json @param {any} onPiece @param {WasmCancel} cancel */
  async generate(tokens, json, onPiece, cancel) {
    const { max_tokens = 3, done = [], overflow } = JSON.parse(json);
    seen.options.push(json);
    seen.generations.push("begin");
    const generated = [...done];
    let finish = "length";
    /** @type {object | null} */
    let full = null;
    if (script.hangs) await new Promise(() => {});
    while (generated.length < max_tokens) {
      await turn();
      if (script.generateThrows) throw script.generateThrows;
      if (cancel.state.set) {
        finish = "cancelled";
        break;
      }
      // Every third token the context is full.
      if (overflow === "shift" && generated.length > 0 && generated.length % 3 === 0) {
        full = { policy: "shift", dropped_tokens: 2 * (generated.length / 3), times: generated.length / 3, ms: 1 };
        onPiece(undefined, "", JSON.stringify(full));
      }
      generated.push(97 + (generated.length % 26));
      onPiece(generated.at(-1), String.fromCharCode(generated.at(-1) ?? 0));
    }
    seen.generations.push("end");
    const text = String.fromCharCode(...generated);
    const counts = { prompt_tokens: tokens.length, cached_tokens: 1, prefill_ms: 2, decode_ms_per_token: 1 };
    const steady = { steady_steps: 1, steady: { dispatches: 5 } };
    return JSON.stringify({ ...counts, ...steady, tokens: generated, text, finish, overflow: full });
  }
  /** @param {Uint32Array} tokens @param {number} dimensions @param {boolean} normalize */
  async embed(tokens, dimensions, normalize) {
    await turn();
    const vector = Float32Array.of(tokens.length, normalize ? 1 : 0, 0.5);
    return dimensions > 0 ? vector.slice(0, dimensions) : vector;
  }
  free() {
    seen.freed += 1;
  }
}

export async function load(/** @type {any} */ source, /** @type {string} */ options, /** @type {any} */ onProgress) {
  seen.options.push(options);
  seen.files = source.files;
  pieces = [];
  onProgress("header", 0, source.size);
  onProgress("select", 0, source.size);
  if (script.loadThrows) throw script.loadThrows;
  if (script.hangs) await new Promise(() => {});
  const reads = script.reads ?? [[0, source.size]];
  for (const [offset, length] of reads) {
    try {
      pieces.push((await source.readAt(offset, length)).slice());
    } catch (error) {
      throw Object.assign(new Error(`cannot read: ${error}`), { code: "source" });
    }
    onProgress("weights", offset + length, source.size);
    await turn();
  }
  return new WasmEngine();
}

export async function probe() {
  return JSON.stringify({ chosen: "cpu", rungs: [] });
}

export async function tune(/** @type {any} */ source, /** @type {string} */ options, /** @type {any} */ onTrial) {
  const { tuned = [] } = JSON.parse(options);
  await source.readAt(0, 1);
  onTrial("defaults");
  return JSON.stringify({ text: "tuned", ratios: null, tuned: [...tuned, { rung: "cpu" }] });
}

export const wasm_memory_bytes = () => 65536;

export default async function init() {}
