/**
 * A stream of a file on a server that begins anywhere and resumes after a dropped connection.
 *
 * A stream that resumes asks for its last bytes again, and compares them. So a server that sends the wrong part is
 * noticed, even if its headers are wrong or hidden from scripts of other origins.
 */

import { FileError, reasonOf, throwIfAborted } from "../common/errors.js";
import { Dropped } from "./http-connection.js";
import { barred, isBarred, isOffline } from "./refusal.js";

/** @import { Connection } from "./http-connection.js" */
/** @import { RemoteFile } from "./remote-file.js" */

/** First pause before another attempt, in milliseconds; each further one is twice as long. */
const FIRST_PAUSE = 250;
/** Forward jump, in bytes, up to which bytes are read and dropped; a longer one is worth a new request. */
const READ_OVER = 1 << 20;
/** Number of the last bytes that are asked for again when a stream resumes. */
const OVERLAP = 4096;
/** Number of bytes that are collected for a growing blob before they are handed to the browser. */
const SPOOL_PIECE = 4 << 20;

/** A file in order from a position. Bytes that arrive wait in the browser until they are asked for. */
export class RemoteStream {
  _remote;
  /** @type {Connection | null} */
  _connection = null;
  /** Bytes that arrived, but were not asked for yet. */
  _rest = /** @type {Uint8Array} */ (new Uint8Array(0));
  /** Last bytes that arrived, which the server has to repeat when the stream resumes. */
  _tail;
  /** Number of consecutive attempts without progress. */
  _failures = 0;

  /**
   * @param {RemoteFile} remote
   * @param {number} position The byte of the file that comes next.
   * @param {Uint8Array} [before] Bytes before it, as far as they are known.
   */
  constructor(remote, position, before = new Uint8Array(0)) {
    this._remote = remote;
    this.position = position;
    this._tail = before.slice(-OVERLAP);
  }

  /**
   * Asks the server; afterwards the remote's facts about the file are known.
   *
   * @param {RemoteFile} remote
   * @returns {Promise<RemoteStream>} The file from its beginning.
   */
  static async open(remote) {
    const stream = new RemoteStream(remote, 0);
    await stream.connect();
    return stream;
  }

  /** Opens the connection. */
  async connect() {
    if (this._connection === null) await this._retrying(() => this._open());
  }

  /**
   * Returns the next bytes, as many as are there. They are valid until the next call.
   *
   * @param {number} [most]
   * @returns {Promise<Uint8Array | null>} Null at the end of the file.
   */
  async next(most = Infinity) {
    if (this._rest.length === 0) this._rest = (await this._retrying(() => this._receive())) ?? this._rest;
    if (this._rest.length === 0) return null;
    const bytes = this._rest.subarray(0, Math.min(most, this._rest.length));
    this._rest = this._rest.subarray(bytes.length);
    this.position += bytes.length;
    return bytes;
  }

  /** Whether it can be moved to a position for less than the cost of a new request. */
  reaches(/** @type {number} */ position) {
    const distance = position - this.position;
    return distance >= 0 && (distance <= READ_OVER || !this._remote.ranges);
  }

  /** Closes the connection. */
  close() {
    this._connection?.close();
    this._connection = null;
  }

  async _open() {
    this._connection = await this._remote.request(this.position + this._rest.length - this._tail.length);
    return this._connection;
  }

  /** @returns {Promise<Uint8Array | null>} */
  async _receive() {
    const { size, signal } = this._remote;
    for (;;) {
      throwIfAborted(signal);
      if (size !== null && this.position === size) return null;
      const connection = this._connection ?? (await this._open());
      const value = connection.body ? await connection.patient(connection.body.read()) : undefined;
      if (value === undefined && size === null) return null;
      if (value === undefined) throw new Dropped(`the connection ended at byte ${this.position} of ${size}`);
      const bytes = this._wanted(connection, value);
      if (bytes.length > 0) return bytes;
    }
  }

  /**
   * Returns the new ones of a connection's bytes, after comparing the repeated ones.
   *
   * @param {Connection} connection
   * @param {Uint8Array} value
   */
  _wanted(connection, value) {
    const remote = this._remote;
    const from = connection.position;
    connection.position += value.length;
    if (connection.position > Math.min(connection.end, remote.size ?? remote.most)) throw this._tooMuch(connection);
    const known = this.position - this._tail.length;
    const end = Math.min(connection.position, this.position);
    for (let at = Math.max(from, known); at < end; at += 1) {
      if (value[at - from] === this._tail[at - known]) continue;
      if (!connection.partial) throw remote.renewed();
      throw remote.misled(`the server sent other bytes than those at ${at}`, 206);
    }
    const bytes = value.subarray(Math.min(Math.max(this.position - from, 0), value.length));
    this._keepTail(bytes);
    return bytes;
  }

