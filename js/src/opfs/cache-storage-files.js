/** Files in the Cache API, for browsers without a usable origin private file system. */

/** Name of the cache with the models. */
const CACHE = "anygpu";
/** Base of the cache's keys, which must be URLs. It is never requested. */
const BASE = "https://anygpu.invalid/";

/** @import { Files } from "./opfs-files.js" */

/**
 * @param {CacheStorage | undefined} caches
 * @param {string} [name] Name of the cache.
 * @returns {Promise<Files | null>} Null if this browser does not have it, or not here.
 */
export async function openCacheStorage(caches, name = CACHE) {
  if (typeof caches?.open !== "function") return null;
  try {
    return new CacheFiles(await caches.open(name));
  } catch {
    return null;
  }
}

/** @implements {Files} */
class CacheFiles {
  folder = null;
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
   * @param {Uint8Array} bytes
   */
  async write(name, bytes) {
    await this._cache.put(BASE + name, new Response(/** @type {Uint8Array<ArrayBuffer>} */ (bytes)));
  }

  /** @param {string} name */
  async remove(name) {
    await this._cache.delete(BASE + name);
  }
}
