/** A stream that reads ahead while nobody asks for its bytes, and buffers them in memory. */

/** @import { Stream } from "./source.js" */

/** Limit of the buffer, except for the read that reaches it. In bytes. */
const MOST = 32 << 20;

/** @implements {Stream} */
export class PrefetchStream {
  _inner;
  /** Buffered bytes. @type {Uint8Array[]} */
  _pieces = [];
  _kept = 0;
  /** Set while it reads ahead. @type {Promise<void> | null} */
  _reading = null;
  _stopped = false;
  /** @type {{ error: unknown } | null} */
  _failure = null;

  /** @param {Stream} inner */
  constructor(inner) {
    this._inner = inner;
  }

  get position() {
    return this._inner.position - this._kept;
  }

  /** Reads ahead until bytes are asked for again. */
  readOn() {
    if (this._reading !== null) return;
    this._stopped = false;
    this._reading = this._readOn();
  }

  async _readOn() {
    try {
      while (!this._stopped && this._kept < MOST) {
        const bytes = await this._inner.next();
        if (bytes === null) break;
        this._pieces.push(bytes.slice());
        this._kept += bytes.length;
      }
    } catch (error) {
      // Thrown by `next` after the buffered bytes.
      this._failure = { error };
    }
  }

  async connect() {
    await this._inner.connect();
  }

  /**
   * @param {number} [most]
   * @returns {Promise<Uint8Array | null>}
   */
  async next(most = Infinity) {
    this._stopped = true;
    if (this._pieces.length === 0) await this._reading;
    if (this._pieces.length === 0) {
      this._reading = null;
      const failure = this._failure;
      this._failure = null;
      if (failure !== null) throw failure.error;
      return this._inner.next(most);
    }
    const [first] = this._pieces;
    const bytes = first.subarray(0, Math.min(most, first.length));
    if (bytes.length === first.length) this._pieces.shift();
    else this._pieces[0] = first.subarray(bytes.length);
    this._kept -= bytes.length;
    return bytes;
  }

  /** @param {number} position */
  reaches(position) {
    return position >= this.position && this._inner.reaches(Math.max(position, this._inner.position));
  }

  close() {
    this._stopped = true;
    this._inner.close();
    // A read in progress may have made a new connection.
    this._reading?.then(() => this._inner.close());
  }
}
