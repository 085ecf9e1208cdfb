/**
 * A file on a server.
 *
 * The server only needs plain GET; ranges are used if it supports them. Requests have no header that would cause a
 * preflight on other origins, except `Range`. So `If-Range` is not used: whether the file is still the same is seen by
 * comparing the responses' `ETag`, `Last-Modified` and size.
 *
 * A status alone is not trusted. A server that sends other ranges than those asked for, or other lengths than it says,
 * is asked for whole files from then on.
 */

import { ByteReader } from "../common/buffers.js";
import { NetworkError, throwIfAborted } from "../common/errors.js";
import { Connection, Dropped } from "./http-connection.js";
import { isPage, page, refusal } from "./refusal.js";
import { read } from "./response.js";

/** Status codes after which another attempt may succeed. */
const TEMPORARY = [408, 425, 429, 500, 502, 503, 504];
/** Longest pause, whatever the server says in `Retry-After`. In milliseconds. */
const LONGEST_PAUSE = 30_000;

/** The server has another version of the file now. */
export class Changed extends NetworkError {}

/**
 * @typedef {object} Version Version of a file, as its server says.
 * @property {number | null} size
 * @property {string | null} etag
 * @property {string | null} lastModified
 */

/**
 * @typedef {object} RemoteOptions
 * @property {Record<string, string>} [headers]
 * @property {RequestCredentials} [credentials]
 * @property {number} [retries]
 * @property {number} [stallTimeout]
 * @property {AbortSignal} signal
 */

/** A file on a server. */
export class RemoteFile {
  /** Size in bytes; null if the server does not say, or compresses the response. @type {number | null} */
  size = null;
  /** @type {string | null} */
  etag = null;
  /** @type {string | null} */
  lastModified = null;
  /** Whether the server answers a request for a range with that range; true until it did not. */
  ranges = true;
  /** Limit if the size is not known. In bytes. */
  most = Infinity;
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

  /** Expects a version that is known from before. @param {Version} version */
  expect({ size, etag, lastModified }) {
    Object.assign(this, { size, etag, lastModified });
    this._known = true;
  }

  /**
   * Sends one request, without retries.
   *
   * @param {number} position The connection begins there, or before.
   * @returns {Promise<Connection>}
   */
  async request(position) {
    throwIfAborted(this.signal);
    const connection = new Connection(this.signal, this.stallTimeout);
    const asked = this.ranges ? position : 0;
    const headers = new Headers(this.init.headers);
    if (asked > 0) headers.set("Range", `bytes=${asked}-`);
    try {
      const response = await connection.patient(fetch(this.url, { ...this.init, headers, signal: connection.signal }));
      this._check(response, asked, connection);
      connection.body = response.body ? new ByteReader(response.body) : null;
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * Checks the status and headers of a response.
   *
   * @param {Response} response
   * @param {number} asked
   * @param {Connection} connection Is told where its body begins and ends.
   */
  _check(response, asked, connection) {
    const { status, headers } = response;
    if (TEMPORARY.includes(status)) {
      const seconds = Number(headers.get("Retry-After") ?? 0);
      const pause = Number.isFinite(seconds) ? Math.min(seconds * 1000, LONGEST_PAUSE) : 0;
      throw new Dropped(`the server answered ${status}`, { status, pause });
    }
    if (status === 416) throw this.renewed();
    if (status !== 200 && status !== 206) {
      throw this.error(refusal(status, this.url), { status });
    }
    if (isPage(headers)) throw this.error(page(this.url), { status });
    const answer = read(response, asked, this.size);
    if (typeof answer === "string") throw this.misled(`the server sent ${answer}`, status);
    if (status === 200 && asked > 0) this.ranges = false;
    this._compare(answer.size, headers.get("ETag"), headers.get("Last-Modified"));
    if (this.size === null) this.most = answer.most;
    connection.position = answer.start;
    connection.end = answer.end;
    connection.partial = status === 206;
  }

  /**
   * Returns the error for a part that is not the one asked for, after which ranges are no longer used.
   *
   * @param {string} message
   * @param {number} status
   * @returns {Error}
   */
  misled(message, status) {
    if (!this.ranges) return this.error(`${message} (${this.url}); use another server`, { status });
    this.ranges = false;
    return new Dropped(message, { status });
  }

  /**
   * Stores what the first response says about the file, and compares later ones with it.
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
      throw this.renewed();
    }
  }

  /** Whether the server has not answered yet. */
  isUnheard() {
    return !this._known;
  }

  renewed() {
    return new Changed(`${this.url} changed on the server while it was downloaded; load it again`, { url: this.url });
  }

  /**
   * @param {string} message
   * @param {{ status?: number | null, cause?: unknown }} [details]
   */
  error(message, details = {}) {
    return new NetworkError(message, { url: this.url, ...details });
  }
}

/**
 * Whether a stored version is the one that the server has.
 *
 * @param {Version} server
 * @param {Version} kept
 */
export function isSame(server, kept) {
  const agrees = (/** @type {unknown} */ a, /** @type {unknown} */ b) => a === null || b === null || a === b;
  const known =
    (server.etag !== null && kept.etag !== null) || (server.lastModified !== null && kept.lastModified !== null);
  const { size, etag, lastModified } = server;
  return known && agrees(kept.size, size) && agrees(kept.etag, etag) && agrees(kept.lastModified, lastModified);
}

/**
 * Returns the options of requests for a file.
 *
 * @param {URL} url
 * @param {{ headers?: [string, string][], credentials?: RequestCredentials, network?: object }} options
 * @param {AbortSignal} signal
 * @returns {RemoteOptions}
 */
export function networkOf({ username, password }, { headers: pairs = [], credentials, network }, signal) {
  const headers = Object.fromEntries(pairs);
  // `fetch` refuses URLs with credentials; this header has the same meaning.
  if (username !== "" || password !== "") {
    const login = btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
    headers.authorization = headers.authorization ?? `Basic ${login}`;
  }
  return { headers, credentials, ...network, signal };
}
