/** A double of the wasm module, as far as the package's own code can tell. */

import { createHash } from "node:crypto";
import { record, textOf } from "./records.js";

/** @import { Text } from "./records.js" */

/** Calls of the last engines. */
export const seen = {
  /** @type {number[]} */
  files: [],
  /** @type {string[]} */
  options: [],
  freed: 0,
  /** @type {string[]} */
  generations: [],
  /** Number of tokens of each prompt that were computed. @type {number[]} */
  computed: [],
};

/** Behaviour of the next calls. `reads` are the pieces that loading reads, in this order. */
export const script = {
  /** @type {[offset: number, length: number][] | null} */
  reads: null,
  /** @type {unknown} */
  loadThrows: null,
  /** @type {unknown} */
  generateThrows: null,
  /** Rungs that work, best first. @type {string[]} */
  rungs: ["cpu"],
  /** Whether the engine accepts the stored results of selection. */
  proven: true,
  /** A promise that the second token of a text waits for. @type {Promise<void> | null} */
  holdsUp: null,
  /** Parts of a chat answer that become certain with each of its tokens. @type {object[][] | null} */
  parts: null,
  /** Whether the module traps in the middle of a promise, so that the promise never settles. */
  hangs: false,
};

/** Pieces that the last load read. @type {Uint8Array[]} */
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
  _rung;
  /** @type {Map<string, Text>} */
  _texts = new Map();
  _last = "";
  /** Stored tokens of each session. @type {Map<string, number[]>} */
  _kept = new Map();
  /** Sessions with a snapshot in progress. */
  _busy = new Set();

  /** @param {string} rung */
  constructor(rung) {
    this._rung = rung;
  }
  report() {
    return JSON.stringify({ chosen: this._rung, rungs: [], remembered: script.proven, proofs: 0 });
  }
  proven() {
    return script.proven ? undefined : JSON.stringify([{ rung: this._rung }]);
  }
  info() {
    return JSON.stringify({ architecture: "double", name: null, backend: this._rung });
  }
  stats() {
    return JSON.stringify({ dispatches: 1 });
  }
  encode(/** @type {string} */ text) {
    return Uint32Array.from(text, (c) => c.charCodeAt(0));
  }
  encode_chat(/** @type {string} */ json) {
    const turns = JSON.parse(json);
    if (!Array.isArray(turns)) throw Object.assign(new Error("messages must be an array"), { code: "options", field: "messages" });
    return this.encode(turns.map((/** @type {any} */ m) => `${m.role}:${m.content};`).join(""));
  }
  /** Returns the tokens of a conversation; one message was dropped. @param {string} messages @param {string} options */
  chat_prompt(messages, options) {
    const dropped_messages = JSON.parse(options).overflow === "shift" ? 1 : 0;
    const tokens = [...this.encode_chat(JSON.stringify(JSON.parse(messages).slice(dropped_messages)))];
    return JSON.stringify({ tokens, keep: 2, dropped_messages });
  }
  decode(/** @type {Uint32Array} */ tokens) {
    return String.fromCharCode(...tokens);
  }
  /**
   * Begins a text, whose turn ends after each second token if others wait.
   *
   * @param {Uint32Array} tokens
   * @param {string} json
   * @param {any} onPiece
   * @param {(answer: Uint32Array) => Promise<Uint32Array>} onMask
   * @param {WasmCancel} cancel
   * @param {any} [onSnapshot]
   */
  begin(tokens, json, onPiece, onMask, cancel, onSnapshot) {
    /** @type {(() => void) | null} */
    let goOn = null;
    /** @type {Promise<string> | null} */
    let generation = null;
    const turn = async (/** @type {() => boolean} */ waits) => {
      /** @type {Promise<undefined>} */
      const paused = new Promise((resolve) => {
        pause = async (generated) => {
          if (generated % 2 !== 0 || !waits()) return;
          seen.generations.push("pause");
          resolve(undefined);
          await new Promise((again) => (goOn = () => again(undefined)));
        };
      });
      goOn?.();
      generation = generation ?? this.generate(tokens, json, onPiece, onMask, cancel, onSnapshot, (generated) => pause(generated));
      return Promise.race([generation, paused]);
    };
    /** @type {(generated: number) => Promise<void>} */
    let pause = async () => {};
    return { turn, free() {} };
  }
  /**
   * @param {Uint32Array} tokens
   * @param {string} json
   * @param {any} onPiece
   * @param {(answer: Uint32Array) => Promise<Uint32Array>} onMask
   * @param {WasmCancel} cancel
   * @param {any} onSnapshot
   * @param {(generated: number) => Promise<void>} mayPause
   */
  async generate(tokens, json, onPiece, onMask, cancel, onSnapshot, mayPause) {
    const { max_tokens = 3, done = [], untold = 0, session = "", save_every, usual_keep: _, ...rest } = JSON.parse(json);
    const { overflow } = rest;
    this._last = session;
    const prompt = tokens.length - done.length;
    const known = this._texts.get(session)?.tokens ?? [];
    this._busy.delete(session);
    seen.computed.push(tokens.length - common(known, [...tokens]));
    this._kept.set(session, known.slice(0, common(this._kept.get(session) ?? [], [...tokens])));
    const save = (/** @type {string | null} */ finish) => {
      const whole = [...tokens.slice(0, prompt), ...generated];
      const text = { tokens: whole, prompt, generate: { ...rest, max_tokens }, finish };
      this._texts.set(session, text);
      const isBetween = finish === null && generated.length > done.length;
      if (save_every === undefined || (isBetween && this._busy.has(session))) return;
      this._busy.add(session);
      const from = this._kept.get(session)?.length ?? 0;
      this._kept.set(session, text.tokens);
      onSnapshot(record(text, from), from, text.tokens.length);
    };
    seen.options.push(json);
    seen.generations.push("begin");
    const generated = [...done];
    for (const token of done.slice(done.length - untold)) onPiece(token, String.fromCharCode(token));
    save(null);
    let finish = "length";
    /** @type {object | null} */
    let full = null;
    if (script.hangs) await new Promise(() => {});
    while (generated.length < max_tokens) {
      await turn();
      if (generated.length > 0) await mayPause(generated.length);
      if (generated.length === 1) await script.holdsUp;
      if (script.generateThrows) throw script.generateThrows;
      if (cancel.state.set) {
        finish = "cancelled";
        break;
      }
      // The context is full after every third token.
      if (overflow === "shift" && generated.length > 0 && generated.length % 3 === 0) {
        full = { policy: "shift", dropped_tokens: 2 * (generated.length / 3), times: generated.length / 3, ms: 1 };
        onPiece(undefined, "", JSON.stringify(full));
      }
      const mask = rest.held_to && (await onMask(Uint32Array.from(generated)));
      // The double takes the first word of a mask as the token. A seed makes the text begin with another letter.
      const token = mask ? mask[0] : 97 + ((Number(rest.seed ?? 0) + generated.length) % 26);
      generated.push(token);
      const logprob = rest.log_probs === undefined ? undefined : likely(token, rest.log_probs);
      const parts = rest.chat && script.parts && JSON.stringify(script.parts[generated.length - 1] ?? []);
      onPiece(token, String.fromCharCode(token), undefined, logprob, parts ?? undefined);
      save(null);
    }
    save(finish);
    const held = script.parts?.slice(generated.length).flat() ?? [];
    if (rest.chat && held.length > 0) onPiece(undefined, "", undefined, undefined, JSON.stringify(held));
    if (script.parts && finish === "length") finish = "stop";
    seen.generations.push("end");
    const text = String.fromCharCode(...generated);
    const drafts = { drafted_tokens: 5, accepted_tokens: 3 };
    const counts = { prompt_tokens: tokens.length, cached_tokens: 1, prefill_ms: 2, decode_ms_per_token: 1, ...drafts };
    const steady = { steady_steps: 1, steady: { dispatches: 5 } };
    return JSON.stringify({ ...counts, ...steady, tokens: generated, text, finish, thought_tokens: script.parts ? 1 : 0, overflow: full });
  }
  /** @param {Uint32Array} tokens @param {number} dimensions @param {boolean} normalize */
  async embed(tokens, dimensions, normalize) {
    await turn();
    const vector = Float32Array.of(tokens.length, normalize ? 1 : 0, 0.5);
    return dimensions > 0 ? vector.slice(0, dimensions) : vector;
  }
  identity() {
    return "double/f32";
  }
  sessions() {
    const infos = [...this._texts].map(([name, { tokens: { length }, finish }]) => {
      return { name, tokens: length, bytes: 4 * length, finish };
    });
    return JSON.stringify(infos.reverse());
  }
  remove(/** @type {string} */ name) {
    this._kept.delete(name);
    return this._texts.delete(name);
  }
  text(/** @type {string | undefined} */ name = this._last) {
    const text = this._texts.get(name);
    return text === undefined ? undefined : Uint32Array.from(text.tokens);
  }
  asked(/** @type {string} */ name) {
    const text = this._texts.get(name);
    if (text === undefined) return undefined;
    const { tokens, prompt, generate, finish } = text;
    return JSON.stringify({ prompt: tokens.slice(0, prompt), done: tokens.slice(prompt), generate, finish });
  }
  async export(/** @type {string | undefined} */ name = this._last) {
    const text = this._texts.get(name);
    return text && record(text, 0);
  }
  /** @param {string} name @param {Uint8Array} bytes @param {boolean} isKept */
  async import(name, bytes, isKept) {
    await turn();
    const text = textOf(bytes);
    this._texts.set(name, text);
    this._last = name;
    if (isKept) this._kept.set(name, text.tokens);
    return Uint32Array.from(text.tokens);
  }
  /** @param {string} name @param {boolean} isKept @param {boolean} isReady */
  kept(name, isKept, isReady) {
    if (isReady) this._busy.delete(name);
    if (!isKept) this._kept.delete(name);
  }
  free() {
    seen.freed += 1;
  }
}

