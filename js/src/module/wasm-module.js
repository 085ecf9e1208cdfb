/** A wasm module. It is started once, runs one call after the other, and is dead after a trap. */

import { CrashError, fromEngine, isTrap, throwIfAborted } from "../common/errors.js";
import { start } from "./start-module.js";

/** @import { AnyGpuError } from "../common/errors.js" */

/**
 * The functions and classes of a module, which all builds share. They differ in how they start.
 *
 * @template {{ default: any, initSync: any }} All
 * @typedef {Omit<All, "default" | "initSync" | "__wbg_reset_state"> & Pick<import("./start-module.js").Startable, "default">} Functions
 */

/**
 * @template C
 * @typedef {object} Glue The common part of all modules' JavaScript.
 * @property {import("./start-module.js").Startable["default"]} default
 * @property {new () => C} WasmCancel
 * @property {() => void} [__wbg_reset_state] Restarts the module.
 */

/** Serves calls with a module. @template {{ cancel(): void, free(): void }} C Class of the module's cancel handles. */
export class Module {
  /** The error, once the module has trapped. @type {AnyGpuError | null} */
  dead = null;
  _url;
  /** @type {Promise<unknown> | null} */
  _ready = null;
  /** @type {Promise<string> | null} */
  _digest = null;
  /** Chain of calls, one after the other. */
  _queue = Promise.resolve();
  /** Number of calls in the chain that have not begun. */
  waiting = 0;

  /**
   * @param {Glue<C>} bindings
   * @param {URL} url Address of the module.
   */
  constructor(bindings, url) {
    this.bindings = bindings;
    this._url = url;
  }

  /** Starts the module, once. @param {string} [url] Where it is, if not where the package has it. */
  start(url) {
    if (this._ready !== null) return this._ready;
    if (url !== undefined) this._url = new URL(url);
    const { ready, digest } = start(this.bindings, this._url);
    this._digest = digest;
    this._ready = ready.catch((cause) => {
      this._ready = null;
      const why = cause instanceof Error ? cause.message : String(cause);
      const file = this._url.pathname.split("/").pop();
      const remedy = `make sure that ${file} is served, and that the page's Content-Security-Policy allows wasm`;
      throw new CrashError(`the wasm module did not start (${why}); ${remedy}`, { cause });
    });
    return this._ready;
  }

  /** Resolves when the module has started or failed to start, or at once if nothing started it. */
  async settled() {
    await this._ready?.catch(nothing);
  }

  /** SHA-256 of the module as it was loaded, in hexadecimal digits; null before that. */
  digest() {
    return this._digest;
  }

  /**
   * Runs a function after everything that was queued before.
   *
   * @template T
   * @param {() => Promise<T>} action
   * @returns {Promise<T>}
   */
  queued(action) {
    this.waiting += 1;
    const result = this._queue.then(async () => {
      this.waiting -= 1;
      if (this.dead !== null) throw this.dead;
      try {
        return await action();
      } catch (error) {
        // Set at once: the next call in the queue must not begin.
        if (isTrap(error)) this.dead = /** @type {AnyGpuError} */ (fromEngine(error));
        throw error;
      }
    });
    this._queue = result.then(nothing, nothing);
    return result;
  }

  /** Resolves when everything in the queue is done. */
  idle() {
    return this._queue;
  }

  /**
   * Runs a function that ends early when the signal aborts.
   *
   * @template T
   * @param {AbortSignal} signal
   * @param {(cancel: C) => Promise<T>} action
   * @returns {Promise<T>}
   */
  async cancellable(signal, action) {
    throwIfAborted(signal);
    const cancel = new this.bindings.WasmCancel();
    const onAbort = () => cancel.cancel();
    signal.addEventListener("abort", onAbort);
    try {
      const result = await action(cancel);
      throwIfAborted(signal);
      return result;
    } finally {
      signal.removeEventListener("abort", onAbort);
      if (this.dead === null) cancel.free();
    }
  }
}

export function nothing() {}
