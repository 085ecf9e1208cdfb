/** A cached file as a source of the engine. */

import { Piece } from "../common/buffers.js";
import { throwIfAborted } from "../common/errors.js";
import { PART } from "./stored-parts.js";

/** @import { Digest } from "../download/source.js" */
/** @import { StoredParts } from "./stored-parts.js" */

/** A complete cached file. Each part's digest is checked when it is read; a damaged part is downloaded again. */
export class CachedSource {
  _parts;
  _piece = new Piece();

  /**
   * @param {StoredParts} parts
   * @param {number} size
   */
  constructor(parts, size) {
    this._parts = parts;
    this.size = size;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async readAt(offset, length) {
    const all = this._piece.take(length);
    await this._parts.read(all, offset);
    return all;
  }

  /**
   * @param {Digest} digest
   * @param {AbortSignal} signal
   * @returns {Promise<string>} The digest of the whole, in hexadecimal digits.
   */
  async digest(digest, signal) {
    await this.pieces(signal, async (bytes) => digest.update(bytes));
    return digest.hex();
  }

  /**
   * Reads the file part by part.
   *
   * @param {AbortSignal} signal
   * @param {(bytes: Uint8Array) => Promise<void>} pass
   */
  async pieces(signal, pass) {
    for (let at = 0; at < this.size; at += PART) {
      throwIfAborted(signal);
      await pass(await this.readAt(at, Math.min(PART, this.size - at)));
    }
  }

  pause() {}

  readOn() {}

  async finish() {}

  async abort() {}
}
