/** What callers pass, checked: each message names the field, what it may be, and what it was. */

import { OptionsError } from "./errors.js";

/** @import { BackendChoice, ChatMessage, ConformanceOptions, LoadOptions, SelectOptions, TuneOptions } from "../index.d.ts" */

/** Lengths and counts reach the engine as 32-bit numbers. */
const MOST = 2 ** 32 - 1;

/**
 * @typedef {(name: string, value: unknown) => unknown} Check Gives the value if it is sound, or throws.
 */

/**
 * @param {string} name
 * @param {string} expected
 * @param {unknown} value
 * @returns {never}
 */
function refuse(name, expected, value) {
  let shown;
  try {
    shown = typeof value === "function" ? "a function" : (JSON.stringify(value) ?? String(value));
  } catch {
    shown = "an object";
  }
  if (shown.length > 80) shown = `${shown.slice(0, 77)}...`;
  throw new OptionsError(`${name} must be ${expected}, not ${shown}`, { field: name });
}

/**
 * @param {number} least
 * @param {number} [most]
 * @returns {Check}
 */
const integer = (least, most = MOST) => (name, value) => {
  if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) return value;
  return refuse(name, `an integer from ${least} to ${most}`, value);
};

/**
 * @param {number} least
 * @param {number} most
 * @returns {Check}
 */
const number = (least, most) => (name, value) => {
  if (typeof value === "number" && value >= least && value <= most) return value;
  return refuse(name, `a number from ${least} to ${most}`, value);
};

/**
 * @param {readonly unknown[]} values
 * @returns {Check}
 */
const oneOf = (values) => (name, value) => {
  if (values.includes(value)) return value;
  return refuse(name, `one of ${values.map((v) => JSON.stringify(v)).join(", ")}`, value);
};

/**
 * @param {string} type
 * @returns {Check}
 */
const ofType = (type) => (name, value) => (typeof value === type ? value : refuse(name, `a ${type}`, value));

const boolean = ofType("boolean");
const string = ofType("string");
const callback = ofType("function");

/** @type {Check} */
const signal = (name, value) =>
  value instanceof AbortSignal ? value : refuse(name, "an AbortSignal", value);

/** @type {Check} */
const sha256 = (name, value) => {
  if (typeof value === "string" && /^[0-9a-f]{64}$/i.test(value)) return value.toLowerCase();
  return refuse(name, "64 hexadecimal digits", value);
};

/** @type {Check} */
const headers = (name, value) => {
  try {
    // An array of pairs is what crosses to a worker.
    return [...new Headers(/** @type {HeadersInit} */ (value))];
  } catch {
    return refuse(name, "headers as fetch takes them", value);
  }
};

/** @type {Check} */
const stop = (name, value) => {
  const strings = typeof value === "string" ? [value] : value;
  const sound = Array.isArray(strings) && strings.length <= 64 && strings.every((s) => typeof s === "string" && s !== "");
  return sound ? strings : refuse(name, "a string that is not empty, or at most 64 of them", value);
};

/**
 * An object of these fields and no others. Absent fields stay absent.
 *
 * @param {Record<string, Check>} checks
 * @returns {(name: string, value: unknown) => Record<string, any>}
 */
const object = (checks) => (name, value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse(name, "an object", value);
  /** @type {Record<string, unknown>} */
  const sound = {};
  for (const [key, given] of Object.entries(value)) {
    const path = name === "options" || name === "request" ? key : `${name}.${key}`;
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined;
    if (check === undefined) {
      throw new OptionsError(`${path} is not known; there are ${Object.keys(checks).join(", ")}`, { field: path });
    }
    if (given !== undefined) sound[key] = check(path, given);
  }
  return sound;
};

const SELECT = {
  backend: oneOf(["auto", "gpu", "webgpu", "webgl", "cpu"]),
  worker: boolean,
  webgl: object({ layout: oneOf(["packed", "r32f"]), maxTextureSize: integer(1) }),
  webgpu: object({ maxBinding: integer(1), products: oneOf(["f32", "int8"]) }),
  signal,
};

const LOAD = {
  ...SELECT,
  nCtx: integer(1),
  kvCache: oneOf(["f32", "f16"]),
  onProgress: callback,
  cache: oneOf([true, false, "require"]),
  maxCacheBytes: integer(0, Number.MAX_SAFE_INTEGER),
  revalidate: boolean,
  sha256,
  headers,
  credentials: oneOf(["omit", "same-origin", "include"]),
  network: object({ retries: integer(0, 1000), stallTimeout: integer(1, 2 ** 31 - 1) }),
};

/**
 * @param {unknown} value
 * @returns {SelectOptions}
 */
export const selectOptions = (value) => object(SELECT)("options", value ?? {});

