/** Starts wasm modules, and computes the digest of their bytes. */

import { runtime } from "../common/runtime.js";
import { sha256 } from "../common/sha256.js";

/**
 * @typedef {object} Startable The JavaScript of a module.
 * @property {(start: { module_or_path: Promise<Response> }) => Promise<unknown>} default
 * @property {new () => import("../download/source.js").Digest} [Sha256] Class for digests, only in the engine's module.
 */

/**
 * @typedef {object} Started
 * @property {Promise<unknown>} ready
 * @property {Promise<string>} digest SHA-256 of the very bytes that were compiled.
 */

/** Modules that were started. Each is started once per thread. @type {WeakMap<object, Started>} */
const modules = new WeakMap();

/**
 * Starts a module, unless it was started before. A failed start may be repeated.
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
  // The error is reported through `ready`.
  response.catch(() => {});
  const ready = bindings.default({ module_or_path: response });
  const started = { ready, digest: digest(bindings, answer, ready) };
  modules.set(bindings, started);
  ready.catch(() => modules.delete(bindings));
  // The error is seen by the caller who asks for the digest.
  started.digest.catch(() => {});
  return started;
}

/**
 * Fetches a module, and returns the response and a copy, so that the digest does not need a second request.
 *
 * @param {URL} url
 */
async function fetched(url) {
  const response = await (url.protocol === "file:" && runtime.readFile !== null ? readFrom(url, runtime.readFile) : fetch(url));
  return { response, copy: response.clone() };
}

/**
 * Reads a file as a response.
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