  /** @param {Uint8Array} bytes */
  _keepTail(bytes) {
    const kept = this._tail.subarray(Math.max(0, this._tail.length + bytes.length - OVERLAP));
    const last = bytes.subarray(Math.max(0, bytes.length - OVERLAP));
    const tail = new Uint8Array((last.length === OVERLAP ? 0 : kept.length) + last.length);
    if (last.length < OVERLAP) tail.set(kept);
    tail.set(last, tail.length - last.length);
    this._tail = tail;
  }

  /** @param {Connection} connection */
  _tooMuch({ partial }) {
    const { url, size, most } = this._remote;
    if (partial) return this._remote.misled("the server sent more than the range that it says", 206);
    const told = size === null ? `${most} bytes, the most without a told size` : `the ${size} bytes that it should`;
    return this._remote.error(`${url} has more than ${told}; switch off the compression`);
  }

  /**
   * Throws if the server is reachable, but does not allow this page to read it: more attempts would be in vain.
   *
   * @param {Dropped} error
   */
  async _barred({ status, cause }) {
    const { retries, url, signal } = this._remote;
    // A single failure may be an accident.
    const asks = this._failures === Math.min(2, retries + 1) && status === null && this._remote.isUnheard();
    if (asks && (await isBarred(url))) throw this._remote.error(barred(url), { cause });
    throwIfAborted(signal);
  }

  /**
   * @template T
   * @param {() => Promise<T>} attempt
   * @returns {Promise<T>}
   */
  async _retrying(attempt) {
    const { signal, retries, url } = this._remote;
    for (;;) {
      try {
        const result = await attempt();
        this._failures = 0;
        return result;
      } catch (error) {
        this.close();
        if (!(error instanceof Dropped)) throw error;
        this._failures += 1;
        await this._barred(error);
        // If a file of unknown size has begun to arrive, it cannot be resumed.
        if (this._failures > retries || (this._remote.size === null && this.position > 0)) {
          const { status, cause, message } = error;
          const tried = this._failures === 1 ? "" : ` in ${this._failures} attempts`;
          const why = isOffline() ? "this device is offline" : message;
          throw this._remote.error(`cannot download ${url}${tried}: ${why}; check the connection and try again`, {
            status,
            cause,
          });
        }
        await pause(Math.max(error.pause, FIRST_PAUSE * 2 ** (this._failures - 1)), signal);
      }
    }
  }
}

/**
 * Reads the rest of a stream into a blob, which the browser may keep on disk.
 *
 * @param {Pick<RemoteStream, "next" | "close">} stream
 * @param {(bytes: number) => void} onBytes
 * @returns {Promise<Blob>}
 */
export async function spool(stream, onBytes) {
  /** @type {Blob[]} */
  const blobs = [];
  /** @type {Uint8Array<ArrayBuffer>[]} */
  let pieces = [];
  let collected = 0;
  for (let bytes = await stream.next(); bytes !== null; bytes = await stream.next()) {
    pieces.push(bytes.slice());
    collected += bytes.length;
    onBytes(bytes.length);
    if (collected >= SPOOL_PIECE) {
      blobs.push(new Blob(pieces));
      pieces = [];
      collected = 0;
    }
  }
  stream.close();
  return new Blob([...blobs, ...pieces]);
}

/**
 * Downloads a short text.
 *
 * @param {RemoteFile} remote
 * @param {number} longest In bytes.
 * @param {string} what Name of what the text should be, for the error.
 */
export async function downloadText(remote, longest, what) {
  const stream = await RemoteStream.open(remote);
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;
  try {
    for (let bytes = await stream.next(); bytes !== null; bytes = await stream.next()) {
      length += bytes.length;
      if (length > longest) throw new FileError(`${remote.url} is longer than ${what} is; correct it`);
      text += decoder.decode(bytes, { stream: true });
    }
  } finally {
    stream.close();
  }
  return text + decoder.decode();
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal.addEventListener("abort", aborted, { once: true });
  });
}
