/**
 * Serves a core at a port, in a worker or on the page's own thread.
 *
 * Messages in: `{ id, method, params }` and `{ id, cancel: true }`. Messages out: `{ id, event }`, then one of `{ id,
 * result }` and `{ id, error }`.
 */

import { CrashError, fromEngine, isTrap, throughModule, toWire } from "../common/errors.js";

/** @import { AnyGpuError } from "../common/errors.js" */

/**
 * @typedef {object} Port A channel for messages: a worker's own global, or a `MessagePort`.
 * @property {(message: any) => void} postMessage
 * @property {((event: MessageEvent) => void) | null} onmessage
 */

/**
 * @typedef {object} Context Arguments of a method besides its parameters.
 * @property {AbortSignal} signal
 * @property {(event: unknown) => void} tell
 */

/**
 * @typedef {object} Core A core that can be served.
 * @property {{ __wbg_reset_state?: () => void }} bindings JavaScript of the module that it calls.
 * @property {AnyGpuError | null} dead Set once the module has trapped.
 * @property {(method: string, params: any, context: Context) => Promise<unknown>} call
 */

/**
 * Modules that trapped. A worker and its module can be replaced; the page's own thread has only one of each module.
 *
 * @type {WeakSet<object>}
 */
const trapped = new WeakSet();

/** Functions that end the cores served with each module. @type {WeakMap<object, Set<(error: unknown) => void>>} */
const served = new WeakMap();

/** Restarts a module if it trapped. Returns an error if that fails. @param {Core} core */
function renew({ bindings }) {
  if (!trapped.has(bindings)) return null;
  try {
    if (bindings.__wbg_reset_state === undefined) throw new Error("it has no such function");
    bindings.__wbg_reset_state();
    trapped.delete(bindings);
    return null;
  } catch (cause) {
    // Old browsers refuse to start a large module synchronously.
    const why = cause instanceof Error ? cause.message : cause;
    return new CrashError(`the engine stopped on this thread before and does not start anew (${why}); reload the page`, { cause });
  }
}

/**
 * Serves a port until its `dispose` is called.
 *
 * @param {Port} port
 * @param {Core} core
 */
export function serve(port, core) {
  core.dead = renew(core);
  /** @type {Map<number, AbortController>} */
  const running = new Map();

  /** @param {number} id @param {unknown} error */
  const fail = (id, error) => {
    if (!running.delete(id)) return;
    port.postMessage({ id, error: toWire(fromEngine(error)) });
  };

  let ended = false;
  const end = (/** @type {unknown} */ error) => {
    ended = true;
    core.dead = /** @type {AnyGpuError} */ (fromEngine(error));
    for (const id of [...running.keys()]) fail(id, error);
  };
  const all = served.get(core.bindings) ?? new Set();
  served.set(core.bindings, all.add(end));

  /**
   * Ends all cores of the module after a trap. Nothing in the module may be called again, and calls that wait for it
   * would wait forever.
   */
  const crash = (/** @type {unknown} */ error) => {
    // The module may have been restarted, and serve other cores by now.
    if (ended) return;
    trapped.add(core.bindings);
    for (const other of all.add(end)) other(error);
    all.clear();
  };

  // A trap within a promise of the module rejects nothing: only these events report it.
  const uncaught = (/** @type {Event & { error?: unknown, reason?: unknown }} */ event) => {
    const error = event.error ?? event.reason;
    if (!throughModule(error) || running.size === 0) return;
    event.preventDefault();
    crash(error);
  };
  globalThis.addEventListener?.("error", uncaught);
  globalThis.addEventListener?.("unhandledrejection", uncaught);

  /** @param {{ id: number, method: string, params: any }} request */
  const answer = async ({ id, method, params }) => {
    const controller = new AbortController();
    const { signal } = controller;
    if (method === "dispose") {
      all.delete(end);
      running.forEach((other) => other.abort(new DOMException("disposed of", "AbortError")));
      globalThis.removeEventListener?.("error", uncaught);
      globalThis.removeEventListener?.("unhandledrejection", uncaught);
    }
    running.set(id, controller);
    try {
      if (core.dead !== null && method !== "dispose") throw core.dead;
      const tell = (/** @type {unknown} */ event) => running.has(id) && port.postMessage({ id, event });
      const result = await core.call(method, params, { signal, tell });
      if (running.has(id)) port.postMessage({ id, result });
      running.delete(id);
    } catch (error) {
      if (isTrap(error)) crash(error);
      fail(id, error);
    }
  };

  port.onmessage = ({ data }) => {
    if (data.cancel) running.get(data.id)?.abort(new DOMException("aborted", "AbortError"));
    else answer(data);
  };
}
