/**
 * Reads into memory that is reused: allocating for each read would leave as much garbage as the file has bytes, which
 * browsers collect late.
 */

/** How much is read at once, in bytes: as much as a browser keeps of an answer that nobody reads. */
const SIZE = 2 << 20;

/** Reads a stream of bytes. */
export class ByteReader {
  /** @type {ReadableStreamBYOBReader | null} */
  _own = null;
  /** @type {ReadableStreamDefaultReader<Uint8Array> | null} */
  _plain = null;
  /**
   * Null while something is read into it.
   *
   * @type {ArrayBuffer | null}
   */
  _buffer = null;

  /** @param {ReadableStream<Uint8Array>} stream */
  constructor(stream) {
    try {
      this._own = stream.getReader({ mode: "byob" });
    } catch {
      // Some browsers' streams allocate memory of their own.
      this._plain = stream.getReader();
    }
  }

  /**
   * The next bytes, valid until the next call.
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

/** A piece of memory that grows with what it has to hold. */
export class Piece {
  _bytes = new Uint8Array(0);

  /**
   * This many bytes with undefined contents; they are valid until the next call.
   *
   * @param {number} length
   */
  take(length) {
    if (this._bytes.length < length) this._bytes = new Uint8Array(length);
    return this._bytes.subarray(0, length);
  }
}
