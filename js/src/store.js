/**
 * The models that the browser keeps.
 *
 * An entry is two files: the bytes under a name that is never used twice, and a small JSON file that names them. Only the
 * latter makes an entry, and it is written last; so a failure before that leaves bytes that no entry names, which are
 * removed at once or, after a crash, by whoever opens the store next. Several tabs share a store: who reads or writes
 * bytes holds a lock on their name, and who changes what entries there are holds the lock of the store.
 */

import { openCacheStorage } from "./cachestorage.js";
import { CacheError, QuotaError } from "./errors.js";
import { openOpfs } from "./opfs.js";

/** @import { Files, FileWriter } from "./opfs.js" */
/** @import { Recorder } from "./source.js" */

/** The lock of the store. */
const STORE_LOCK = "anygpu";
const ENTRY = ".json";
const BYTES = ".bytes";
/** The most that an entry's JSON file may have. In bytes. */
const LONGEST_ENTRY = 64 << 10;

/**
 * @typedef {object} Entry What the JSON file of an entry says.
 * @property {string} key
 * @property {string} file The name of the bytes.
 * @property {number} size
 * @property {string | null} etag
 * @property {string | null} lastModified
 * @property {string | null} sha256
 * @property {number} created In milliseconds since 1970, like the next one.
 * @property {number} used
 */

/**
 * @typedef {object} Environment What a browser gives; a part of `globalThis` and of `navigator`.
 * @property {StorageManager} [storage]
 * @property {CacheStorage} [caches]
 * @property {LockManager} [locks]
 */

/** @typedef {{ entry: Entry, blob: Blob, release: () => void }} Kept An entry that is being read: it stays until released. */

/** The store of this site. */
export class Store {
  _files;
  _locks;
  _storage;

  /**
   * @param {Files} files
   * @param {LockManager} locks
   * @param {StorageManager | undefined} storage
   */
  constructor(files, locks, storage) {
    this._files = files;
    this._locks = locks;
    this._storage = storage;
  }

  /**
   * Opens the store, and removes what a crash left behind.
   *
   * @param {Environment} environment
   * @returns {Promise<Store | null>} Null if this browser or page has none.
   */
  static async open({ storage, caches, locks }) {
    // Without locks, tabs could remove each other's files. Browsers without them hardly have WebGL2.
    if (locks === undefined) return null;
    const files = (await openOpfs(storage)) ?? (await openCacheStorage(caches));
    if (files === null) return null;
    const store = new Store(files, locks, storage);
    try {
      await store._exclusively(() => store._sweep());
    } catch {
      // Storage that cannot be listed is of no use, but no reason to fail.
      return null;
    }
    return store;
  }

  /** @returns {Promise<Entry[]>} Last used first. */
  list() {
    return guarded(() => this._exclusively(() => this._entries()));
  }

  /**
   * @param {string} key
   * @returns {Promise<Kept | null>}
   */
  get(key) {
    return guarded(() =>
      this._exclusively(async () => {
        const entry = await this._entry(await nameOf(key));
        if (entry === null) return null;
        const release = await this._hold(entry.file, "shared");
        const blob = release && (await this._files.blob(entry.file));
        if (release && blob?.size === entry.size) {
          entry.used = Date.now();
          // If there is no room for it, only the order of eviction suffers.
          await this._writeEntry(entry).catch(() => {});
          return { entry, blob, release };
        }
        release?.();
        await this._remove(entry);
        return null;
      }),
    );
  }

  /**
   * Changes what is known of an entry.
   *
   * @param {Entry} entry
   */
  update(entry) {
    return guarded(() => this._exclusively(() => this._writeEntry(entry)));
  }

  /**
   * @param {string} key
   * @returns {Promise<boolean>} Whether it was there.
   */
  delete(key) {
    return guarded(() =>
      this._exclusively(async () => {
        const entry = await this._entry(await nameOf(key));
        if (entry !== null) await this._remove(entry);
        return entry !== null;
      }),
    );
  }

