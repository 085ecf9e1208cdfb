/**
 * Threads of a wasm module with shared memory: workers of the engine's worker, which compute a share of its work. Each
 * runs that worker's own script, so that bundlers only need one. This code is only in the builds for pages that may use
 * threads.
 */

import { within } from "../common/timeout.js";

/** Name by which a worker knows that it is a thread. */
const NAME = "anygpu thread";
/** How long a thread may take to start, in milliseconds. The engine continues without those that take longer. */
const START_LIMIT = 10_000;

/**
 * @typedef {object} Sharing The additional functions of a module with threads.
 * @property {(start: { module: WebAssembly.Module, memory: WebAssembly.Memory }) => unknown} initSync
 * @property {() => [WebAssembly.Module, WebAssembly.Memory]} thread_parts
 * @property {(others: number, refused?: string) => void} thread_share
 * @property {() => void} thread_compute
 * @property {(start: () => Promise<void>) => void} [before_cpu] Sets a callback before the CPU backend opens; only in the engine's module.
 */

/** Whether this worker is a thread. */
export function isThread() {
  return /** @type {{ name?: unknown }} */ (globalThis).name === NAME;
}

/**
 * Computes in this thread.
 *
 * @param {Sharing} bindings
 */
export function compute(bindings) {
  // The first message has the module and its memory. The second says that all threads are there; after it this thread
  // handles no more messages.
  globalThis.onmessage = ({ data }) => {
    if (data === null) return bindings.thread_compute();
    bindings.initSync(data);
    return globalThis.postMessage(null);
  };
}

/**
 * Starts threads beside this one. If fewer can be started, the reason is reported.
 *
 * @param {Sharing} bindings
 * @param {number} wanted This one included.
 */
export async function startThreads(bindings, wanted) {
  const [module, memory] = bindings.thread_parts();
  /** @type {Worker[]} */
  const workers = [];
  /** @type {string | undefined} */
  let refused;
  const start = async () => {
    /** @type {Worker | undefined} */
    let worker;
    try {
      worker = new Worker(globalThis.location.href, { type: "module", name: NAME });
      await within(START_LIMIT, answered(worker, { module, memory }), () => new Error(`no answer for ${START_LIMIT} ms`));
      workers.push(worker);
    } catch (error) {
      worker?.terminate();
      refused = error instanceof Error ? error.message : String(error);
    }
  };
  await Promise.all(Array.from({ length: wanted - 1 }, start));
  const fewer = refused && `${wanted - 1 - workers.length} more could not be started (${refused})`;
  if (fewer) console.warn(`anygpu: the CPU has fewer threads: ${fewer}`);
  bindings.thread_share(workers.length, fewer);
  for (const worker of workers) worker.postMessage(null);
}

/**
 * Resolves when a thread has started.
 *
 * @param {Worker} worker
 * @param {object} parts
 */
function answered(worker, parts) {
  return new Promise((resolve, reject) => {
    worker.onmessage = resolve;
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message ?? "its script did not load"));
    };
    worker.postMessage(parts);
  });
}
