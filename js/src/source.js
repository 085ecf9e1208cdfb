/**
 * Where the engine reads a model from: `{ size, readAt(offset, length), finish(), abort() }`. What `readAt` gives stays until
 * it is called again: the engine copies it.
 *
 * A blob (a file that the user chose, the cache, bytes) is read as it lies. A URL is read in order, once, while the same
 * bytes go to the cache and to the digest; what the engine wants again comes from the cache, or is asked for again.
 * No more than one piece of at most 4 MiB and what one network read brings is in JavaScript's memory.
 */

import { Piece } from "./bytes.js";
import { ChecksumError, FileError } from "./errors.js";
import { Remote, RemoteStream, spool } from "./remote.js";

/** How much is read at once where nobody else says. In bytes. */
const PIECE = 4 << 20;

/**
 * @typedef {object} Digest SHA-256 of what comes in pieces.
 * @property {(bytes: Uint8Array) => void} update
 * @property {() => string} hex
 */

/**
 * @typedef {object} Recorder A cache entry in the making.
 * @property {(bytes: Uint8Array) => Promise<void>} write Appends.
 * @property {((offset: number, length: number) => Promise<Uint8Array>) | null} read What was appended, if that can be read.
 * @property {(facts: { sha256: string | null, etag: string | null, lastModified: string | null }) => Promise<void>} commit
 * Makes the entry visible.
 * @property {() => Promise<void>} abort Leaves nothing behind.
 */

/** A blob. */
export class BlobSource {
  #blob;