/** Returns a token's probability with two alternatives: itself, and half of a character. @param {number} token @param {number} top */
function likely(token, top) {
  const chosen = { token: String.fromCharCode(token), logprob: -0.5, bytes: [token] };
  const half = { token: "\uFFFD", logprob: -1.5, bytes: [0xe2, 0x80] };
  return JSON.stringify({ ...chosen, top_logprobs: [chosen, half].slice(0, top) });
}

/** @param {number[]} one @param {number[]} other */
function common(one, other) {
  const differs = one.findIndex((token, index) => token !== other[index]);
  return differs < 0 ? one.length : differs;
}

export async function load(/** @type {any} */ source, /** @type {string} */ options, /** @type {any} */ onProgress) {
  seen.options.push(options);
  seen.files = source.files;
  pieces = [];
  onProgress("header", 0, source.size);
  onProgress("select", 0, source.size);
  if (script.loadThrows) throw script.loadThrows;
  const { without = [] } = JSON.parse(options);
  const rung = script.rungs.find((name) => !without.includes(name));
  if (rung === undefined) throw Object.assign(new Error("nothing is left"), { code: "no_backend" });
  for (const kind of ["trying", "chosen"]) onProgress("select", 0, source.size, JSON.stringify({ name: rung, outcome: { kind } }));
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
  return new WasmEngine(rung);
}

