/** An engine that recovers: calls are repeated after a loss, and an answer continues where it was interrupted. */

import { BackendError, CrashError, DeviceLostError, reasonOf } from "../common/errors.js";

/** @import { ModelInfo, Recovered, Report } from "../../index.d.ts" */
/** @import { Connection } from "../connect.js" */

/** Number of losses without a token between them after which it gives up. It is more than there are rungs. */
const MOST = 9;

/** Losses of one rung, within the time below, after which it is left out. */
const LOSSES = 3;
/** Time within which losses count together, in milliseconds. */
const WHILE = 120_000;

/** @typedef {{ connection: Connection, facts: { info: ModelInfo, report: Report } }} Opened A model behind a connection. */

/** @typedef {{ signal?: AbortSignal, onEvent?: (event: any) => void }} CallOptions */

/**
 * Opens an engine for the first time. If its worker or module stops meanwhile, another one gets a chance: browsers were seen to
 * end workers, and to stop sound modules, now and then.
 *
 * @template T
 * @param {() => Promise<T>} open
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function openTwice(open, signal) {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof CrashError) || signal?.aborted) throw error;
    console.warn(`anygpu: it loads the model once more, since ${error.message}`);
    return open();
  }
}

/** Counts losses, and decides which rungs are left out. */
export class Rungs {
  /** @type {string[]} Their names, as reports have them. */
  without = [];
  _now;
  /** @type {{ rung: string, ms: number }[]} */
  _losses = [];

  /** @param {() => number} [now] In milliseconds. */
  constructor(now = () => performance.now()) {
    this._now = now;
  }

  /**
   * Notes a loss.
   *
   * @param {string | null} rung
   * @param {boolean} again Whether it is left out at once: too much was lost before it.
   */
  lost(rung, again) {
    if (rung === null) return;
    const now = this._now();
    this._losses = [...this._losses.filter(({ ms }) => now - ms < WHILE), { rung, ms: now }];
    const often = this._losses.filter((loss) => loss.rung === rung).length >= LOSSES;
    if ((often || again) && !this.without.includes(rung)) this.without.push(rung);
  }
}

/** A connection to an engine that is opened again after a loss. */
export class Recovery {
  _opened;
  _open;
  _onRecovered;
  _rungs;
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
   * @param {((without: string[]) => Promise<Opened>) | null} open Opens another like it, but not on some rungs; null if
   * it cannot be had again.
   * @param {(event: Recovered, opened: Opened) => void} onRecovered
   * @param {Rungs} [rungs]
   */
  constructor(opened, open, onRecovered, rungs = new Rungs()) {
    this._rungs = rungs;
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
   * Generates, and continues after a loss with the tokens so far.
   *
   * @param {{ prompt: unknown, generate: { done?: number[] }, session?: string }} params Tokens that were
   * generated before (`done`) are reported first, as if they were new.
   * @param {CallOptions} options
   * @returns {Promise<any>}
   */
  generate({ prompt, generate, session }, { signal, onEvent }) {
    const begun = generate.done ?? [];
    /** @type {number[]} */
    const told = [];
    let text = "";
    let before = 0;
    const onPiece = (/** @type {any} */ event) => {
      if (event.token !== undefined) told.push(event.token);
      text += event.text ?? "";
      onEvent?.(event);
    };
    const call = (/** @type {Connection["client"]} */ client) => {
      const done = told.length < begun.length ? begun : [...told];
      const untold = done.length - told.length;
      const asked = done.length ? { ...generate, done, untold, told: text } : generate;
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
        if (!isLoss(error) || this._closed !== null || signal?.aborted) throw error;
        losses = progressed() ? 1 : losses + 1;
        if (this._open === null || losses > MOST) {
          this._lose(error);
          throw error;
        }
        await aborted(this._reopen(connection, error, losses > LOSSES), signal);
      }
    }
  }

  /**
   * Opens the engine again, once for all callers that noticed the loss.
   *
   * @param {Connection} lost
   * @param {Error} error
   * @param {boolean} again Whether its rung is left out at once.
   */
  _reopen(lost, error, again) {
    if (this._opened.connection !== lost) return Promise.resolve();
    if (this._opening === null) this._opening = this._openAgain(error, again).finally(() => (this._opening = null));
    return this._opening;
  }

  /** @param {Error} error @param {boolean} again */
  async _openAgain(error, again) {
    const start = performance.now();
    const { connection, facts } = this._opened;
    // Frees the rest: a dead worker, or a module whose memory is unusable.
    await connection.close(gone());
    const opened = await this._another(error, again);
    if (this._closed !== null) {
      await opened.connection.close(this._closed);
      throw this._closed;
    }
    this._opened = opened;
    const event = { from: facts.info.backend, to: opened.facts.info.backend, reason: error.message, ms: performance.now() - start };
    this._onRecovered(event, opened);
  }

  /**
   * Opens the best backend that works. It may be lost as well while it loads.
   *
   * @param {Error} error The first loss.
   * @param {boolean} again
   * @returns {Promise<Opened>}
   */
  async _another(error, again) {
    const open = /** @type {(without: string[]) => Promise<Opened>} */ (this._open);
    for (let losses = 1; ; losses += 1) {
      this._rungs.lost(this._opened.facts.report.chosen, again);
      try {
        return await open(this._rungs.without);
      } catch (failure) {
        if (isLoss(failure) && losses <= LOSSES && this._closed === null) continue;
        // The first loss says more than "no backend is left".
        const isNothing = failure instanceof BackendError && this._rungs.without.length > 0;
        const reason = isNothing || !(failure instanceof Error) ? error : failure;
        this._lose(reason);
        throw reason;
      }
    }
  }

  /** Closes the engine; calls in progress and later ones reject with the error. @param {Error} error */
  async close(error) {
    this._closed = error;
    await this._opened.connection.close(error);
  }
}

/**
 * @param {unknown} error
 * @returns {error is Error}
 */
function isLoss(error) {
  return error instanceof DeviceLostError || error instanceof CrashError;
}

/**
 * Returns the error for calls that waited behind the one that noticed the loss. It counts as a loss, so they are
 * repeated.
 */
function gone() {
  return new CrashError("the engine was lost, and another has taken its place");
}

/**
 * Waits for a promise, unless a signal aborts first.
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