/**
 * @param {unknown} value
 * @returns {LoadOptions & { headers?: [string, string][] }}
 */
export const loadOptions = (value) => object(LOAD)("options", value ?? {});

/**
 * @param {unknown} value
 * @returns {TuneOptions & { headers?: [string, string][] }}
 */
export const tuneOptions = (value) => object({ ...LOAD, onTrial: callback })("options", value ?? {});

/**
 * @param {unknown} value
 * @returns {ConformanceOptions}
 */
export const conformanceOptions = (value) => {
  const options = object({
    backend: string,
    op: string,
    every: integer(1),
    onCase: callback,
    signal,
    worker: boolean,
    expectations: (name, value) => (typeof value === "object" ? value : refuse(name, "an object", value)),
  })("options", value ?? {});
  if (options.backend === undefined) refuse("backend", "a backend of the suite, such as webgpu, webgl or cpu", undefined);
  return /** @type {any} */ (options);
};

/** Fields of a request that go to the engine as they are. */
const GENERATE = {
  max_tokens: integer(1),
  temperature: number(0, 100),
  top_k: integer(0),
  top_p: number(0, 1),
  seed: integer(0, Number.MAX_SAFE_INTEGER),
  stop,
  ignore_eos: boolean,
  fetch_interval: integer(1, 64),
};

const REQUEST = {
  ...GENERATE,
  max_completion_tokens: GENERATE.max_tokens,
  stream: boolean,
  signal,
  model: string,
  n: oneOf([1]),
  stream_options: object({ include_usage: boolean }),
};

/** The text of a turn. */
const content = (/** @type {string} */ name, /** @type {unknown} */ value) => {
  if (typeof value === "string") return value;
  const isText = (/** @type {any} */ part) => part?.type === "text" && typeof part.text === "string";
  if (Array.isArray(value) && value.every(isText)) return value.map((part) => part.text).join("");
  return refuse(name, 'a string, or an array of { type: "text", text }', value);
};

/**
 * A conversation, with each turn's text as a string.
 *
 * @param {string} name
 * @param {unknown} value
 * @returns {{ role: string, content: string }[]}
 */
export const messages = (name, value) => {
  if (!Array.isArray(value) || value.length === 0) refuse(name, "an array with at least one message", value);
  return /** @type {any[]} */ (value).map((message, index) => {
    const { role, content: text } = message ?? {};
    if (typeof role !== "string" || role === "") refuse(`${name}[${index}].role`, "a string such as user", role);
    return { role, content: content(`${name}[${index}].content`, text) };
  });
};

/**
 * @param {string} name
 * @param {any} value
 * @returns {Uint32Array}
 */
export const tokens = (name, value) => {
  const list = typeof value === "object" && value !== null && Number.isSafeInteger(value.length) ? value : null;
  if (list === null || list.length < 0 || list.length > MOST) refuse(name, "an array of token ids", value);
  const ids = Array.from(/** @type {ArrayLike<unknown>} */ (list));
  const bad = ids.findIndex((id) => !(Number.isSafeInteger(id) && Number(id) >= 0 && Number(id) <= MOST));
  if (bad >= 0) refuse(`${name}[${bad}]`, "a token id", ids[bad]);
  return Uint32Array.from(/** @type {number[]} */ (ids));
};

/** @typedef {{ messages: { role: string, content: string }[] } | { text: string } | { tokens: Uint32Array }} Prompt */

/**
 * @typedef {object} Request
 * @property {Prompt} prompt
 * @property {Record<string, unknown>} generate What goes to the engine.
 * @property {boolean} stream
 * @property {AbortSignal} [signal]
 * @property {string} [model]
 */

/**
 * @param {unknown} value
 * @returns {Request}
 */
export function chatRequest(value) {
  const request = object({ ...REQUEST, messages })("request", value);
  if (request.messages === undefined) refuse("messages", "an array with at least one message", undefined);
  return splitRequest({ messages: request.messages }, request);
}

/**
 * @param {unknown} value
 * @returns {Request}
 */
export function completionRequest(value) {
  const prompt = (/** @type {string} */ name, /** @type {unknown} */ given) =>
    typeof given === "string" ? { text: given } : { tokens: tokens(name, given) };
  const request = object({ ...REQUEST, prompt })("request", value);
  if (request.prompt === undefined) refuse("prompt", "a string or an array of token ids", undefined);
  return splitRequest(request.prompt, request);
}

/**
 * @param {Prompt} prompt
 * @param {Record<string, any>} request
 * @returns {Request}
 */
function splitRequest(prompt, request) {
  const generate = Object.fromEntries(Object.keys(GENERATE).map((key) => [key, request[key]]));
  generate.max_tokens ??= request.max_completion_tokens;
  return { prompt, generate, stream: request.stream === true, signal: request.signal, model: request.model };
}
