/**
 * A file on a server, read as streams that begin anywhere and resume after a dropped connection.
 *
 * The server only needs plain GET: ranges are used where it has them. Requests have no header that would make browsers
 * send a preflight to other origins, except `Range`; so whether the file is still the same is seen by
 * comparing what answers say of it (`ETag`, `Last-Modified`, size), not by `If-Range`.
 */

import { reasonOf, throwIfAborted } from "./abort.js";
import { ByteReader } from "./bytes.js";
import { NetworkError, withCause } from "./errors.js";

/** Answers after which another attempt may succeed. */
const TEMPORARY = [408, 425, 429, 500, 502, 503, 504];
/** The first pause before another attempt, in milliseconds; each further one is twice as long. */
const FIRST_PAUSE = 250;
/** The longest pause, whatever the server says in `Retry-After`. In milliseconds. */
const LONGEST_PAUSE = 30_000;
/** A forward jump of up to this many bytes is read and dropped; a longer one is worth a new request. */
const READ_OVER = 1 << 20;
/** Bytes that are collected for a growing blob before they are handed to the browser. */
const SPOOL_PIECE = 4 << 20;

/** A connection that failed in a way that another attempt may fix. */
class Dropped extends Error {
  /**
   * @param {string} message
   * @param {{ cause?: unknown, status?: number, pause?: number }} [details]
   */
  constructor(message, details = {}) {
    super(message);
    withCause(this, details.cause);
    this.status = details.status ?? null;
    this.pause = details.pause ?? 0;
  }
}

/**
 * @typedef {object} RemoteOptions
 * @property {Record<string, string>} [headers]
 * @property {RequestCredentials} [credentials]
 * @property {number} [retries]
 * @property {number} [stallTimeout]
 * @property {AbortSignal} signal
 */

/** A file on a server. */
export class Remote {
  /**
   * Its size in bytes; null if the server does not say (or compresses what it sends).
   *
   * @type {number | null}
   */
  size = null;
  /** @type {string | null} */
  etag = null;
  /** @type {string | null} */
  lastModified = null;
  /** Whether the server answered a request for a range with one; true until it did otherwise. */
  ranges = true;
  _known = false;

  /**
   * @param {string} url
   * @param {RemoteOptions} options
   */
  constructor(url, options) {
    this.url = url;
    this.signal = options.signal;
    this.retries = options.retries ?? 5;
    this.stallTimeout = options.stallTimeout ?? 20_000;
    /** @type {RequestInit} */
    this.init = {
      headers: options.headers ?? {},
      credentials: options.credentials ?? "same-origin",
      // The browser's own cache would keep a second copy, and makes requests for one file wait for each other.
      cache: "no-store",
    };
  }

  /**
   * Asks the server; afterwards `size`, `etag` and `lastModified` are known.
   *
   * @returns {Promise<RemoteStream>} The file from its beginning.
   */
  async connect() {
    const stream = new RemoteStream(this, 0);
    await stream.connect();
    return stream;
  }

