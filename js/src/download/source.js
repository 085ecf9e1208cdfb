/**
 * Sources that the engine reads a file from: `{ size, readAt(offset, length), pause(), finish(), abort() }`. The result
 * of `readAt` is valid until the next call; the engine copies it.
 *
 * A blob (a chosen file, or bytes) is read directly. A URL is read once, in order, while the same bytes go to the cache
 * and to the digest. Bytes that the engine needs again come from the cache or from another request. JavaScript's memory
 * holds at most the piece that the engine reads (up to 4 MiB), four parts of the cache of that size, one piece with a
 * digest of its own, the result of one network read, and up to 32 MiB that arrive while the engine chooses a backend.
 */

import { Piece } from "../common/buffers.js";
import { ChecksumError, FileError, NetworkError, isAbort, throwIfAborted } from "../common/errors.js";
import { PrefetchStream } from "./prefetch-stream.js";
import { ReadAhead } from "./read-ahead.js";
import { spool } from "./remote-stream.js";

/** @import { FileLike } from "../common/runtime.js" */
/** @import { RemoteFile } from "./remote-file.js" */

/** Size of a read by default. In bytes. */
const PIECE = 4 << 20;
/**
 * Error for a download that was held as a blob, because its server does not support ranges, and that cannot be read.
 */
const NOT_HELD =
  "the browser did not hold the whole download; use a server that answers requests for ranges, or let the file be cached";

/**
 * @typedef {object} Digest SHA-256 of bytes that come in pieces.
 * @property {(bytes: Uint8Array) => void} update
 * @property {() => string} hex
 */

/**
 * @typedef {object} Recorder An unfinished cache entry.
 * @property {number} position How much of the file it has; the rest is appended in order.
 * @property {(bytes: Uint8Array) => Promise<void>} write Appends bytes.
 * @property {(offset: number, length: number) => Promise<Uint8Array>} read Reads bytes that were appended.
 * @property {(facts: Facts) => Promise<void>} commit Makes the entry visible.
 * @property {(keep?: boolean) => Promise<void>} abort Gives up; a later attempt may go on if it is told to keep.
 */

/**
 * @typedef {object} Facts Facts about a complete file.
 * @property {string | null} sha256
 * @property {string | null} manifest
 * @property {string | null} etag
 * @property {string | null} lastModified
 */

/**
 * @typedef {object} Stream A file from some position on; see `RemoteStream`.
 * @property {number} position
 * @property {() => Promise<void>} connect
 * @property {(most?: number) => Promise<Uint8Array | null>} next
 * @property {(position: number) => boolean} reaches
 * @property {() => void} close
 */

/** A source that reads a blob. */
export class BlobSource {
  _blob;
  _why;
  /** Parts of the blob, read ahead. @type {ReadAhead<Uint8Array>} */
  _parts;
  _piece = new Piece();
  _index = -1;
  /** Part that was read last. @type {Uint8Array} */
  _bytes = new Uint8Array(0);

