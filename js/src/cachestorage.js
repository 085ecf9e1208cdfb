/** Files in the Cache API, for browsers whose origin private file system is missing or cannot be written. */

/** The cache that is ours. */
const CACHE = "anygpu";
/** Keys of a cache are URLs; this one is never requested. */
const BASE = "https://anygpu.invalid/";

/** @import { Files, FileWriter } from "./opfs.js" */

/**
 * @param {CacheStorage | undefined} caches
 * @returns {Promise<Files | null>} Null if this browser has none, or none here.
 */
export async function openCacheStorage(caches) {
  // Files are written as streams, which some browsers have later than caches.
  if (typeof caches?.open !== "function" || typeof TransformStream !== "function") return null;
  try {
    return new CacheFiles(await caches.open(CACHE));
  } catch {
    return null;
  }
}

/** @implements {Files} */
class CacheFiles {
  _cache;

  /** @param {Cache} cache */
  constructor(cache) {
    this._cache = cache;
  }

  async names() {
    const requests = await this._cache.keys();
    return requests.map((request) => request.url.slice(BASE.length));
  }

  /** @param {string} name */
  async blob(name) {
    const response = await this._cache.match(BASE + name);
    return response ? response.blob() : null;
  }

  /**
   * @param {string} name
   * @returns {Promise<FileWriter>}
   */
  async writer(name) {
    const { readable, writable } = new TransformStream();
    // The browser stores nothing before the stream ends.
    return new CacheWriter(writable.getWriter(), this._cache.put(BASE + name, new Response(readable)));
  }

  /** @param {string} name */
  async remove(name) {
    await this._cache.delete(BASE + name);
  }
}

/** @implements {FileWriter} */
class CacheWriter {
  _writer;
  _put;
  read = null;

  /**
   * @param {WritableStreamDefaultWriter<Uint8Array>} writer
   * @param {Promise<void>} put
   */
  constructor(writer, put) {
    this._writer = writer;
    this._put = put;
    // Whoever writes or closes next is told.
    put.catch(() => {});
  }

  /** @param {Uint8Array} bytes */
  async write(bytes) {
    // A failed `put` need not fail the stream that it reads. The bytes are shared with others, hence the copy.
    await Promise.race([this._writer.write(bytes.slice()), this._put]);
  }

  async close() {
    await Promise.race([this._writer.close(), this._put]);
    await this._put;
  }

  async abort() {
    this._writer.abort(new DOMException("not kept", "AbortError")).catch(() => {});
    await this._put.catch(() => {});
  }
}
