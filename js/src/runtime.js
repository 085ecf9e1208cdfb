/** Behaviour that differs in Node.js, Deno and Bun; `with-node.js` sets it. */

/**
 * @typedef {object} FileLike A part of a blob's interface.
 * @property {number} size
 * @property {(from: number, to: number) => { arrayBuffer(): Promise<ArrayBuffer> }} slice
 */

/**
 * @typedef {object} Runtime
 * @property {((url: URL) => Promise<FileLike>) | null} openFile Opens what a `file:` URL names.
 * @property {((url: URL) => Promise<Uint8Array>) | null} readFile Reads all of it.
 * @property {(source: string | URL) => URL} meant What a source that is a text means. Throws if it means nothing.
 * @property {string | null} hub The address of the hub, if the surroundings name another than the usual one.
 */

/** @type {Runtime} */
export const runtime = {
  openFile: null,
  readFile: null,
  meant: (source) => new URL(source, globalThis.document?.baseURI ?? globalThis.location?.href),
  hub: null,
};

/** Returns the storage and locks of the browser, if there are any. Node.js before 21 does not have `navigator`. */
export function environment() {
  const { storage, locks } = /** @type {Partial<Navigator>} */ (globalThis.navigator ?? {});
  return { storage, caches: globalThis.caches, locks };
}