  /** Removes all. */
  clear() {
    return guarded(() =>
      this._exclusively(async () => {
        for (const entry of await this._entries()) await this._remove(entry);
      }),
    );
  }

  /** @returns {Promise<StorageEstimate>} */
  async estimate() {
    return (await this._storage?.estimate?.().catch(() => undefined)) ?? {};
  }

  /**
   * Begins an entry of a given size, after making room for it.
   *
   * @param {string} key
   * @param {number} size
   * @param {number} maxBytes What the store may hold, this one included.
   * @param {number} [reserved] Bytes that entries in the making are still to have.
   * @returns {Promise<Recorder>} It throws {@link CacheError}.
   */
  create(key, size, maxBytes, reserved = 0) {
    return guarded(async () => {
      await this._exclusively(() => this._makeRoom(key, size + reserved, maxBytes));
      const file = `${newName()}${BYTES}`;
      const release = await this._hold(file, "exclusive");
      const discard = async () => {
        await this._files.remove(file).catch(() => {});
        release?.();
      };
      /** @type {FileWriter} */
      let writer;
      try {
        writer = await this._files.writer(file);
      } catch (error) {
        await discard();
        throw error;
      }
      const { read } = writer;
      return {
        write: (bytes) => guarded(() => this._writeSomehow(writer, key, bytes)),
        read: read && ((offset, length) => guarded(() => read.call(writer, offset, length))),
        commit: (facts) =>
          guarded(async () => {
            await writer.close();
            const now = Date.now();
            await this._exclusively(async () => {
              const before = await this._entry(await nameOf(key));
              await this._writeEntry({ key, file, size, created: now, used: now, ...facts });
              if (before !== null) await this._removeBytes(before.file);
            });
            release?.();
          }),
        abort: async () => {
          await writer.abort().catch(() => {});
          await discard();
        },
      };
    });
  }

  /**
   * Writes, and makes room if necessary.
   *
   * @param {FileWriter} writer
   * @param {string} key
   * @param {Uint8Array} bytes
   */
  async _writeSomehow(writer, key, bytes) {
    for (;;) {
      try {
        return await writer.write(bytes);
      } catch (error) {
        // A stream that failed cannot go on.
        if (!isQuota(error) || writer.read === null) throw error;
        if (!(await this._exclusively(() => this._evictOne(key)))) throw error;
      }
    }
  }

  /**
   * @param {string} key
   * @param {number} size
   * @param {number} maxBytes
   */
  async _makeRoom(key, size, maxBytes) {
    if (size > maxBytes) {
      throw new QuotaError(`the model has ${size} bytes, but maxCacheBytes is ${maxBytes}; raise it`);
    }
    const others = async () => (await this._entries()).filter((entry) => entry.key !== key);
    const sum = async () => (await others()).reduce((bytes, entry) => bytes + entry.size, size);
    while ((await sum()) > maxBytes) {
      if (!(await this._evictOne(key))) throw noRoom(size);
    }
    for (;;) {
      const { quota, usage } = await this.estimate();
      if (quota === undefined || usage === undefined || quota - usage >= size) return;
      if (!(await this._evictOne(key))) throw noRoom(size);
    }
  }

  /**
   * Removes the least recently used entry.
   *
   * @param {string} but The key of one that stays.
   * @returns {Promise<boolean>} Whether there was one that nobody reads.
   */
  async _evictOne(but) {
    const entries = (await this._entries()).filter((entry) => entry.key !== but);
    for (const entry of entries.reverse()) {
      const release = await this._hold(entry.file, "exclusive");
      if (release === null) continue;
      await this._files.remove(`${await nameOf(entry.key)}${ENTRY}`);
      await this._files.remove(entry.file);
      release();
      return true;
    }
    return false;
  }

  /** Removes bytes that no entry names and nobody holds, and entries that name no bytes. */
  async _sweep() {
    const names = await this._files.names();
    const named = new Set();
    for (const name of names.filter((name) => name.endsWith(ENTRY))) {
      const entry = await this._entry(name.slice(0, -ENTRY.length));
      if (entry !== null && names.includes(entry.file)) named.add(entry.file);
      else await this._files.remove(name);
    }
    for (const name of names) {
      if (name.endsWith(BYTES) && !named.has(name)) await this._removeBytes(name);
    }
  }

