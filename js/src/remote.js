/**
 * A file on a server, read as streams that begin anywhere and go on after a dropped connection.
 *
 * Nothing is asked of the server but plain GET: ranges are used where it has them. Requests have no header that would
 * make browsers ask other origins for leave first, save `Range`; so whether the file is still the same is seen by
 * comparing what answers say of it (`ETag`, `Last-Modified`, size), not by `If-Range`.
 */

import { ByteReader } from "./bytes.js";
import { NetworkError } from "./errors.js";

/** Answers after which another attempt may succeed. */
const TEMPORARY = [408, 425, 429, 500, 502, 503, 504];
/** The first pause before another attempt, in milliseconds; each further one is twice as long. */
const FIRST_PAUSE = 250;
/** The longest pause, whatever the server says in `Retry-After`. In milliseconds. */
const LONGEST_PAUSE = 30_000;
/** A forward jump of so many bytes is read over; a longer one is worth a new request. */
const READ_OVER = 1 << 20;
/** Bytes that a blob in the making collects before they are given to the browser. */
const SPOOL_PIECE = 4 << 20;

/** A connection that failed in a way that another attempt may mend. */
class Dropped extends Error {
  /**
   * @param {string} message
   * @param {{ cause?: unknown, status?: number, pause?: number }} [details]
   */
  constructor(message, details = {}) {
    super(message, { cause: details.cause });
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
  #known = false;

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
      // The browser's own cache would keep the file a second time, and lets requests for one file wait for each other.
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
    this.signal.throwIfAborted();
    const connection = new Connection(this);
    const headers = new Headers(this.init.headers);
    if (position > 0) headers.set("Range", `bytes=${position}-`);
    try {
      const response = await connection.patient(fetch(this.url, { ...this.init, headers, signal: connection.signal }));
      const start = this.#check(response, position);
      connection.body = response.body ? new ByteReader(response.body) : null;
      return { connection, skip: position - start };
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * Looks at the head of an answer.
   *
   * @param {Response} response
   * @param {number} position
   * @returns {number} Where its body begins in the file.
   */
  #check(response, position) {
    const { status, headers } = response;
    if (TEMPORARY.includes(status)) {
      const seconds = Number(headers.get("Retry-After") ?? 0);
      const pause = Number.isFinite(seconds) ? Math.min(seconds * 1000, LONGEST_PAUSE) : 0;
      throw new Dropped(`the server answered ${status}`, { status, pause });
    }
    if (status === 416) throw this.#changed();
    if (status !== 200 && status !== 206) {
      throw this.error(`the server answered ${status} for ${this.url}; check the address and the right to read it`, {
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
    this.#compare(size, headers.get("ETag"), headers.get("Last-Modified"));
    return start;
  }

  /**
   * Keeps what the first answer says of the file, and holds later ones to it.
   *
   * @param {number | null} size
   * @param {string | null} etag
   * @param {string | null} lastModified
   */
  #compare(size, etag, lastModified) {
    if (!this.#known) {
      Object.assign(this, { size, etag, lastModified });
      this.#known = true;
      return;
    }
    const differs = (/** @type {unknown} */ a, /** @type {unknown} */ b) => a !== null && b !== null && a !== b;
    if (differs(this.size, size) || differs(this.etag, etag) || differs(this.lastModified, lastModified)) {
      throw this.#changed();
    }
  }

  #changed() {
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
  #controller = new AbortController();
  #remote;
  #onAbort = () => this.#controller.abort(this.#remote.signal.reason);

  /** @param {Remote} remote */
  constructor(remote) {
    this.#remote = remote;
    remote.signal.addEventListener("abort", this.#onAbort);
  }

  get signal() {
    return this.#controller.signal;
  }

  /**
   * Waits, but not for ever.
   *
   * @template T
   * @param {Promise<T>} promise
   * @returns {Promise<T>}
   */
  async patient(promise) {
    const limit = this.#remote.stallTimeout;
    let stalled = false;
    const timer = setTimeout(() => {
      stalled = true;
      this.#controller.abort();
    }, limit);
    try {
      return await promise;
    } catch (cause) {
      this.#remote.signal.throwIfAborted();
      if (stalled) throw new Dropped(`nothing came for ${limit} ms`, { cause });
      throw new Dropped(`the connection failed (${cause instanceof Error ? cause.message : cause})`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  close() {
    this.#remote.signal.removeEventListener("abort", this.#onAbort);
    this.#controller.abort();
  }
}

/** A file from some position on, in order. What comes waits in the browser until it is asked for. */
export class RemoteStream {
  #remote;
  /** @type {Connection | null} */
  #connection = null;
  /** Bytes that the connection brings before those that are wanted. */
  #skip = 0;
  /** Came, but was not asked for yet. */
  #rest = /** @type {Uint8Array} */ (new Uint8Array(0));
  /** Attempts in a row that brought nothing. */
  #failures = 0;

  /**
   * @param {Remote} remote
   * @param {number} position The byte of the file that comes next.
   */
  constructor(remote, position) {
    this.#remote = remote;
    this.position = position;
  }

  /** Makes the connection. */
  async connect() {
    if (this.#connection === null) await this.#retrying(() => this.#open());
  }

  /**
   * The next bytes, as many as are there; they stay until the next call.
   *
   * @param {number} [most]
   * @returns {Promise<Uint8Array | null>} Null at the end of the file.
   */
  async next(most = Infinity) {
    if (this.#rest.length === 0) this.#rest = (await this.#retrying(() => this.#receive())) ?? this.#rest;
    if (this.#rest.length === 0) return null;
    const bytes = this.#rest.subarray(0, Math.min(most, this.#rest.length));
    this.#rest = this.#rest.subarray(bytes.length);
    this.position += bytes.length;
    return bytes;
  }

  /** Whether it can be brought to a position for less than a new request costs. */
  reaches(/** @type {number} */ position) {
    const distance = position - this.position;
    return distance >= 0 && (distance <= READ_OVER || !this.#remote.ranges);
  }

  /** Ends the connection. */
  close() {
    this.#connection?.close();
    this.#connection = null;
  }

  async #open() {
    const { connection, skip } = await this.#remote.request(this.position + this.#rest.length);
    this.#connection = connection;
    this.#skip = skip;
    return connection;
  }

  /** @returns {Promise<Uint8Array | null>} */
  async #receive() {
    const { size, signal } = this.#remote;
    for (;;) {
      signal.throwIfAborted();
      if (size !== null && this.position === size) return null;
      const connection = this.#connection ?? (await this.#open());
      const value = connection.body ? await connection.patient(connection.body.read()) : undefined;
      if (value === undefined && size === null) return null;
      if (value === undefined) throw new Dropped(`the connection ended at byte ${this.position} of ${size}`);
      const bytes = value.subarray(Math.min(this.#skip, value.length));
      this.#skip -= value.length - bytes.length;
      if (size !== null && this.position + bytes.length > size) {
        const { url } = this.#remote;
        throw this.#remote.error(`${url} has more than the ${size} bytes that the server says; switch its compression off`);
      }
      if (bytes.length > 0) return bytes;
    }
  }

  /**
   * @template T
   * @param {() => Promise<T>} attempt
   * @returns {Promise<T>}
   */
  async #retrying(attempt) {
    const { signal, retries, url } = this.#remote;
    for (;;) {
      try {
        const result = await attempt();
        this.#failures = 0;
        return result;
      } catch (error) {
        this.close();
        if (!(error instanceof Dropped)) throw error;
        this.#failures += 1;
        // Without its size, nothing says where a file that began to come goes on.
        if (this.#failures > retries || (this.#remote.size === null && this.position > 0)) {
          const { status, cause, message } = error;
          const tried = this.#failures === 1 ? "" : ` in ${this.#failures} attempts`;
          throw this.#remote.error(`cannot download ${url}${tried}: ${message}; check the connection and try again`, {
            status,
            cause,
          });
        }
        await pause(Math.max(error.pause, FIRST_PAUSE * 2 ** (this.#failures - 1)), signal);
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
      reject(signal.reason);
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
