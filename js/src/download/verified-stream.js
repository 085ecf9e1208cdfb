/** A file on a server as a stream that returns bytes only after their digest was checked. */

import { ChecksumError } from "../common/errors.js";
import { sha256 } from "../common/sha256.js";
import { RemoteStream } from "./remote-stream.js";

/** @import { FileDigests } from "../../index.d.ts" */
/** @import { RemoteFile } from "./remote-file.js" */
/** @import { Digest } from "./source.js" */

/** Number of attempts to download a piece that has the wrong digest. */
const ATTEMPTS = 3;

/** A stream with the methods of `RemoteStream`. */
export class VerifiedStream {
  _remote;
  _digests;
  _newDigest;
  _inner;
  /** Piece that is being read; a part of it may not be wanted yet. */
  _piece = new Uint8Array(0);
  _start = -1;

  /**
   * @param {RemoteFile} remote The file, whose size is that of the digests.
   * @param {number} position The byte of the file that comes next.
   * @param {FileDigests} digests
   * @param {() => Promise<Digest>} newDigest
   * @param {RemoteStream} [inner] From the beginning of the piece on.
   */
  constructor(remote, position, digests, newDigest, inner) {
    this._remote = remote;
    this._digests = digests;
    this._newDigest = newDigest;
    this.position = position;
    this._inner = inner ?? new RemoteStream(remote, position - (position % digests.chunk));
  }

  /** Opens the connection. */
  async connect() {
    await this._inner.connect();
  }

  /**
   * Returns the next bytes, as many as are there. They are valid until the next call.
   *
   * @param {number} [most]
   * @returns {Promise<Uint8Array | null>} Null at the end of the file.
   */
  async next(most = Infinity) {
    const { size, chunk } = this._digests;
    if (this.position >= size) return null;
    const index = Math.floor(this.position / chunk);
    if (this._start !== index * chunk) await this._read(index);
    const from = this.position - this._start;
    const bytes = this._piece.subarray(from, Math.min(this._piece.length, from + most));
    this.position += bytes.length;
    return bytes;
  }

  /** Whether it can be moved to a position for less than the cost of a new request. */
  reaches(/** @type {number} */ position) {
    return position >= this.position && this._inner.reaches(Math.max(position, this._inner.position));
  }

  /** Closes the connection. */
  close() {
    this._inner.close();
  }

  /** Reads a piece, and downloads it again if its digest is wrong. @param {number} index */
  async _read(index) {
    const { size, chunk, chunks } = this._digests;
    const start = index * chunk;
    const length = Math.min(chunk, size - start);
    if (this._piece.length !== length) this._piece = new Uint8Array(length);
    this._start = -1;
    for (let attempt = 1; ; attempt += 1) {
      await this._fill(length);
      const actual = await sha256(this._piece, this._newDigest);
      if (actual === chunks[index]) break;
      this._inner.close();
      if (attempt === ATTEMPTS) {
        const message = `bytes ${start} to ${start + length} of ${this._remote.url} are not what their digest says`;
        const remedy = "use another server, or correct the digests";
        throw new ChecksumError(`${message}; ${remedy}`, { expected: chunks[index], actual });
      }
      // The server's ranges may be wrong, so the last attempt goes without them.
      if (attempt === ATTEMPTS - 1) this._remote.ranges = false;
      this._inner = new RemoteStream(this._remote, start);
    }
    this._start = start;
  }

  /** @param {number} length */
  async _fill(length) {
    for (let filled = 0; filled < length; ) {
      const bytes = await this._inner.next(length - filled);
      if (bytes === null) throw this._remote.renewed();
      this._piece.set(bytes, filled);
      filled += bytes.length;
    }
  }
}
