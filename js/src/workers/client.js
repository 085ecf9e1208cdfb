/** The calling side of the port at which `serve.js` serves a core: calls with events, errors with their classes, aborts. */

import { CrashError, DeviceLostError, fromWire, reasonOf } from "../common/errors.js";

/**
 * @typedef {object} Endpoint A connection to a core: a worker, or a `MessagePort` to the thread itself.
 * @property {(message: any) => void} postMessage
 * @property {((event: MessageEvent) => void) | null} onmessage
 */

/**
 * @typedef {object} Call
 * @property {(value: any) => void} resolve
 * @property {(error: unknown) => void} reject
 * @property {((event: any) => void) | undefined} onEvent
 */

/** Calls a core. */
export class Client {
  _endpoint;
  /** @type {Map<number, Call>} */
  _calls = new Map();
  _lastId = 0;
  /** Reason why no more calls are accepted; null while they are. @type {Error | null} */
  _failure = null;
  /** Number of messages received. */
  heard = 0;
  /** Called after each call was sent. */
  onCall = () => {};
  /** @type {(error: InstanceType<typeof CrashError>) => void} */
  _lose = () => {};
  /**
   * Resolves when the core cannot continue, with the reason: the device was lost, or the core stopped.
   *
   * @type {Promise<InstanceType<typeof CrashError>>}
   */
  lost = new Promise((resolve) => (this._lose = resolve));

  /** @param {Endpoint} endpoint */
  constructor(endpoint) {
    this._endpoint = endpoint;
    endpoint.onmessage = ({ data }) => this._receive(data);
  }

  /** Number of calls that wait for an answer. */
  get waiting() {
    return this._calls.size;
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {{ signal?: AbortSignal, onEvent?: (event: any) => void }} [options] An abort rejects at once with the
   * signal's reason; the core is told too, and stops what it is doing.
   * @returns {Promise<any>}
   */
  call(method, params, { signal, onEvent } = {}) {
    return new Promise((resolve, reject) => {
      if (this._failure !== null) return reject(this._failure);
      if (signal?.aborted) return reject(reasonOf(signal));
      const id = ++this._lastId;
      const onAbort = () => {
        end();
        reject(reasonOf(/** @type {AbortSignal} */ (signal)));
        this._endpoint.postMessage({ id, cancel: true });
      };
      const end = () => {
        this._calls.delete(id);
        signal?.removeEventListener("abort", onAbort);
      };
      this._calls.set(id, {
        resolve: (value) => (end(), resolve(value)),
        reject: (error) => (end(), reject(error)),
        onEvent,
      });
      signal?.addEventListener("abort", onAbort);
      try {
        this._endpoint.postMessage({ id, method, params });
        this.onCall();
      } catch (cause) {
        end();
        const why = cause instanceof Error ? cause.message : String(cause);
        reject(new CrashError(`the engine cannot be told what to do (${why}); load the model again`, { cause }));
      }
    });
  }

  /**
   * Rejects calls in progress and all later ones.
   *
   * @param {InstanceType<typeof CrashError>} error
   */
  fail(error) {
    if (this._failure === null) this._lose(error);
    if (this._failure === null) this._failure = error;
    for (const call of [...this._calls.values()]) call.reject(error);
  }

  /**
   * Makes the core free everything it holds. Other calls in progress reject, and so do later ones.
   *
   * @param {Error} error
   * @returns {Promise<void>}
   */
  async close(error) {
    const calls = [...this._calls.values()];
    // A core that has failed does not answer.
    const done = this._failure === null ? this.call("dispose", {}) : Promise.resolve();
    if (this._failure === null) this._failure = error;
    for (const call of calls) call.reject(error);
    await done;
  }

  /** @param {any} message */
  _receive({ id, event, result, error }) {
    this.heard += 1;
    const failure = error === undefined ? null : fromWire(error);
    if (failure instanceof DeviceLostError || failure instanceof CrashError) this._lose(failure);
    const call = this._calls.get(id);
    if (call === undefined) return;
    if (failure !== null) call.reject(failure);
    else if (event !== undefined) report(call.onEvent, event);
    else call.resolve(result);
  }
}

/**
 * Calls a listener. An exception from it is reported as an uncaught error, and stops nothing here.
 *
 * @param {((event: any) => void) | undefined} listener
 * @param {any} event
 */
export function report(listener, event) {
  try {
    listener?.(event);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
