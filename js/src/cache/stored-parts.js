/**
 * The bytes of an entry, in files of one size. Each file is written at once and never changed, and the entry has its
 * digest. A part that is incomplete, damaged or gone is noticed when it is read, without reading anything else.
 */

import { ReadAhead } from "../download/read-ahead.js";
import { digested } from "../part-digests.js";

/** @import { Files } from "../opfs/opfs-files.js" */

/** Size of all parts but the last, in bytes: the most that a reload loses, and that memory has to hold. */
export const PART = 4 << 20;

const PART_NAME = /^([0-9a-f]{32})\.[0-9]{1,7}\.part$/;

/**
 * Returns the bytes of a damaged part again, with this digest, or throws.
 *
 * @callback Refetch
 * @param {number} offset
 * @param {number} length
 * @param {string} digest
 * @returns {Promise<Uint8Array>}
 */

/** The parts of one entry. */
export class StoredParts {
  _files;
  _id;
  _size;
  /** Digest of each part that is written. */
  digests;
  /** @type {Refetch | null} */
  refetch = null;
  /** Index of the part that was read last; a part is hardly ever read only once. */
  _index = -1;
  _bytes = new Uint8Array(0);
  /** Stored parts, read ahead; null for a part that is damaged. @type {ReadAhead<Uint8Array<ArrayBuffer> | null>} */
  _ahead;

  /**
   * @param {Files} files
   * @param {string} id
   * @param {number} size Size of the file, in bytes.
   * @param {string[]} digests
   */
  constructor(files, id, size, digests) {
    this._files = files;
    this._id = id;
    this._size = size;
    this.digests = digests;
    this._ahead = new ReadAhead((index) => (index < this.digests.length ? this._sound(index) : null));
  }

  /**
   * Returns the entry that a file is a part of.
   *
   * @param {string} file
   * @returns {string | null}
   */
  static idOf(file) {
    return PART_NAME.exec(file)?.[1] ?? null;
  }

  /** Number of bytes that are written. */
  get length() {
    return Math.min(this.digests.length * PART, this._size);
  }

  /**
   * Hashes a part, and writes it if a worker can do that as well. `append` takes the result.
   *
   * @param {number} index
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  begin(index, bytes) {
    const { folder } = this._files;
    return digested(bytes, folder && { folder, name: this._name(index) });
  }

  /** Writes the next part, if it is not written yet. @param {import("../part-digests.js").Digested} begun */
  async append({ digest, bytes, written }) {
    if (!written) await this._files.write(this._name(this.digests.length), bytes);
    this.digests.push(digest);
  }

  /**
   * Copies written bytes.
   *
   * @param {Uint8Array} into
   * @param {number} offset
   */
  async read(into, offset) {
    for (let done = 0; done < into.length; ) {
      const at = offset + done;
      const part = await this._part(Math.floor(at / PART));
      const bytes = part.subarray(at % PART, (at % PART) + into.length - done);
      into.set(bytes, done);
      done += bytes.length;
    }
  }

  /** @param {number} index */
  async _part(index) {
    if (this._index === index) return this._bytes;
    this._bytes = (await this._ahead.piece(index)) ?? (await this._again(index));
    this._index = index;
    return this._bytes;
  }

  /** @param {number} index */
  _length(index) {
    return Math.min(PART, this._size - index * PART);
  }

  /**
   * @param {number} index
   * @returns {Promise<Uint8Array<ArrayBuffer> | null>} Null if it is not what it was.
   */
  async _sound(index) {
    try {
      const blob = await this._files.blob(this._name(index));
      if (blob === null || blob.size !== this._length(index)) return null;
      const { digest, bytes } = await digested(new Uint8Array(await blob.arrayBuffer()));
      return digest === this.digests[index] ? bytes : null;
    } catch {
      return null;
    }
  }

  /**
   * @param {number} index
   * @returns {Promise<Uint8Array<ArrayBuffer>>}
   */
  async _again(index) {
    if (this.refetch === null) throw new Error(`part ${index} is damaged`);
    const bytes = (await this.refetch(index * PART, this._length(index), this.digests[index])).slice();
    // If it cannot be stored, it is used without.
    await this._files.write(this._name(index), bytes).catch(() => {});
    return bytes;
  }

  /** @param {number} index */
  _name(index) {
    return `${this._id}.${index}.part`;
  }
}