  /** @param {Blob} blob */
  constructor(blob) {
    this.#blob = blob;
    this.size = blob.size;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async readAt(offset, length) {
    try {
      return new Uint8Array(await this.#blob.slice(offset, offset + length).arrayBuffer());
    } catch (cause) {
      throw new FileError("the file cannot be read; it was changed or removed after it was chosen, so choose it again", {
        cause,
      });
    }
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
   * Reads the whole, one piece after the other.
   *
   * @param {AbortSignal} signal
   * @param {(bytes: Uint8Array) => Promise<void>} pass
   */
  async pieces(signal, pass) {
    for (let at = 0; at < this.size; at += PIECE) {
      signal.throwIfAborted();
      await pass(await this.readAt(at, Math.min(PIECE, this.size - at)));
    }
  }

  async finish() {}

  async abort() {}
}

/**
 * @typedef {object} UrlSourceOptions
 * @property {Recorder | null} recorder
 * @property {(error: unknown) => void} onRecorderFailure May throw, if loading is to fail then.
 * @property {Digest | null} digest
 * @property {string | null} sha256 What the digest must be.
 * @property {(loaded: number) => void} onBytes
 */

/** A file on a server. */
export class UrlSource {
  #remote;
  #options;
  #recorder;
  /**
   * The file in order from its beginning, recorded as it passes; null if nothing wants that.
   *
   * @type {RemoteStream | null}
   */
  #main = null;
  /**
   * Any other part of it.
   *
   * @type {RemoteStream | null}
   */
  #side = null;
  /**
   * The whole, if the server has no ranges and the engine reads back and forth.
   *
   * @type {BlobSource | null}
   */
  #whole = null;
  #piece = new Piece();
  #loaded = 0;

  /**
   * @param {Remote} remote
   * @param {RemoteStream} stream From the beginning.
   * @param {number} size
   * @param {UrlSourceOptions} options
   */
  constructor(remote, stream, size, options) {
    this.#remote = remote;
    this.#options = options;
    this.#recorder = options.recorder;
    this.size = size;
    if (options.recorder || options.digest) this.#main = stream;
    else this.#side = stream;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async readAt(offset, length) {
    if (this.#whole) return this.#whole.readAt(offset, length);
    const main = this.#main;
    if (main === null) return this.#aside(offset, length);
    await this.#advance(main, offset);
    if (main.position === offset) return this.#take(main, length, (bytes) => this.#record(bytes));
    if (this.#recorder?.read) {
      await this.#advance(main, offset + length);
      // Recording may just have failed.
      if (this.#recorder?.read) return this.#recorder.read(offset, length);
    }
    return this.#aside(offset, length);
  }

  /** Reads what is left, checks the digest, and keeps the file. */
  async finish() {
    const { digest, sha256 } = this.#options;
    this.#side?.close();
    if (this.#main === null) return;
    await this.#advance(this.#main, this.size);
    this.#main.close();
    const actual = digest?.hex() ?? null;
    if (sha256 !== null && actual !== sha256) {
      await this.abort();
      throw checksumError(sha256, actual ?? "");
    }
    const recorder = this.#recorder;
    if (recorder === null) return;
    const { etag, lastModified } = this.#remote;
    try {
      await recorder.commit({ sha256: actual, etag, lastModified });
    } catch (error) {
      await this.#recordingFailed(error);
    }
  }

  /** Leaves nothing behind. */
  async abort() {
    this.#main?.close();
    this.#side?.close();
    const recorder = this.#recorder;
    this.#recorder = null;
    await recorder?.abort();
  }

  /**
   * Bytes that the main stream does not bring.
   *
   * @param {number} offset
   * @param {number} length
   */
  async #aside(offset, length) {
    if (!this.#side?.reaches(offset)) {
      this.#side?.close();
      const side = new RemoteStream(this.#remote, offset);
      this.#side = side;
      await side.connect();
      if (!this.#remote.ranges) {
        side.close();
        this.#side = null;
        this.#whole = new BlobSource(await spool(await this.#remote.connect(), (bytes) => this.#count(bytes)));
        return this.#whole.readAt(offset, length);
      }
    }
    const count = async (/** @type {Uint8Array} */ bytes) => this.#count(bytes.length);
    await this.#take(this.#side, offset - this.#side.position, count, false);
    return this.#take(this.#side, length, count);
  }

  /**
   * Brings the main stream at least to a position.
   *
   * @param {RemoteStream} main
   * @param {number} position
   */
  async #advance(main, position) {
    if (position > main.position) {
      await this.#take(main, position - main.position, (bytes) => this.#record(bytes), false);
    }
  }

  /**
   * @param {RemoteStream} stream
   * @param {number} length
   * @param {(bytes: Uint8Array) => Promise<void>} pass Sees the bytes as they come.
   * @param {boolean} [keep] Whether they are wanted as a whole.
   * @returns {Promise<Uint8Array>}
   */
  async #take(stream, length, pass, keep = true) {
    const all = this.#piece.take(keep ? length : 0);
    for (let at = 0; at < length; ) {
      const bytes = await stream.next(length - at);
      if (bytes === null) throw new FileError(`the file ends at byte ${stream.position}; it is damaged, so get it anew`);
      if (keep) all.set(bytes, at);
      at += bytes.length;
      await pass(bytes);
    }
    return all;
  }

  /** @param {Uint8Array} bytes */
  async #record(bytes) {
    this.#count(bytes.length);
    this.#options.digest?.update(bytes);
    try {
      await this.#recorder?.write(bytes);
    } catch (error) {
      await this.#recordingFailed(error);
    }
  }

  /** @param {unknown} error */
  async #recordingFailed(error) {
    const recorder = this.#recorder;
    this.#recorder = null;
    await recorder?.abort();
    this.#options.onRecorderFailure(error);
  }

  /** @param {number} bytes */
  #count(bytes) {
    this.#loaded = Math.min(this.#loaded + bytes, this.size);
    this.#options.onBytes(this.#loaded);
  }
}

/**
 * @param {string} expected
 * @param {string} actual
 */
export function checksumError(expected, actual) {
  return new ChecksumError(
    `the file's SHA-256 is ${actual}, not ${expected}; it is damaged or another version, so correct the address or the digest`,
    { expected, actual },
  );
}
