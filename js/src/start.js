/** Starts wasm modules, and knows the digest of what was started. */

import { runtime } from "./runtime.js";
import { sha256 } from "./sha256.js";

/**
 * @typedef {object} Startable The JavaScript of a module.
 * @property {(start: { module_or_path: Promise<Response> }) => Promise<unknown>} default
 * @property {new () => import("./source.js").Digest} [Sha256] Of the engine.
 */

/**
 * @typedef {object} Started
 * @property {Promise<unknown>} ready
 * @property {Promise<string>} digest SHA-256 of the very bytes that were compiled.
 */

/**
 * A page's own thread has each module once, whoever asks for it.
 *
 * @type {WeakMap<object, Started>}
 */
const modules = new WeakMap();

/**
 * Starts a module, unless that was done before. What failed may be tried again.
 *
 * @param {Startable} bindings
 * @param {URL} url
 * @returns {Started}
 */
export function start(bindings, url) {
  const before = modules.get(bindings);
  if (before !== undefined) return before;
  const answer = fetched(url);
  const response = answer.then((both) => both.response);
  // `ready` tells of it.
  response.catch(() => {});
  const ready = bindings.default({ module_or_path: response });
  const started = { ready, digest: digest(bindings, answer, ready) };
  modules.set(bindings, started);
  ready.catch(() => modules.delete(bindings));
  // Whoever asks for it sees the error.
  started.digest.catch(() => {});
  return started;
}

/**
 * An answer and its copy, which have the same bytes: the address is not asked again.
 *
 * @param {URL} url
 */
async function fetched(url) {
  const response = await (url.protocol === "file:" && runtime.readFile !== null ? readFrom(url, runtime.readFile) : fetch(url));
  return { response, copy: response.clone() };
}

/**
 * A file as an answer.
 *
 * @param {URL} url
 * @param {(url: URL) => Promise<Uint8Array>} read
 */
async function readFrom(url, read) {
  const bytes = /** @type {Uint8Array<ArrayBuffer>} */ (await read(url));
  return new Response(bytes, { headers: { "Content-Type": "application/wasm" } });
}

/**
 * @param {Startable} bindings
 * @param {Promise<{ copy: Response }>} answer
 * @param {Promise<unknown>} ready
 */
async function digest({ Sha256 }, answer, ready) {
  const { copy } = await answer;
  const [bytes] = await Promise.all([copy.arrayBuffer(), ready]);
  return sha256(new Uint8Array(bytes), Sha256 === undefined ? null : async () => new Sha256());
}
