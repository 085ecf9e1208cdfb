/**
 * The cache of models in the browser's storage.
 *
 * A download has a record of its progress, separate from that of the file's old version, which stays until the new one
 * is complete. Several tabs share the store: reading or writing parts needs a lock on their entry, and changing the set
 * of entries needs the lock of the store.
 */

import { QuotaError, throwIfAborted } from "../common/errors.js";
import { hex } from "../common/sha256.js";
import { guarded, inTime, isQuota, noRoom, openFiles } from "../opfs/storage.js";
import { hold, holdAfter } from "../opfs/tab-locks.js";
import { STORE_LOCK, EntryStore, UNFINISHED } from "./entry-store.js";
import { EntryWriter } from "./entry-writer.js";
import { nameOf, storedOf } from "./entry.js";
import { StoredParts } from "./stored-parts.js";

/** @import { Version } from "../download/remote-file.js" */
/** @import { Files } from "../opfs/opfs-files.js" */
/** @import { Environment } from "../opfs/storage.js" */
/** @import { Entry } from "./entry.js" */

/**
 * @typedef {object} PinnedEntry An entry that is being read: it stays until it is released.
 * @property {Entry} entry
 * @property {StoredParts} parts
 * @property {() => void} release
 */

/**
 * @typedef {object} Queueing
 * @property {AbortSignal} signal
 * @property {number} patience How long nothing may arrive before another tab is not waited for, in milliseconds.
 * @property {boolean} waits Whether to wait at all.
 * @property {(stored: number, size: number) => void} onProgress Told how far the other tab is.
 */

/**
 * @typedef {object} Room
 * @property {number} maxBytes Limit of the store.
 * @property {number} reserved Bytes that other unfinished entries still need.
 */

/** The store of this site. */
export class ModelStore extends EntryStore {
  _storage;

  /**
   * @param {Files} files
   * @param {LockManager} locks
   * @param {StorageManager | undefined} storage
   * @param {number} [limit] How long a lock is waited for, in milliseconds.
   */
  constructor(files, locks, storage, limit) {
    super(files, locks, limit);
    this._storage = storage;
  }

  /**
   * Opens the store, and removes what a crash left behind.
   *
   * @param {Environment} environment
   * @returns {Promise<ModelStore | null>} Null if this browser or page has none.
   */
  static async open(environment) {
    const { storage, locks, limit } = environment;
    // Without locks, tabs could remove each other's files. Browsers without locks hardly have WebGL2.
    if (locks === undefined) return null;
    const files = await openFiles(environment);
    if (files === null) return null;
    const store = new ModelStore(files, locks, storage, limit);
    try {
      await store._exclusively(() => store._sweep());
    } catch {
      // Storage that cannot be listed is of no use, but loading works without it.
      return null;
    }
    return store;
  }

  /** @returns {Promise<Entry[]>} Last used first; of what is not whole, too. */
  list() {
    return guarded(() => this._exclusively(() => this._entries()));
  }

  /**
   * @param {string} key
   * @returns {Promise<PinnedEntry | null>}
   */
  get(key) {
    return guarded(() =>
      this._exclusively(async () => {
        const entry = await this._entry(await nameOf(key));
        const release = entry && (await this._hold(entry.id, "shared"));
        if (entry === null || release === null) return null;
        entry.used = Date.now();
        // If it cannot be written, only the order of eviction suffers.
        await this._write(entry).catch(() => {});
        return { entry, parts: new StoredParts(this.files, entry.id, entry.size, entry.parts), release };
      }),
    );
  }

  /** Updates the record of a complete entry. @param {Entry} entry */
  update(entry) {
    return guarded(() =>
      this._exclusively(async () => {
        const now = await this._entry(await this._nameOf(entry));
        // Another tab may have deleted the entry, or downloaded a newer version.
        if (now?.id === entry.id) await this._write(entry);
      }),
    );
  }

  /**
   * Removes a file from the store, complete or not.
   *
   * @param {string} key
   * @returns {Promise<boolean>} Whether it was there.
   */
  delete(key) {
    return guarded(() =>
      this._exclusively(async () => {
        const entries = (await this._entries()).filter((entry) => entry.key === key);
        for (const entry of entries) await this._remove(entry);
        return entries.length > 0;
      }),
    );
  }

  /** Removes all files. */
  clear() {
    return guarded(() =>
      this._exclusively(async () => {
        for (const entry of await this._entries()) await this._remove(entry);
      }),
    );
  }

  /** @returns {Promise<StorageEstimate>} */
  async estimate() {
    const asked = this._storage?.estimate?.();
    return (asked && (await inTime(asked, this._limit).catch(() => undefined))) ?? {};
  }