  /** @param {Entry} entry */
  async _remove(entry) {
    await this._files.remove(`${await nameOf(entry.key)}${ENTRY}`);
    await this._removeBytes(entry.file);
  }

  /**
   * Removes bytes that no entry names any more. If somebody reads them, whoever opens the store next removes them.
   *
   * @param {string} file
   */
  async _removeBytes(file) {
    const release = await this._hold(file, "exclusive");
    if (release === null) return;
    await this._files.remove(file);
    release();
  }

  /** @returns {Promise<Entry[]>} Last used first. */
  async _entries() {
    const entries = [];
    for (const name of await this._files.names()) {
      if (!name.endsWith(ENTRY)) continue;
      const entry = await this._entry(name.slice(0, -ENTRY.length));
      if (entry !== null) entries.push(entry);
    }
    return entries.sort((a, b) => b.used - a.used);
  }

  /**
   * @param {string} name
   * @returns {Promise<Entry | null>} Null if there is none, or none that can be understood.
   */
  async _entry(name) {
    const blob = await this._files.blob(`${name}${ENTRY}`);
    if (blob === null || blob.size > LONGEST_ENTRY) return null;
    try {
      const entry = JSON.parse(await blob.text());
      const sound =
        typeof entry.key === "string" &&
        typeof entry.file === "string" &&
        Number.isSafeInteger(entry.size) &&
        Number.isFinite(entry.created) &&
        Number.isFinite(entry.used) &&
        (await nameOf(entry.key)) === name;
      return sound ? entry : null;
    } catch {
      return null;
    }
  }

  /** @param {Entry} entry */
  async _writeEntry(entry) {
    const name = `${await nameOf(entry.key)}${ENTRY}`;
    const writer = await this._files.writer(name);
    try {
      await writer.write(new TextEncoder().encode(JSON.stringify(entry)));
      await writer.close();
    } catch (error) {
      await writer.abort().catch(() => {});
      throw error;
    }
  }

  /**
   * @template T
   * @param {() => Promise<T>} action
   * @returns {Promise<T>}
   */
  async _exclusively(action) {
    // The type of `request` does not mention promises that the callback returns.
    return /** @type {Promise<T>} */ (this._locks.request(STORE_LOCK, action));
  }

  /**
   * Takes the lock of a file of bytes, if it can be had at once.
   *
   * @param {string} file
   * @param {LockMode} mode
   * @returns {Promise<(() => void) | null>} Releases it.
   */
  _hold(file, mode) {
    return new Promise((resolve, reject) => {
      const held = (/** @type {Lock | null} */ lock) => {
        if (lock === null) return resolve(null);
        return new Promise((release) => resolve(() => release(undefined)));
      };
      this._locks.request(`${STORE_LOCK}/${file}`, { mode, ifAvailable: true }, held).catch(reject);
    });
  }
}

/**
 * The key of a URL, without credentials and fragment.
 *
 * @param {string | URL} url Absolute.
 */
export function keyOf(url) {
  const key = new URL(url);
  key.username = "";
  key.password = "";
  key.hash = "";
  return key.href;
}

/**
 * The name of an entry's JSON file without its end.
 *
 * @param {string} key
 */
async function nameOf(key) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  return hex(new Uint8Array(digest, 0, 16));
}

/** A name that no other file has. */
function newName() {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {number} size */
function noRoom(size) {
  return new QuotaError(`the browser has no room for ${size} bytes; delete other models, or free disk space`);
}

/** @param {unknown} error */
function isQuota(error) {
  return error instanceof Error && error.name === "QuotaExceededError";
}

/**
 * Makes what storage throws a {@link CacheError}.
 *
 * @template T
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
async function guarded(action) {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof CacheError) throw cause;
    if (isQuota(cause)) throw new QuotaError("the browser's storage is full; delete other models", { cause });
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CacheError(`the browser's storage failed (${message}); load with cache: false`, { cause });
  }
}
