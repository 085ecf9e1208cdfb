/** Behaviour that differs in Node.js, Deno and Bun; `with-node.js` sets it. */

/**
 * @typedef {object} FileLike A part of a blob's interface.
 * @property {number} size
 * @property {(from: number, to: number) => { arrayBuffer(): Promise<ArrayBuffer> }} slice
 */

/**
 * @typedef {object} Runtime
 * @property {((url: URL) => Promise<FileLike>) | null} openFile Opens the file of a `file:` URL.
 * @property {((url: URL) => Promise<Uint8Array>) | null} readFile Reads the file of a `file:` URL.
 * @property {(source: string | URL) => URL} meant Returns the URL that a text stands for; throws if there is none.
 * @property {string | null} hub Address of the hub, if the environment sets another than the default.
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