/** Options that the double passes on to the engine. */
const PASSED = ["max_tokens", "temperature", "top_k", "top_p", "ignore_eos", "fetch_interval", "draft_max", "overflow", "keep"];

/**
 * Reads requests as the module does, as far as tests of the package need it; the module's own tests are in Rust.
 *
 * @param {string} api
 * @param {string} text
 */
export function read_request(api, text) {
  const asked = JSON.parse(text);
  const refuse = (/** @type {string} */ field) => {
    throw Object.assign(new Error(`${field} is not what the double takes`), { code: "options", field });
  };
  const one = (/** @type {any} */ given) => (typeof given === "string" ? { text: given } : { tokens: given });
  const several = (/** @type {any} */ given) => (Array.isArray(given) && typeof given[0] !== "number" ? given.map(one) : [one(given)]);
  const { model = null, n = 1, seed = 0, stop, tools = [], tool_choice = "auto", response_format, logprobs, top_logprobs = 0 } = asked;
  if (n < 1) refuse("n");
  if (api === "embedding") {
    const { input, dimensions = null, normalize = true, encoding_format = "float" } = asked;
    if (typeof input !== "string" && !Array.isArray(input)) refuse("input");
    return JSON.stringify({ prompts: several(input), embed: { dimensions, normalize }, base64: encoding_format === "base64", model });
  }
  const generate = Object.fromEntries(PASSED.filter((name) => name in asked).map((name) => [name, asked[name]]));
  if (asked.max_completion_tokens !== undefined) generate.max_tokens = asked.max_completion_tokens;
  if (stop !== undefined) generate.stop = [stop].flat();
  if (typeof logprobs === "number") generate.log_probs = logprobs;
  if (logprobs === true) generate.log_probs = top_logprobs;
  if (api === "chat") generate.chat = tools.length > 0 ? { tools } : {};
  const wanted = response_format && { format: JSON.stringify("object"), field: "response_format" };
  return JSON.stringify({
    prompts: api === "chat" ? [{ messages: asked.messages }] : several(asked.prompt),
    generate,
    seeds: Array.from({ length: n }, (_, at) => String(seed + at)),
    usage: asked.stream_options?.include_usage === true,
    model,
    wanted,
    demanded: tool_choice === "auto" ? null : {},
  });
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
