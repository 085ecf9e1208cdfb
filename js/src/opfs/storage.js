/**
 * Files in the browser's storage, and its errors. No call waits forever: storage that did not answer once is not asked
 * again, and the caller does without it.
 */

import { AnyGpuError, CacheError, QuotaError } from "../common/errors.js";
import { within } from "../common/timeout.js";
import { openCacheStorage } from "./cache-storage-files.js";
import { openOpfs } from "./opfs-files.js";

/** @import { Files } from "./opfs-files.js" */

/**
 * @typedef {object} Environment Interfaces of the browser; a part of `globalThis` and of `navigator`.
 * @property {StorageManager} [storage]
 * @property {CacheStorage} [caches]
 * @property {LockManager} [locks]
 * @property {number} [limit] How long a call of storage, or a lock, may take; 20 s by default. In milliseconds.
 */

/** How long a call may take, in milliseconds. A slow call is about a few MiB. */
const LIMIT = 20_000;

/**
 * @param {Environment} environment
 * @param {string} [folder] Name of the folder; that of the models by default.
 * @returns {Promise<Files | null>} Null if there is nothing to keep files in.
 */
export async function openFiles({ storage, caches, limit = LIMIT }, folder) {
  const open = async () => (await openOpfs(storage, folder)) ?? (await openCacheStorage(caches, folder));
  const bound = new Bound(limit);
  const files = await bound.call(open).catch(() => null);
  return files && new BoundFiles(files, bound);
}

/**
 * Waits for the browser's answer, but not forever.
 *
 * @template T
 * @param {Promise<T>} answer
 * @param {number} [limit] In milliseconds.
 * @returns {Promise<T>}
 */
export function inTime(answer, limit = LIMIT) {
  return within(limit, answer, () => new Error(`no answer for ${limit} ms`));
}

/**
 * Waits for a lock, but not forever: its holder may be a frozen tab.
 *
 * @template T
 * @param {LockManager} locks
 * @param {string} name
 * @param {() => Promise<T>} action
 * @param {number} [limit] In milliseconds.
 * @returns {Promise<T>}
 */
export async function lockedFor(locks, name, action, limit = LIMIT) {
  const controller = new AbortController();
  let held = () => {};
  const had = new Promise((resolve) => (held = () => resolve(undefined)));
  const run = () => (held(), action());
  const done = /** @type {Promise<T>} */ (locks.request(name, { signal: controller.signal }, run));
  const late = within(limit, Promise.race([had, done]), () => new Error(`no lock for ${limit} ms`));
  late.catch(() => controller.abort());
  // After a timeout the request ends with the abort; nobody needs that error.
  done.catch(() => {});
  return late.then(() => done);
}

/** Whether {@link persist} has asked. */
let asked = false;

/**
 * Asks the browser not to remove this site's storage when the disk is full: once per page, and only if it is not
 * granted yet, since Firefox asks the visitor. The answer makes no difference.
 *
 * @param {StorageManager} [storage]
 * @returns {Promise<void>}
 */
export async function persist(storage = globalThis.navigator?.storage) {
  if (asked || typeof storage?.persist !== "function") return;
  asked = true;
  try {
    if (!(await storage.persisted())) await storage.persist();
  } catch {
    // A browser that cannot be asked does not grant it.
  }
}

/** Returns the error for a model that has no room. @param {number} size */
export function noRoom(size) {
  return new QuotaError(`the browser has no room for ${size} bytes; delete other models, or free disk space`);
}

/** Whether an error says that the storage is full. @param {unknown} error */
export function isQuota(error) {
  return error instanceof Error && error.name === "QuotaExceededError";
}

/**
 * Runs an action and converts what storage throws to a {@link CacheError}.
 *
 * @template T
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
export async function guarded(action) {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof AnyGpuError) throw cause;
    if (isQuota(cause)) throw new QuotaError("the browser's storage is full; delete other models", { cause });
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CacheError(`the browser's storage failed (${message}); load with cache: false`, { cause });
  }
}

/** The time limit for calls of one storage. */
class Bound {
  _limit;
  _silent = false;

  /** @param {number} limit */
  constructor(limit) {
    this._limit = limit;
  }

  /**
   * @template T
   * @param {() => Promise<T>} action
   * @returns {Promise<T>}
   */
  call(action) {
    const late = () => {
      this._silent = true;
      return new Error(`no answer for ${this._limit} ms`);
    };
    if (this._silent) return Promise.reject(late());
    return within(this._limit, action(), late);
  }
}

/** @implements {Files} */
class BoundFiles {
  _files;
  _bound;

  /**
   * @param {Files} files
   * @param {Bound} bound
   */
  constructor(files, bound) {
    this._files = files;
    this._bound = bound;
  }

  get folder() {
    return this._files.folder;
  }

  names() {
    return this._bound.call(() => this._files.names());
  }

  /** @param {string} name */
  async blob(name) {
    const blob = await this._bound.call(() => this._files.blob(name));
    return blob && new BoundBlob(blob, this._bound);
  }

  /**
   * @param {string} name
   * @param {Uint8Array} bytes
   */
  write(name, bytes) {
    return this._bound.call(() => this._files.write(name, bytes));
  }

  /** @param {string} name */
  remove(name) {
    return this._bound.call(() => this._files.remove(name));
  }
}

/** @implements {Contents} */
class BoundBlob {
  _blob;
  _bound;

  /**
   * @param {Contents} blob
   * @param {Bound} bound
   */
  constructor(blob, bound) {
    this._blob = blob;
    this._bound = bound;
  }

  get size() {
    return this._blob.size;
  }

  /**
   * @param {number} begin
   * @param {number} end
   */
  slice(begin, end) {
    return new BoundBlob(this._blob.slice(begin, end), this._bound);
  }

  arrayBuffer() {
    return this._bound.call(() => this._blob.arrayBuffer());
  }
}

/** @typedef {import("./opfs-files.js").Contents} Contents */
