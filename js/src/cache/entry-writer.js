/**
 * An unfinished cache entry. Bytes are written part by part, and records say now and then how far it is, so that a
 * later visit can resume. Parts are hashed and written while more bytes arrive.
 */

import { Piece } from "../common/buffers.js";
import { isAbort, DeviceLostError, NetworkError, OutOfMemoryError, fromEngine } from "../common/errors.js";
import { Changed } from "../download/remote-file.js";
import { PART, StoredParts } from "./stored-parts.js";

/** @import { Entry } from "./entry.js" */
/** @import { ModelStore } from "./model-store.js" */

/** Time between two such records, in milliseconds. */
const NOTE_EVERY = 1000;
/** Largest number of parts on their way to storage: one is hashed while the one before is written. */
const UNDER_WAY = 2;

/**
 * Whether the bytes so far are of use to a later attempt: not if the file is at fault, or if the caller aborted.
 *
 * @param {unknown} thrown
 */
export function mayResume(thrown) {
  if (isAbort(thrown) || thrown instanceof Changed) return false;
  const error = fromEngine(thrown);
  return [NetworkError, DeviceLostError, OutOfMemoryError].some((Class) => error instanceof Class);
}

/** An unfinished entry, which only this tab writes. */
export class EntryWriter {
  _store;
  _entry;
  _release;
  _noted;
  _parts;
  /** Bytes of the next part so far. @type {Uint8Array<ArrayBuffer>} */
  _next = new Uint8Array(0);
  _filled = 0;
  /** Writes of parts in progress, in order. @type {Promise<void>[]} */
  _writing = [];
  /** Buffers of parts that are written, for reuse. @type {Uint8Array<ArrayBuffer>[]} */
  _spare = [];
  /** Number of parts that were handed over. */
  _begun;
  /** Bytes of all parts but the next. */
  _appended;
  _piece = new Piece();
  _notedAt = -Infinity;

  /**
   * @param {ModelStore} store
   * @param {Entry} entry
   * @param {() => void} release Releases the lock of its bytes.
   * @param {boolean} noted Whether its progress is recorded; only one download of a file may do so.
   */
  constructor(store, entry, release, noted) {
    this._store = store;
    this._entry = entry;
    this._release = release;
    this._noted = noted;
    this._parts = new StoredParts(store.files, entry.id, entry.size, entry.parts);
    this._begun = entry.parts.length;
    this._appended = this._parts.length;
  }

  /** Number of bytes so far. */
  get position() {
    return this._appended + this._filled;
  }

  /** Size and version of the file. */
  get version() {
    const { size, etag, lastModified } = this._entry;
    return { size, etag, lastModified };
  }

  /** Digest of the digests that the file is checked against. */
  get manifest() {
    return this._entry.manifest;
  }

  /** @param {import("./stored-parts.js").Refetch} refetch Downloads damaged parts again. */
  mend(refetch) {
    this._parts.refetch = refetch;
  }

  /** Returns the last stored part: the bytes before the next ones. */
  async last() {
    const there = this._parts.length;
    const from = Math.floor((there - 1) / PART) * PART;
    return (await this.read(from, there - from)).slice();
  }

  /** Appends bytes. @param {Uint8Array} bytes */
  async write(bytes) {
    for (let done = 0; done < bytes.length; ) {
      const length = Math.min(PART, this._entry.size - this._appended);
      if (this._next.length !== length) this._next = this._room(length);
      const some = bytes.subarray(done, done + length - this._filled);
      this._next.set(some, this._filled);
      this._filled += some.length;
      done += some.length;
      if (this._filled === length) await this._append();
    }
  }

  /**
   * Reads bytes that were appended.
   *
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>} Valid until the next call.
   */
  async read(offset, length) {
    await this.written();
    const all = this._piece.take(length);
    const written = Math.min(Math.max(this._parts.length - offset, 0), length);
    await this._parts.read(all.subarray(0, written), offset);
    const from = offset + written - this._parts.length;
    all.set(this._next.subarray(from, from + length - written), written);
    return all;
  }

  /**
   * Makes the entry visible. All its bytes must be there.
   *
   * @param {Pick<Entry, "sha256" | "manifest" | "etag" | "lastModified">} facts
   */
  async commit(facts) {
    await this.written();
    await this._store.finish(Object.assign(this._entry, facts));
    this._release();
  }

  /**
   * Gives the entry up. Never throws.
   *
   * @param {boolean} [keep] Whether a later attempt may go on; by default nothing is left.
   */
  async abort(keep = false) {
    await this.written().catch(() => {});
    const { etag, lastModified } = this._entry;
    // Without either there is no way to tell whether the server still has the same version.
    const kept = keep && this._noted && this._parts.length > 0 && (etag !== null || lastModified !== null);
    try {
      if (kept) await this._store.note(this._entry);
      else await this._store.discard(this._entry, this._noted);
    } catch {
      // The rest is removed when the store is opened next.
    }
    this._release();
  }

  /** Returns memory for a part, reused if possible. @param {number} length */
  _room(length) {
    const spare = this._spare.pop();
    return spare?.length === length ? spare : new Uint8Array(length);
  }

  /** Waits until all full parts are written. */
  async written() {
    const writing = this._writing.splice(0);
    await Promise.all(writing);
  }

  /** Begins to write the full part as soon as few enough are in progress. */
  async _append() {
    const part = this._next;
    this._next = new Uint8Array(0);
    this._appended += this._filled;
    this._filled = 0;
    while (this._writing.length >= UNDER_WAY) await this._writing.shift();
    const before = this._writing[this._writing.length - 1];
    const one = this._appendAfter(before, this._parts.begin(this._begun++, part));
    // The failure is seen by the caller who waits for it.
    one.catch(() => {});
    this._writing.push(one);
  }

  /**
   * @param {Promise<void> | undefined} before
   * @param {ReturnType<StoredParts["begin"]>} beginning
   */
  async _appendAfter(before, beginning) {
    beginning.catch(() => {});
    await before;
    const begun = await beginning;
    await this._store.makingRoom(this._entry.key, () => this._parts.append(begun));
    this._spare.push(begun.bytes);
    const now = performance.now();
    if (!this._noted || now - this._notedAt < NOTE_EVERY) return;
    this._notedAt = now;
    await this._store.note(this._entry);
  }
}
