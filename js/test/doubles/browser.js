/**
 * Doubles in memory of the browser interfaces that the store needs: the origin private file system, the Cache API, and
 * locks.
 */

const missing = () => new DOMException("not there", "NotFoundError");
const full = () => new DOMException("full", "QuotaExceededError");

/** A disk with all files of a site. */
export class Disk {
  /** @type {Map<string, Uint8Array>} */
  files = new Map();
  quota = Infinity;
  /** Whether `estimate` returns the right quota. */
  tells = true;

  get used() {
    return [...this.files.values()].reduce((sum, bytes) => sum + bytes.length, 0);
  }

  /** @param {string} name @param {Uint8Array} bytes */
  write(name, bytes) {
    const before = this.files.get(name)?.length ?? 0;
    if (this.used - before + bytes.length > this.quota) throw full();
    this.files.set(name, bytes);
  }
}

/**
 * @param {Disk} disk
 * @param {"worker" | "page"} thread Workers write through handles, pages through streams.
 */
export function opfs(disk, thread) {
  /** Returns a folder with this prefix; the models' folder has none. @param {string} prefix */
  const folder = (prefix) => ({
    async *keys() {
      const isInside = (/** @type {string} */ name) => name.includes("/") === (prefix !== "") && name.startsWith(prefix);
      yield* [...disk.files.keys()].filter(isInside).map((name) => name.slice(prefix.length));
    },
    async getFileHandle(/** @type {string} */ inside, { create = false } = {}) {
      const name = prefix + inside;
      if (!disk.files.has(name) && !create) throw missing();
      if (!disk.files.has(name)) disk.write(name, new Uint8Array(0));
      const getFile = async () => {
        const bytes = disk.files.get(name);
        if (bytes === undefined) throw missing();
        return new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytes)]);
      };
      return thread === "worker"
        ? { getFile, createSyncAccessHandle: async () => syncHandle(disk, name) }
        : { getFile, createWritable: async () => writable(disk, name) };
    },
    async removeEntry(/** @type {string} */ inside) {
      const name = prefix + inside;
      if (open.has(name)) throw new DOMException("in use", "NoModificationAllowedError");
      if (!disk.files.delete(name)) throw missing();
    },
  });
  const getDirectoryHandle = async (/** @type {string} */ name) => folder(name === "anygpu" ? "" : `${name}/`);
  const getDirectory = async () => /** @type {any} */ ({ getDirectoryHandle });
  return /** @type {StorageManager} */ ({ ...estimates(disk), getDirectory });
}

/** Returns a storage manager without files. @param {Disk} disk */
export function estimates(disk) {
  const estimate = async () => (disk.tells ? { quota: disk.quota, usage: disk.used } : {});
  return /** @type {StorageManager} */ ({ estimate });
}

/** Names of files with an open handle, which cannot be removed. */
const open = new Set();

/** Closes all handles, as the end of a tab does. */
export const closeAll = () => open.clear();

/** @param {Disk} disk @param {string} name */
function syncHandle(disk, name) {
  if (open.has(name)) throw new DOMException("in use", "NoModificationAllowedError");
  open.add(name);
  const bytes = () => disk.files.get(name) ?? new Uint8Array(0);
  return {
    truncate: () => disk.write(name, new Uint8Array(0)),
    write(/** @type {Uint8Array} */ data, { at = 0 }) {
      const whole = new Uint8Array(Math.max(bytes().length, at + data.length));
      whole.set(bytes());
      whole.set(data, at);
      disk.write(name, whole);
      return data.length;
    },
    close: () => open.delete(name),
  };
}

/** @param {Disk} disk @param {string} name */
function writable(disk, name) {
  /** @type {Uint8Array[]} */
  const parts = [];
  return {
    async write(/** @type {Uint8Array} */ bytes) {
      const sum = parts.reduce((length, part) => length + part.length, bytes.length);
      if (disk.used + sum > disk.quota) throw full();
      parts.push(bytes.slice());
    },
    close: async () => disk.write(name, Buffer.concat(parts)),
    async abort() {},
  };
}

/** @param {Disk} disk */
export function cacheStorage(disk) {
  const cache = {
    keys: async () => [...disk.files.keys()].map((url) => ({ url })),
    async match(/** @type {string} */ url) {
      const bytes = disk.files.get(url);
      return bytes && new Response(new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytes)]));
    },
    async put(/** @type {string} */ url, /** @type {Response} */ response) {
      disk.write(url, new Uint8Array(await response.arrayBuffer()));
    },
    delete: async (/** @type {string} */ url) => disk.files.delete(url),
  };
  return /** @type {CacheStorage} */ (/** @type {unknown} */ ({ open: async () => cache }));
}

/** Returns locks with the interface of the Web Locks API. */
export function lockManager() {
  /** @type {Map<string, { mode: string, count: number, queue: (() => void)[] }>} */
  const held = new Map();
  const free = (/** @type {string} */ name, /** @type {string} */ mode) => {
    const lock = held.get(name);
    return lock === undefined || (lock.mode === "shared" && mode === "shared");
  };
  return /** @type {LockManager} */ (
    /** @type {unknown} */ ({
      async request(/** @type {string} */ name, /** @type {any} */ options, /** @type {any} */ callback = options) {
        const { mode = "exclusive", ifAvailable = false, signal } = typeof options === "object" ? options : {};
        if (!free(name, mode) && ifAvailable) return callback(null);
        while (!free(name, mode)) {
          await new Promise((wake, end) => {
            held.get(name)?.queue.push(() => wake(undefined));
            signal?.addEventListener("abort", () => end(new DOMException("aborted", "AbortError")));
          });
        }
        const lock = held.get(name) ?? { mode, count: 0, queue: [] };
        lock.count += 1;
        held.set(name, lock);
        try {
          return await callback({ name, mode });
        } finally {
          lock.count -= 1;
          if (lock.count === 0) held.delete(name);
          lock.queue.splice(0).forEach((wake) => wake());
        }
      },
      get size() {
        return held.size;
      },
      /** Ends the thread that holds a lock. */
      end(/** @type {string} */ name) {
        const lock = held.get(name);
        held.delete(name);
        lock?.queue.splice(0).forEach((wake) => wake());
      },
    })
  );
}
