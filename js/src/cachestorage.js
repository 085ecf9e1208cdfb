/** Files in the Cache API, for browsers whose origin private file system is missing or cannot be written. */

/** The cache that is ours. */
const CACHE = "anygpu";
/** Keys of a cache are addresses; nothing is ever asked of this one. */
const BASE = "https://anygpu.invalid/";

/** @import { Files, FileWriter } from "./opfs.js" */

/**
 * @param {CacheStorage | undefined} caches
 * @returns {Promise<Files | null>} Null if this browser has none, or none here.
 */
export async function openCacheStorage(caches) {
  if (typeof caches?.open !== "function") return null;
  try {
    return new CacheFiles(await caches.open(CACHE));
  } catch {
    return null;
  }
}

/** @implements {Files} */
class CacheFiles {
  #cache;

  /** @param {Cache} cache */
  constructor(cache) {
    this.#cache = cache;
  }

  async names() {
    const requests = await this.#cache.keys();
    return requests.map((request) => request.url.slice(BASE.length));
  }

  /** @param {string} name */
  async blob(name) {
    const response = await this.#cache.match(BASE + name);
    return response ? response.blob() : null;
  }

  /**
   * @param {string} name
   * @returns {Promise<FileWriter>}
   */
  async writer(name) {
    const { readable, writable } = new TransformStream();
    // The browser keeps nothing of it before its end.
    return new CacheWriter(writable.getWriter(), this.#cache.put(BASE + name, new Response(readable)));
  }

  /** @param {string} name */
  async remove(name) {
    await this.#cache.delete(BASE + name);
  }
}

/** @implements {FileWriter} */
class CacheWriter {
  #writer;
  #put;
  read = null;

  /**
   * @param {WritableStreamDefaultWriter<Uint8Array>} writer
   * @param {Promise<void>} put
   */
  constructor(writer, put) {
    this.#writer = writer;
    this.#put = put;
    // Whoever writes or closes next is told.
    put.catch(() => {});
  }

  /** @param {Uint8Array} bytes */
  async write(bytes) {
    // A failed `put` need not fail the stream that it reads. The bytes are shared with others, hence the copy.
    await Promise.race([this.#writer.write(bytes.slice()), this.#put]);
  }

  async close() {
    await Promise.race([this.#writer.close(), this.#put]);
    await this.#put;
  }

  async abort() {
    this.#writer.abort(new DOMException("not kept", "AbortError")).catch(() => {});
    await this.#put.catch(() => {});
  }
}
