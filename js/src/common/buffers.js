/**
 * Reads into memory that is reused. Allocating for each read would leave as much garbage as the file has bytes, and
 * browsers collect it late.
 */

/** Bytes per read: as many as a browser keeps of a response that is not read. */
const SIZE = 2 << 20;

/** Reads a stream of bytes. */
export class ByteReader {
  /** @type {ReadableStreamBYOBReader | null} */
  _own = null;
  /** @type {ReadableStreamDefaultReader<Uint8Array> | null} */
  _plain = null;
  /** Buffer for the next read; null during a read. @type {ArrayBuffer | null} */
  _buffer = null;

  /** @param {ReadableStream<Uint8Array>} stream */
  constructor(stream) {
    try {
      this._own = stream.getReader({ mode: "byob" });
    } catch {
      // Some browsers' streams cannot read into memory that they are given.
      this._plain = stream.getReader();
    }
  }

  /**
   * Returns the next bytes, valid until the next call.
   *
   * @returns {Promise<Uint8Array | undefined>} Nothing at the end.
   */
  async read() {
    if (this._own === null) return (await this._plain?.read())?.value;
    const buffer = this._buffer ?? new ArrayBuffer(SIZE);
    this._buffer = null;
    const { value, done } = await this._own.read(new Uint8Array(buffer));
    this._buffer = value?.buffer ?? null;
    return done ? undefined : value;
  }
}

/** A buffer that grows with what it has to hold. */
export class Piece {
  _bytes = new Uint8Array(0);

  /** Returns this many bytes with undefined contents, valid until the next call. @param {number} length */
  take(length) {
    if (this._bytes.length < length) this._bytes = new Uint8Array(length);
    return this._bytes.subarray(0, length);
  }
}
