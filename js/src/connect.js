/** Starts a core, in a worker if that works and on this thread if not. */

import { Client } from "./client.js";
import { CrashError } from "./errors.js";
import { chooseThread, features } from "./features.js";

/** @import { BackendChoice, Thread } from "../index.d.ts" */

/** A worker that says nothing for so long is given up. In milliseconds. */
const START_LIMIT = 30_000;
/** What is under way gets so long to end in good order before the worker is ended. In milliseconds. */
const END_LIMIT = 2_000;

/**
 * @typedef {object} Connection
 * @property {Client} client
 * @property {Thread} thread
 * @property {string} reason Why this thread.
 * @property {(error: Error) => Promise<void>} close Frees all that the core holds; calls under way and later ones reject
 * with the error.
 */

/**
 * @param {BackendChoice} backend
 * @param {boolean} wantsWorker
 * @param {AbortSignal} [signal]
 * @returns {Promise<Connection>}
 */
export async function connect(backend, wantsWorker, signal) {
  signal?.throwIfAborted();
  if (!wantsWorker) return onThisThread("worker is false");
  let worker;
  try {
    worker = startWorker();
    const found = await within(START_LIMIT, worker.client.call("features", { backend }, { signal }));
    const { thread, reason } = await chooseThread(backend, found, () => features(backend));
    if (thread === "worker") return { ...worker, thread, reason };
    worker.end();
    return onThisThread(reason);
  } catch (error) {
    worker?.end();
    signal?.throwIfAborted();
    return onThisThread(`the worker does not start: ${error instanceof Error ? error.message : error}`);
  }
}

function startWorker() {
  // Bundlers know this very form.
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "anygpu" });
  const client = new Client(worker);
  const stopped = (/** @type {string} */ why) =>
    client.fail(new CrashError(`the engine's worker stopped (${why}); load the model again`));
  worker.onerror = (event) => {
    event.preventDefault();
    stopped(event.message ?? "its script does not load");
  };
  worker.onmessageerror = () => stopped("a message of it cannot be read");
  const end = () => worker.terminate();
  const close = async (/** @type {Error} */ error) => {
    await within(END_LIMIT, client.close(error)).catch(() => {});
    end();
  };
  return { client, end, close };
}

/**
 * @param {string} reason
 * @returns {Promise<Connection>}
 */
async function onThisThread(reason) {
  const [{ serve }, bindings] = await Promise.all([import("./core.js"), import("../wasm/bindings.js")]);
  const { port1, port2 } = new MessageChannel();
  serve(port1, bindings, { storage: navigator.storage, caches: globalThis.caches, locks: navigator.locks });
  const client = new Client(port2);
  const close = async (/** @type {Error} */ error) => {
    await client.close(error).catch(() => {});
    port1.close();
    port2.close();
  };
  return { client, thread: "main", reason, close };
}

/**
 * @template T
 * @param {number} ms
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
function within(ms, promise) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new CrashError(`no answer for ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