  /**
   * One request, without further attempts.
   *
   * @param {number} position
   * @returns {Promise<{ connection: Connection, skip: number }>} `skip` bytes come before those at `position`.
   */
  async request(position) {
    throwIfAborted(this.signal);
    const connection = new Connection(this);
    const headers = new Headers(this.init.headers);
    if (position > 0) headers.set("Range", `bytes=${position}-`);
    try {
      const response = await connection.patient(fetch(this.url, { ...this.init, headers, signal: connection.signal }));
      const start = this._check(response, position);
      connection.body = response.body ? new ByteReader(response.body) : null;
      return { connection, skip: position - start };
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * Checks the status and headers of an answer.
   *
   * @param {Response} response
   * @param {number} position
   * @returns {number} Where its body begins in the file.
   */
  _check(response, position) {
    const { status, headers } = response;
    if (TEMPORARY.includes(status)) {
      const seconds = Number(headers.get("Retry-After") ?? 0);
      const pause = Number.isFinite(seconds) ? Math.min(seconds * 1000, LONGEST_PAUSE) : 0;
      throw new Dropped(`the server answered ${status}`, { status, pause });
    }
    if (status === 416) throw this._changed();
    if (status !== 200 && status !== 206) {
      throw this.error(`the server answered ${status} for ${this.url}; check the URL and whether it may be read`, {
        status,
      });
    }
    const partial = status === 206 ? contentRange(headers.get("Content-Range")) : null;
    const start = status === 206 ? (partial?.start ?? position) : 0;
    if (start > position) {
      throw this.error(`the server sent byte ${start} of ${this.url} when asked for byte ${position}; use another server`);
    }
    if (status === 200 && position > 0) this.ranges = false;
    const size = status === 206 ? (partial?.size ?? null) : contentLength(headers);
    this._compare(size, headers.get("ETag"), headers.get("Last-Modified"));
    return start;
  }

  /**
   * Keeps what the first answer says of the file, and holds later ones to it.
   *
   * @param {number | null} size
   * @param {string | null} etag
   * @param {string | null} lastModified
   */
  _compare(size, etag, lastModified) {
    if (!this._known) {
      Object.assign(this, { size, etag, lastModified });
      this._known = true;
      return;
    }
    const differs = (/** @type {unknown} */ a, /** @type {unknown} */ b) => a !== null && b !== null && a !== b;
    if (differs(this.size, size) || differs(this.etag, etag) || differs(this.lastModified, lastModified)) {
      throw this._changed();
    }
  }

  _changed() {
    return this.error(`${this.url} changed on the server while it was downloaded; load it again`);
  }

  /**
   * @param {string} message
   * @param {{ status?: number | null, cause?: unknown }} [details]
   */
  error(message, details = {}) {
    return new NetworkError(message, { url: this.url, ...details });
  }
}

/** The body of one answer. Its waiting is bounded. */
class Connection {
  /** @type {ByteReader | null} */
  body = null;
  _controller = new AbortController();
  _remote;
  _onAbort = () => this._controller.abort(reasonOf(this._remote.signal));

  /** @param {Remote} remote */
  constructor(remote) {
    this._remote = remote;
    remote.signal.addEventListener("abort", this._onAbort);
  }

  get signal() {
    return this._controller.signal;
  }

  /**
   * Waits, but not forever.
   *
   * @template T
   * @param {Promise<T>} promise
   * @returns {Promise<T>}
   */
  async patient(promise) {
    const limit = this._remote.stallTimeout;
    let stalled = false;
    const timer = setTimeout(() => {
      stalled = true;
      this._controller.abort();
    }, limit);
    try {
      return await promise;
    } catch (cause) {
      throwIfAborted(this._remote.signal);
      if (stalled) throw new Dropped(`nothing arrived for ${limit} ms`, { cause });
      throw new Dropped(`the connection failed (${cause instanceof Error ? cause.message : cause})`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  close() {
    this._remote.signal.removeEventListener("abort", this._onAbort);
    this._controller.abort();
  }
}

/** A file from some position on, in order. What comes waits in the browser until it is asked for. */
export class RemoteStream {
  _remote;
  /** @type {Connection | null} */
  _connection = null;
  /** Bytes that the connection brings before those that are wanted. */
  _skip = 0;
  /** Came, but was not asked for yet. */
  _rest = /** @type {Uint8Array} */ (new Uint8Array(0));
  /** Consecutive attempts that brought nothing. */
  _failures = 0;

  /**
   * @param {Remote} remote
   * @param {number} position The byte of the file that comes next.
   */
  constructor(remote, position) {
    this._remote = remote;
    this.position = position;
  }

  /** Makes the connection. */
  async connect() {
    if (this._connection === null) await this._retrying(() => this._open());
  }

  /**
   * The next bytes, as many as are there; they stay until the next call.
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

  /** Whether it can be brought to a position for less than a new request costs. */
  reaches(/** @type {number} */ position) {
    const distance = position - this.position;
    return distance >= 0 && (distance <= READ_OVER || !this._remote.ranges);
  }

  /** Ends the connection. */
  close() {
    this._connection?.close();
    this._connection = null;
  }

  async _open() {
    const { connection, skip } = await this._remote.request(this.position + this._rest.length);
    this._connection = connection;
    this._skip = skip;
    return connection;
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
      const bytes = value.subarray(Math.min(this._skip, value.length));
      this._skip -= value.length - bytes.length;
      if (size !== null && this.position + bytes.length > size) {
        const { url } = this._remote;
        throw this._remote.error(`${url} has more than the ${size} bytes that the server says; switch off its compression`);
      }
      if (bytes.length > 0) return bytes;
    }
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
        // Without its size there is no telling where to resume a file that began to arrive.
        if (this._failures > retries || (this._remote.size === null && this.position > 0)) {
          const { status, cause, message } = error;
          const tried = this._failures === 1 ? "" : ` in ${this._failures} attempts`;
          throw this._remote.error(`cannot download ${url}${tried}: ${message}; check the connection and try again`, {
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
 * The rest of a stream as a blob, which the browser may keep on disk.
 *
 * @param {RemoteStream} stream
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

/**
 * @param {string | null} header As in `bytes 5-9/10`.
 * @returns {{ start: number, size: number | null } | null}
 */
function contentRange(header) {
  const match = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(header ?? "");
  if (match === null) return null;
  return { start: Number(match[1]), size: match[2] === "*" ? null : Number(match[2]) };
}

/**
 * The size of the body as scripts get it.
 *
 * @param {Headers} headers
 * @returns {number | null}
 */
function contentLength(headers) {
  const encoding = headers.get("Content-Encoding");
  const length = headers.get("Content-Length");
  if (length === null || (encoding !== null && encoding !== "identity")) return null;
  const size = Number(length);
  return Number.isSafeInteger(size) && size >= 0 ? size : null;
}
