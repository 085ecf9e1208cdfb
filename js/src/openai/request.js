/**
 * Requests in the format of OpenAI's API: what belongs to the client. The engine's module reads the fields, and says what
 * is wrong with them.
 */

import { OptionsError } from "../common/errors.js";
import { MOST, object, refuse, signal } from "../common/validate.js";

/** @import { Check } from "../common/validate.js" */

/** Longest name of a session, in UTF-16 code units. */
const LONGEST_NAME = 64;

/**
 * Checks the name of a session.
 *
 * @param {string} name
 * @param {unknown} value
 * @returns {string}
 */
export const sessionName = (name, value) =>
  typeof value === "string" && value !== "" && value.length <= LONGEST_NAME
    ? value
    : refuse(name, `a name of 1 to ${LONGEST_NAME} characters`, value);

/** Accepts null as if the field were left out. @param {Check} check @returns {Check} */
const maybe = (check) => (name, value) => (value === null ? undefined : check(name, value));

const ignored = () => undefined;

/** Options beside a request. Most options of OpenAI's client have no effect, since there is no network. */
const withFields = object({
  signal: maybe(signal),
  session: maybe(sessionName),
  timeout: maybe((name) => {
    throw new OptionsError(`${name} is not supported: pass signal: AbortSignal.timeout(ms)`, { field: name });
  }),
  headers: ignored,
  query: ignored,
  maxRetries: ignored,
  idempotencyKey: ignored,
});

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

/** @typedef {{ messages: unknown[] } | { text: string } | { tokens: ArrayLike<number> } | { pair: [string, string] }} Prompt */

/** @typedef {"chat" | "text" | "embedding"} Api */

/**
 * @typedef {object} Request One answer that the engine is asked for.
 * @property {Prompt} prompt
 * @property {Record<string, unknown>} generate Options for the engine.
 * @property {string} [session] Name of its session.
 * @property {{ format: string, field: string } | null} [wanted] Format of the answer as the module of formats reads it, if not
 * text, and the field that asks for it.
 * @property {{ name?: string } | null} [demanded] Set if the answer must call functions, or the function of this name.
 */

/**
 * @typedef {object} Asked A request as it was read.
 * @property {Prompt[]} prompts
 * @property {Record<string, unknown>} generate Options for the engine.
 * @property {string[]} seeds Seeds of the answers to each prompt.
 * @property {boolean} usage Whether a stream ends with a chunk that only has the usage.
 * @property {string | null} [model]
 * @property {Request["wanted"]} [wanted]
 * @property {Request["demanded"]} [demanded]
 */

/**
 * @typedef {object} EmbeddingRequest
 * @property {Prompt[]} prompts
 * @property {{ dimensions: number | null, normalize: boolean, scores: boolean }} embed Options for the engine.
 * @property {boolean} base64
 * @property {string | null} [model]
 */

/**
 * @typedef {object} Given A request before it is read.
 * @property {string} body Its fields, as JSON.
 * @property {AbortSignal[]} signals Signals, each of which aborts the request.
 * @property {string} [session]
 */

/**
 * Takes a request apart: what JavaScript has of it, and the fields.
 *
 * @param {any} value
 * @param {unknown} [options] Options beside the request.
 * @returns {Given}
 */
export function given(value, options) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse("request", "an object", value);
  const { signal: own, ...fields } = value;
  const { signal: other, session } = withFields("options", options ?? {});
  const signals = [own === undefined || own === null ? undefined : signal("signal", own), other];
  return { body: written(fields), signals: /** @type {AbortSignal[]} */ (signals.filter((one) => one !== undefined)), session };
}

/**
 * Checks the arguments of a call that continues the answer of a session.
 *
 * @param {unknown} name
 * @param {unknown} [options] Options beside the request.
 * @returns {{ signals: AbortSignal[], session: string }}
 */
export function resumed(name, options) {
  const session = sessionName("session", name);
  const { signal, session: other } = withFields("options", options ?? {});
  if (other !== undefined) refuse("session", "given once", session);
  return { signals: signal === undefined ? [] : [signal], session };
}

/**
 * Writes a value as JSON. Arrays of numbers stay those, and values that JSON has not are named.
 *
 * @param {unknown} value
 */
export function written(value) {
  const plain = (/** @type {string} */ _, /** @type {any} */ one) => {
    if (ArrayBuffer.isView(one)) return Array.from(/** @type {any} */ (one));
    const isOdd = (typeof one === "number" && !Number.isFinite(one)) || /^(bigint|function|symbol)$/.test(typeof one);
    return isOdd ? `${typeof one} ${String(one)}` : one;
  };
  try {
    return JSON.stringify(value, plain);
  } catch (cause) {
    throw new OptionsError(`the request cannot be written as JSON (${/** @type {Error} */ (cause).message})`, { cause });
  }
}