  /**
   * @param {FileLike} blob
   * @param {string} [why] Likely cause if the blob cannot be read, and what to do.
   */
  constructor(blob, why = "it was changed or removed after it was chosen, so choose it again") {
    this._blob = blob;
    this._why = why;
    this.size = blob.size;
    this._parts = new ReadAhead((index) => (index * PIECE < this.size ? this._part(index) : null));
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async readAt(offset, length) {
    const all = this._piece.take(length);
    for (let done = 0; done < length; ) {
      const [index, from] = [Math.floor((offset + done) / PIECE), (offset + done) % PIECE];
      if (index !== this._index) {
        this._bytes = await this._parts.piece(index);
        this._index = index;
      }
      const bytes = this._bytes.subarray(from, from + length - done);
      all.set(bytes, done);
      done += bytes.length;
    }
    return all;
  }

  /** @param {number} index */
  async _part(index) {
    try {
      return new Uint8Array(await this._blob.slice(index * PIECE, (index + 1) * PIECE).arrayBuffer());
    } catch (cause) {
      throw new FileError(`the file cannot be read; ${this._why}`, { cause });
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
   * Reads the blob piece by piece.
   *
   * @param {AbortSignal} signal
   * @param {(bytes: Uint8Array) => Promise<void>} pass
   */
  async pieces(signal, pass) {
    for (let at = 0; at < this.size; at += PIECE) {
      throwIfAborted(signal);
      await pass(await this.readAt(at, Math.min(PIECE, this.size - at)));
    }
  }

  pause() {}

  readOn() {}

  async finish() {}

  async abort() {}
}

/**
 * @typedef {object} UrlSourceOptions
 * @property {Recorder | null} recorder
 * @property {(error: unknown) => void} onRecorderFailure May throw, which makes loading fail.
 * @property {Digest | null} digest
 * @property {string | null} sha256 Expected digest.
 * @property {string | null} manifest The digest of the digests that the streams are held to.
 * @property {(position: number) => Stream} newStream
 * @property {(loaded: number) => void} onBytes
 */

/** A source that reads a file on a server. */
export class UrlSource {
  _remote;
  _options;
  _recorder;
  /**
   * Stream of the file in order from its beginning, recorded as it passes; null if neither the cache nor a digest needs
   * it.
   *
   * @type {Stream | null}
   */
  _main = null;
  /** Stream from any other position. @type {Stream | null} */
  _side = null;
  /** The whole file, if the server has no ranges and the engine reads back and forth. @type {BlobSource | null} */
  _whole = null;
  /** Stream that the source began with. */
  _early;
  _piece = new Piece();
  _loaded = 0;

  /**
   * @param {RemoteFile} remote
   * @param {Stream} stream From where the recorder is; without one, from the beginning.
   * @param {number} size
   * @param {UrlSourceOptions} options
   */
  constructor(remote, stream, size, options) {
    this._remote = remote;
    this._options = options;
    this._recorder = options.recorder;
    this.size = size;
    const early = new PrefetchStream(stream);
    if (options.recorder || options.digest) this._main = early;
    else this._side = early;
    this._early = early;
    this._loaded = stream.position;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async readAt(offset, length) {
    if (this._whole) return this._whole.readAt(offset, length);
    const main = this._main;
    if (main === null) return this._aside(offset, length);
    await this._advance(main, offset);
    if (main.position === offset) return this._take(main, length, (bytes) => this._record(bytes));
    if (this._recorder === null) return this._aside(offset, length);
    await this._advance(main, offset + length);
    // Recording may just have failed.
    return this._recorder === null ? this._aside(offset, length) : this._recorded(this._recorder, offset, length);
  }

  /** Reads ahead while the engine does something else. */
  readOn() {
    if (this._early === (this._main ?? this._side)) this._early.readOn();
  }

  /** Closes its connections until the next read. */
  pause() {
    this._main?.close();
    this._side?.close();
  }

  /** Reads the rest, checks the digest, and stores the file. */
  async finish() {
    const { digest, sha256, manifest } = this._options;
    this._side?.close();
    if (this._main === null) return;
    await this._advance(this._main, this.size);
    this._main.close();
    const actual = digest?.hex() ?? null;
    if (sha256 !== null && actual !== sha256) {
      await this.abort();
      throw checksumError(sha256, actual ?? "");
    }
    const recorder = this._recorder;
    if (recorder === null) return;
    const { etag, lastModified } = this._remote;
    try {
      await recorder.commit({ sha256: actual, manifest, etag, lastModified });
      // This file is complete, whatever happens to the model's other files.
      this._recorder = null;
    } catch (error) {
      await this._recordingFailed(error);
    }
  }

  /**
   * Ends early.
   *
   * @param {boolean} [keep] Whether a later attempt may use what arrived; by default nothing is left behind.
   */
  async abort(keep = false) {
    this._main?.close();
    this._side?.close();
    const recorder = this._recorder;
    this._recorder = null;
    await recorder?.abort(keep);
  }

  /**
   * Returns recorded bytes, or downloads them if that fails.
   *
   * @param {Recorder} recorder
   * @param {number} offset
   * @param {number} length
   */
  async _recorded(recorder, offset, length) {
    try {
      return await recorder.read(offset, length);
    } catch (error) {
      if (error instanceof NetworkError || isAbort(error)) throw error;
      await this._recordingFailed(error);
      return this._aside(offset, length);
    }
  }

  /**
   * Returns bytes that the main stream does not provide.
   *
   * @param {number} offset
   * @param {number} length
   */
  async _aside(offset, length) {
    if (!this._side?.reaches(offset)) {
      this._side?.close();
      const side = this._options.newStream(offset);
      this._side = side;
      await side.connect();
      if (!this._remote.ranges) {
        side.close();
        this._side = null;
        this._whole = new BlobSource(await spool(this._options.newStream(0), (bytes) => this._count(bytes)), NOT_HELD);
        return this._whole.readAt(offset, length);
      }
    }
    const count = async (/** @type {Uint8Array} */ bytes) => this._count(bytes.length);
    await this._take(this._side, offset - this._side.position, count, false);
    return this._take(this._side, length, count);
  }

  /**
   * Advances the main stream at least to a position.
   *
   * @param {Stream} main
   * @param {number} position
   */
  async _advance(main, position) {
    if (position > main.position) {
      await this._take(main, position - main.position, (bytes) => this._record(bytes), false);
    }
  }

  /**
   * @param {Stream} stream
   * @param {number} length
   * @param {(bytes: Uint8Array) => Promise<void>} pass Sees the bytes as they come.
   * @param {boolean} [keep] Whether they are wanted as a whole.
   * @returns {Promise<Uint8Array>}
   */
  async _take(stream, length, pass, keep = true) {
    const all = this._piece.take(keep ? length : 0);
    for (let at = 0; at < length; ) {
      const bytes = await stream.next(length - at);
      if (bytes === null) throw new FileError(`the file ends at byte ${stream.position}; it is damaged; download it again`);
      if (keep) all.set(bytes, at);
      at += bytes.length;
      await pass(bytes);
    }
    return all;
  }

  /** @param {Uint8Array} bytes */
  async _record(bytes) {
    this._count(bytes.length);
    this._options.digest?.update(bytes);
    try {
      await this._recorder?.write(bytes);
    } catch (error) {
      await this._recordingFailed(error);
    }
  }

  /** @param {unknown} error */
  async _recordingFailed(error) {
    const recorder = this._recorder;
    this._recorder = null;
    await recorder?.abort();
    this._options.onRecorderFailure(error);
  }

  /** @param {number} bytes */
  _count(bytes) {
    this._loaded = Math.min(this._loaded + bytes, this.size);
    this._options.onBytes(this._loaded);
  }
}

/**
 * @param {string} expected
 * @param {string} actual
 */
export function checksumError(expected, actual) {
  return new ChecksumError(
    `the file's SHA-256 is ${actual}, not ${expected}; it is damaged or another version, so correct the URL or the digest`,
    { expected, actual },
  );
}
