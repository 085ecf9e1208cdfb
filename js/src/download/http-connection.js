/** One connection to a server. Waiting is bounded, and so are the bytes that it may bring. */

import { reasonOf, throwIfAborted, withCause } from "../common/errors.js";
import { afterAwake } from "../common/timeout.js";

/** @import { ByteReader } from "../common/buffers.js" */

/** A connection that failed in a way that a retry may fix. */
export class Dropped extends Error {
  /**
   * @param {string} message
   * @param {{ cause?: unknown, status?: number, pause?: number }} [details] How long to wait at least, in milliseconds.
   */
  constructor(message, details = {}) {
    super(message);
    withCause(this, details.cause);
    this.status = details.status ?? null;
    this.pause = details.pause ?? 0;
  }
}

/** The body of one response. */
export class Connection {
  /** @type {ByteReader | null} */
  body = null;
  /** Position in the file of the next byte. */
  position = 0;
  /** Position in the file where the body ends, if the response says; otherwise infinite. */
  end = Infinity;
  /** Whether the response says that it is a part of the file. */
  partial = false;
  _controller = new AbortController();
  _signal;
  _limit;
  _onAbort = () => this._controller.abort(reasonOf(this._signal));

  /**
   * @param {AbortSignal} signal
   * @param {number} limit How long nothing may come, in milliseconds.
   */
  constructor(signal, limit) {
    this._signal = signal;
    this._limit = limit;
    signal.addEventListener("abort", this._onAbort);
  }

  get signal() {
    return this._controller.signal;
  }

  /**
   * Waits for a promise, but no longer than the limit.
   *
   * @template T
   * @param {Promise<T>} promise
   * @returns {Promise<T>}
   */
  async patient(promise) {
    let stalled = false;
    let end = () => {};
    const ended = new Promise((_, reject) => {
      const gone = () => reject(new Error("aborted"));
      const stop = afterAwake(this._limit, () => {
        stalled = true;
        this._controller.abort();
      });
      this.signal.addEventListener("abort", gone);
      end = () => {
        stop();
        this.signal.removeEventListener("abort", gone);
      };
    });
    try {
      return /** @type {T} */ (await Promise.race([promise, ended]));
    } catch (cause) {
      throwIfAborted(this._signal);
      if (stalled) throw new Dropped(`nothing arrived for ${this._limit} ms`, { cause });
      throw new Dropped(`the connection failed (${cause instanceof Error ? cause.message : cause})`, { cause });
    } finally {
      end();
    }
  }

  close() {
    this._signal.removeEventListener("abort", this._onAbort);
    this._controller.abort();
  }
}
