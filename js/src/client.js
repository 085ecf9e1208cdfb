/** The other end of the port that `core.js` serves: calls with events, errors with their classes, aborts. */

import { fromWire } from "./errors.js";

/**
 * @typedef {object} Endpoint What connects to a core: a worker, or a `MessagePort` to the thread itself.
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
  #endpoint;
  /** @type {Map<number, Call>} */
  #calls = new Map();
  #lastId = 0;
  /**
   * Why no more calls are made.
   *
   * @type {Error | null}
   */
  #failure = null;

  /** @param {Endpoint} endpoint */
  constructor(endpoint) {
    this.#endpoint = endpoint;
    endpoint.onmessage = ({ data }) => this.#receive(data);
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {{ signal?: AbortSignal, onEvent?: (event: any) => void }} [options] An abort rejects at once with the
   * signal's reason; the core hears of it too, and ends what it does.
   * @returns {Promise<any>}
   */
  call(method, params, { signal, onEvent } = {}) {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) return reject(this.#failure);
      if (signal?.aborted) return reject(signal.reason);
      const id = ++this.#lastId;
      const onAbort = () => {
        this.#endpoint.postMessage({ id, cancel: true });
        end();
        reject(signal?.reason);
      };
      const end = () => {
        this.#calls.delete(id);
        signal?.removeEventListener("abort", onAbort);
      };
      this.#calls.set(id, {
        resolve: (value) => (end(), resolve(value)),
        reject: (error) => (end(), reject(error)),
        onEvent,
      });
      signal?.addEventListener("abort", onAbort);
      try {
        this.#endpoint.postMessage({ id, method, params });
      } catch (error) {
        end();
        reject(error);
      }
    });
  }

  /**
   * Rejects what is under way and all that follows.
   *
   * @param {Error} error
   */
  fail(error) {
    this.#failure ??= error;
    for (const call of [...this.#calls.values()]) call.reject(error);
  }

  /**
   * Has the core free all that it holds. What else is under way rejects, and so does all that follows.
   *
   * @param {Error} error
   * @returns {Promise<void>}
   */
  async close(error) {
    const calls = [...this.#calls.values()];
    // A core that failed has no answer.
    const done = this.#failure === null ? this.call("dispose", {}) : Promise.resolve();
    this.#failure ??= error;
    for (const call of calls) call.reject(error);
    await done;
  }

  /** @param {any} message */
  #receive({ id, event, result, error }) {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    if (error !== undefined) call.reject(fromWire(error));
    else if (event !== undefined) report(call.onEvent, event);
    else call.resolve(result);
  }
}

/**
 * Calls a listener. What it throws is shown as any uncaught error is, and stops nothing.
 *
 * @param {((event: any) => void) | undefined} listener
 * @param {any} event
 */
function report(listener, event) {
  try {
    listener?.(event);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