  /**
   * Waits for this tab's turn to download a file, as long as the tab whose turn it is makes progress.
   *
   * @param {string} key
   * @param {Queueing} how
   * @returns {Promise<{ release: (() => void) | null, waited: boolean }>} Without `release` it is still another's turn.
   */
  async turn(key, { signal, patience, waits, onProgress }) {
    const look = async () => {
      const entries = await this.list();
      const own = entries.find((entry) => entry.key === key && !entry.whole);
      if (own !== undefined) onProgress(storedOf(own), own.size);
      return entries.reduce((bytes, entry) => bytes + storedOf(entry), 0);
    };
    try {
      return await guarded(async () => {
        const lock = `${STORE_LOCK}/get/${await nameOf(key)}`;
        const release = await hold(this._locks, lock, { ifAvailable: true });
        if (release !== null || !waits) return { release, waited: false };
        return { release: await holdAfter(this._locks, lock, { signal, patience, look }), waited: true };
      });
    } catch (error) {
      throwIfAborted(signal);
      throw error;
    }
  }

  /**
   * Returns the unfinished entry that an earlier attempt left. The caller must have the file's turn.
   *
   * @param {string} key
   * @param {Room} room
   * @returns {Promise<EntryWriter | null>}
   */
  resumed(key, room) {
    return guarded(async () => {
      const entry = await this._exclusively(async () => this._entry(`${await nameOf(key)}${UNFINISHED}`));
      if (entry === null || entry.parts.length === 0) return null;
      const release = await this._hold(entry.id, "exclusive");
      if (release === null) return null;
      const writer = new EntryWriter(this, entry, release, true);
      try {
        await this._exclusively(() => this._makeRoom(entry, room));
        return writer;
      } catch (error) {
        await writer.abort();
        throw error;
      }
    });
  }

  /**
   * Begins an entry, after making room for it.
   *
   * @param {string} key
   * @param {Version & { size: number, manifest: string | null }} version
   * @param {Room} room
   * @param {boolean} turn Whether this tab has the file's turn: others leave no record of how far they are.
   * @returns {Promise<EntryWriter>} It throws a `CacheError`.
   */
  create(key, version, room, turn) {
    return guarded(async () => {
      const now = Date.now();
      const id = hex(crypto.getRandomValues(new Uint8Array(16)));
      const facts = { sha256: null, whole: false, created: now, used: now };
      const entry = { key, id, ...version, parts: [], ...facts };
      await this._exclusively(() => this._makeRoom(entry, room));
      const release = await this._hold(id, "exclusive");
      return new EntryWriter(this, entry, release ?? (() => {}), turn);
    });
  }

  /** Records the progress of an entry. @param {Entry} entry */
  note(entry) {
    entry.used = Date.now();
    return guarded(() => this._exclusively(() => this._write(entry)));
  }

  /** Makes a complete entry visible. @param {Entry} entry */
  finish(entry) {
    return guarded(() =>
      this._exclusively(async () => {
        const name = await nameOf(entry.key);
        const before = await this._entry(name);
        entry.created = entry.used = Date.now();
        await this._records.write(name, { ...entry, whole: true });
        // The entry is stored from here on, even if old files remain.
        await this._records.remove(`${name}${UNFINISHED}`).catch(() => {});
        if (before !== null) await this._removeParts(before.id).catch(() => {});
      }),
    );
  }

  /**
   * Removes an unfinished entry, whose lock is held.
   *
   * @param {Entry} entry
   * @param {boolean} noted Whether it has a record.
   */
  discard(entry, noted) {
    return this._exclusively(async () => {
      const name = await nameOf(entry.key);
      if (noted) await this._records.remove(`${name}${UNFINISHED}`);
      // A write that failed may still have happened.
      if ((await this._entry(name))?.id === entry.id) await this._records.remove(name);
      await this._removeFiles(entry.id);
    });
  }

  /**
   * Writes, and removes other entries if there is no room.
   *
   * @param {string} key Key of the entry that must stay.
   * @param {() => Promise<void>} write
   */
  makingRoom(key, write) {
    return guarded(async () => {
      for (;;) {
        try {
          return await write();
        } catch (error) {
          if (!isQuota(error) || !(await this._exclusively(() => this._evictOne(key)))) throw error;
        }
      }
    });
  }

  /**
   * @param {Entry} entry
   * @param {Room} room
   */
  async _makeRoom(entry, { maxBytes, reserved }) {
    const size = entry.size + reserved;
    if (size > maxBytes) {
      throw new QuotaError(`the model has ${size} bytes, but maxCacheBytes is ${maxBytes}; raise it`);
    }
    const others = async () => (await this._entries()).filter(({ key }) => key !== entry.key);
    const sum = async () => (await others()).reduce((bytes, other) => bytes + storedOf(other), size);
    while ((await sum()) > maxBytes) {
      if (!(await this._evictOne(entry.key))) throw noRoom(size);
    }
    for (;;) {
      const { quota, usage } = await this.estimate();
      if (quota === undefined || usage === undefined || quota - usage >= size - storedOf(entry)) return;
      if (!(await this._evictOne(entry.key))) throw noRoom(size);
    }
  }
}
