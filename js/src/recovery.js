/** An engine that comes back: what it was asked is asked again, and an answer goes on where it was broken off. */

import { reasonOf } from "./abort.js";
import { CrashError, DeviceLostError, DisposedError } from "./errors.js";

/** @import { Connection } from "./connect.js" */
/** @import { ModelInfo, Recovered, Report } from "../index.d.ts" */

/** Losses without a token between them, after which it is given up. */
const LOSSES = 3;

/** @typedef {{ connection: Connection, facts: { info: ModelInfo, report: Report } }} Opened A model behind a connection. */

/** @typedef {{ signal?: AbortSignal, onEvent?: (event: any) => void }} CallOptions */

/** A connection to an engine that is opened again when it is lost. */
export class Recovery {
  _opened;
  _open;
  _onRecovered;
  /** @type {Promise<void> | null} */
  _opening = null;
  /** @type {Error | null} */
  _closed = null;
  /** @type {(error: Error) => void} */
  _lose = () => {};
  /** @type {Promise<any>} Why it did not come back. */
  lost = new Promise((resolve) => (this._lose = resolve));

  /**
   * @param {Opened} opened
   * @param {(() => Promise<Opened>) | null} open Opens another like it; null if it cannot be had again.
   * @param {(event: Recovered, opened: Opened) => void} onRecovered
   */
  constructor(opened, open, onRecovered) {
    this._opened = opened;
    this._open = open;
    this._onRecovered = onRecovered;
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {CallOptions} [options]
   * @returns {Promise<any>}
   */
  call(method, params, options = {}) {
    return this._surviving((client) => client.call(method, params, options), options.signal, () => false);
  }

  /**
   * Generates, and goes on with what was generated before a loss.
   *
   * @param {{ prompt: unknown, generate: { done?: number[] }, session?: string }} params What was done before is told
   * first, as if it were new.
   * @param {CallOptions} options
   * @returns {Promise<any>}
   */
  generate({ prompt, generate, session }, { signal, onEvent }) {
    const begun = generate.done ?? [];
    /** @type {number[]} */
    const told = [];
    let before = 0;
    const onPiece = (/** @type {any} */ event) => {
      if (event.token !== undefined) told.push(event.token);
      onEvent?.(event);
    };
    const call = (/** @type {Connection["client"]} */ client) => {
      const done = told.length < begun.length ? begun : [...told];
      const untold = done.length - told.length;
      const asked = done.length ? { ...generate, done, untold } : generate;
      return client.call("generate", { prompt, generate: asked, session }, { signal, onEvent: onPiece });
    };
    const progressed = () => {
      const more = told.length > before;
      before = told.length;
      return more;
    };
    return this._surviving(call, signal, progressed);
  }

  /**
   * @param {(client: Connection["client"]) => Promise<any>} call
   * @param {AbortSignal | undefined} signal
   * @param {() => boolean} progressed Whether something came of it since this was asked last.
   */
  async _surviving(call, signal, progressed) {
    for (let losses = 0; ; ) {
      const { connection } = this._opened;
      try {
        return await call(connection.client);
      } catch (error) {
        const isLoss = error instanceof DeviceLostError || error instanceof CrashError;
        if (!isLoss || this._closed !== null || signal?.aborted) throw error;
        losses = progressed() ? 1 : losses + 1;
        if (this._open === null || losses > LOSSES) {
          this._lose(error);
          throw error;
        }
        await aborted(this._reopen(connection, error), signal);
      }
    }
  }

  /**
   * Opens it again, once for all who noticed the loss.
   *
   * @param {Connection} lost
   * @param {Error} error
   */
  _reopen(lost, error) {
    if (this._opened.connection !== lost) return Promise.resolve();
    if (this._opening === null) this._opening = this._openAgain(error).finally(() => (this._opening = null));
    return this._opening;
  }

  /** @param {Error} error */
  async _openAgain(error) {
    const start = performance.now();
    const { connection, facts } = this._opened;
    // What is left of it: a dead worker, or a module whose memory nobody can use.
    await connection.close(gone());
    let opened;
    try {
      opened = await /** @type {() => Promise<Opened>} */ (this._open)();
    } catch (failure) {
      this._lose(failure instanceof Error ? failure : error);
      throw failure;
    }
    if (this._closed !== null) {
      await opened.connection.close(this._closed);
      throw this._closed;
    }
    this._opened = opened;
    const event = { from: facts.info.backend, to: opened.facts.info.backend, reason: error.message, ms: performance.now() - start };
    this._onRecovered(event, opened);
  }

  /**
   * Ends it; calls in progress and later ones reject with the error.
   *
   * @param {Error} error
   */
  async close(error) {
    this._closed = error;
    await this._opened.connection.close(error);
  }
}

function gone() {
  return new DisposedError("the engine was lost, and another has taken its place");
}

/**
 * A promise, unless a signal aborts before.
 *
 * @param {Promise<void>} promise
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<void>}
 */
function aborted(promise, signal) {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(reasonOf(signal));
    signal.addEventListener("abort", onAbort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
