/**
 * Storage of the cache's entries: a record for each, and the parts that it names, under a name that is never used
 * twice. The record is written last. A failure before that leaves bytes that no entry names; they are removed at once
 * or, after a crash, when the store is opened next.
 */

import { AtomicRecords } from "../opfs/atomic-records.js";
import { lockedFor } from "../opfs/storage.js";
import { hold } from "../opfs/tab-locks.js";
import { isEntry, nameOf } from "./entry.js";
import { StoredParts } from "./stored-parts.js";

/** @import { Files } from "../opfs/opfs-files.js" */
/** @import { Entry } from "./entry.js" */

/** Name of the store's lock, and beginning of the names of its entries' locks. */
export const STORE_LOCK = "anygpu";
/** Ending of the name of an unfinished entry's record. */
export const UNFINISHED = ".unfinished";
/** How long an unfinished entry is kept, in milliseconds. */
const FORGOTTEN = 7 * 24 * 3600 * 1000;
/** Endings of the names of files of this package, earlier versions included. */
const OURS = [".json", ".part", ".bytes"];

/** Entries by their names. They must only be changed under the lock of the store. */
export class EntryStore {
  files;
  _records;
  _locks;
  _limit;

  /**
   * @param {Files} files
   * @param {LockManager} locks
   * @param {number} [limit] How long a lock is waited for, in milliseconds.
   */
  constructor(files, locks, limit) {
    this.files = files;
    this._limit = limit;
    this._records = new AtomicRecords(files);
    this._locks = locks;
  }

  /**
   * Removes an entry: an unfinished one if there is one, else the least recently used.
   *
   * @param {string} but Key of the entry that must stay.
   * @returns {Promise<boolean>} Whether there was an entry that is not in use.
   */
  async _evictOne(but) {
    const entries = (await this._entries()).filter((entry) => entry.key !== but).reverse();
    for (const entry of [...entries.filter(({ whole }) => !whole), ...entries.filter(({ whole }) => whole)]) {
      const release = await this._hold(entry.id, "exclusive");
      if (release === null) continue;
      try {
        await this._records.remove(await this._nameOf(entry));
        await this._removeFiles(entry.id);
      } finally {
        release();
      }
      return true;
    }
    return false;
  }

  /** Removes parts that no record names and nobody uses, invalid records, and unfinished entries that are too old. */
  async _sweep() {
    const entries = await this._entries();
    for (const entry of entries) {
      if (entry.whole || Date.now() - entry.used < FORGOTTEN) continue;
      await this._remove(entry);
      entry.id = "";
    }
    const ids = new Set(entries.map(({ id }) => id));
    const records = new Set(await Promise.all(entries.map((entry) => this._nameOf(entry))));
    for (const name of await this.files.names()) {
      if (!OURS.some((end) => name.endsWith(end))) continue;
      const [id, record] = [StoredParts.idOf(name), AtomicRecords.nameOf(name)];
      if (id !== null ? ids.has(id) : record !== null && records.has(record)) continue;
      const release = await this._hold(id ?? name, "exclusive");
      if (release === null) continue;
      await this.files.remove(name).finally(release);
    }
  }

  /** @param {Entry} entry */
  async _remove(entry) {
    await this._records.remove(await this._nameOf(entry));
    await this._removeParts(entry.id);
  }

  /**
   * Removes the parts of an entry that has no record any more. If they are in use, they are removed when the store is
   * opened next.
   *
   * @param {string} id
   */
  async _removeParts(id) {
    const release = await this._hold(id, "exclusive");
    if (release !== null) await this._removeFiles(id).finally(release);
  }

  /** @param {string} id */
  async _removeFiles(id) {
    for (const name of await this.files.names()) {
      if (StoredParts.idOf(name) === id) await this.files.remove(name);
    }
  }

  /** @returns {Promise<Entry[]>} Last used first. */
  async _entries() {
    const names = new Set((await this.files.names()).map(AtomicRecords.nameOf));
    const entries = [];
    for (const name of names) {
      const entry = name === null ? null : await this._entry(name);
      if (entry !== null) entries.push(entry);
    }
    return entries.sort((a, b) => b.used - a.used);
  }

  /**
   * @param {string} name Name of its record.
   * @returns {Promise<Entry | null>} Null if there is none, or none that can be understood.
   */
  async _entry(name) {
    const entry = await this._records.read(name);
    return isEntry(entry) && (await this._nameOf(entry)) === name ? entry : null;
  }

  /** @param {Entry} entry */
  async _write(entry) {
    await this._records.write(await this._nameOf(entry), entry);
  }

  /** Returns the name of an entry's record. @param {Entry} entry */
  async _nameOf(entry) {
    return `${await nameOf(entry.key)}${entry.whole ? "" : UNFINISHED}`;
  }

  /**
   * @template T
   * @param {() => Promise<T>} action
   * @returns {Promise<T>}
   */
  async _exclusively(action) {
    return lockedFor(this._locks, STORE_LOCK, action, this._limit);
  }

  /**
   * Takes the lock of an entry, if it is free.
   *
   * @param {string} id
   * @param {LockMode} mode
   */
  _hold(id, mode) {
    return hold(this._locks, `${STORE_LOCK}/${id}`, { mode, ifAvailable: true });
  }
}
