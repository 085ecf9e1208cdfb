/**
 * Reading into memory that is used again: what each read allocates would be garbage of the size of the file, which browsers
 * collect late.
 */

/** How much is read at once, in bytes. */
const SIZE = 256 << 10;

/** Reads a stream of bytes. */
export class ByteReader {
  /** @type {ReadableStreamBYOBReader | null} */
  #own = null;
  /** @type {ReadableStreamDefaultReader<Uint8Array> | null} */
  #plain = null;
  /**
   * Not here while something is read into it.
   *
   * @type {ArrayBuffer | null}
   */
  #buffer = null;

  /** @param {ReadableStream<Uint8Array>} stream */
  constructor(stream) {
    try {
      this.#own = stream.getReader({ mode: "byob" });
    } catch {
      // Some browsers' streams bring memory of their own.
      this.#plain = stream.getReader();
    }
  }

  /**
   * The next bytes, which stay until the next call.
   *
   * @returns {Promise<Uint8Array | undefined>} Nothing at the end.
   */
  async read() {
    if (this.#own === null) return (await this.#plain?.read())?.value;
    const buffer = this.#buffer ?? new ArrayBuffer(SIZE);
    this.#buffer = null;
    const { value, done } = await this.#own.read(new Uint8Array(buffer));
    this.#buffer = value?.buffer ?? null;
    return done ? undefined : value;
  }
}

/** A piece of memory that grows with what it has to hold. */
export class Piece {
  #bytes = new Uint8Array(0);

  /**
   * So many bytes, whatever they are; they stay until the next call.
   *
   * @param {number} length
   */
  take(length) {
    if (this.#bytes.length < length) this.#bytes = new Uint8Array(length);
    return this.#bytes.subarray(0, length);
  }
}
