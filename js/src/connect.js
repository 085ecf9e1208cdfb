/** Starts a core or the suite, in a worker if that works and on this thread if not. */

import { throwIfAborted } from "./abort.js";
import { buildFor } from "./build.js";
import { Client } from "./client.js";
import { CrashError } from "./errors.js";
import { chooseThread, features } from "./features.js";
import { comeBack } from "./lifecycle.js";
import { within } from "./patience.js";
import { patient, watch } from "./pulse.js";
import { serve } from "./serve.js";
import { onEnd, vitalName } from "./vital.js";

/** @import { BackendChoice, Thread } from "../index.d.ts" */
/** @import { BuildName } from "./build.js" */
/** @import { Patience } from "./pulse.js" */
/** @import { Port } from "./serve.js" */

/** A worker that is silent for this long is given up. In milliseconds. */
const START_LIMIT = 30_000;
/** How long calls in progress may take to end in good order before the worker is terminated. In milliseconds. */
const END_LIMIT = 2_000;

/** @typedef {() => Worker} StartWorker */

/** @typedef {(port: Port) => Promise<void>} StartHere Starts it on this thread. */

/**
 * @typedef {object} Served What can be started, for each build. Each loads its own wasm module, and nothing of the others.
 * @property {Record<BuildName, StartWorker>} worker
 * @property {Record<BuildName, StartHere>} here
 */

// Bundlers recognise exactly these forms of workers and imports.

/** @type {Served} */
export const ENGINE = {
  worker: {
    today: () => new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "anygpu" }),
    older: () => new Worker(new URL("./worker-older.js", import.meta.url), { type: "module", name: "anygpu" }),
  },
  here: {
    today: async (port) => serve(port, (await import("./engine.js")).engine()),
    older: async (port) => serve(port, (await import("./engine-older.js")).engine()),
  },
};

/** @type {Served} */
export const SUITE = {
  worker: {
    today: () => new Worker(new URL("./suite-worker.js", import.meta.url), { type: "module", name: "anygpu-suite" }),
    older: () => new Worker(new URL("./suite-worker-older.js", import.meta.url), { type: "module", name: "anygpu-suite" }),
  },
  here: {
    today: async (port) => serve(port, (await import("./suite-today.js")).suite()),
    older: async (port) => serve(port, (await import("./suite-older.js")).suite()),
  },
};

/**
 * @typedef {object} Connection
 * @property {Client} client
 * @property {Thread} thread
 * @property {string} reason Why this thread.
 * @property {(error: Error) => Promise<void>} close Frees all that the core holds; calls in progress and later ones reject
 * with the error.
 */

/**
 * @param {Served} served
 * @param {BackendChoice} backend
 * @param {boolean} wantsWorker
 * @param {AbortSignal} [signal]
 * @param {Patience} [patience] With the worker.
 * @returns {Promise<Connection>}
 */
export async function connect(served, backend, wantsWorker, signal, patience = patient()) {
  throwIfAborted(signal);
  const build = buildFor(globalThis.WebAssembly);
  if (!wantsWorker) return onThisThread(served.here[build], "worker is false");
  let worker;
  try {
    worker = startWorker(served.worker[build], patience);
    const alive = vitalName();
    const asked = worker.client.call("features", { backend, alive }, { signal });
    const found = await within(START_LIMIT, asked, silent(START_LIMIT));
    worker.attend(found.alive ? alive : null);
    const { thread, reason } = await chooseThread(backend, found, () => features(backend));
    if (thread === "worker") return { ...worker, thread, reason };
    worker.end();
    return onThisThread(served.here[build], reason);
  } catch (error) {
    worker?.end();
    throwIfAborted(signal);
    return onThisThread(served.here[build], `the worker did not start: ${error instanceof Error ? error.message : error}`);
  }
}

/** @param {StartWorker} start @param {Patience} patience */
function startWorker(start, patience) {
  const worker = start();
  const client = new Client(worker);
  const stopped = (/** @type {string} */ why) =>
    client.fail(new CrashError(`the engine's worker stopped (${why}); load the model again`));
  worker.onerror = (event) => {
    event.preventDefault();
    stopped(event.message ?? "its script did not load");
  };
  worker.onmessageerror = () => stopped("one of its messages cannot be read");
  const watches = [comeBack(client)];
  // From its first answer on.
  const attend = (/** @type {string | null} */ alive) => {
    watches.push(watch(client, patience));
    if (alive !== null) watches.push(onEnd(alive, () => stopped("the browser ended it")));
  };
  const end = () => {
    watches.forEach((stop) => stop());
    worker.terminate();
  };
  const close = async (/** @type {Error} */ error) => {
    await within(END_LIMIT, client.close(error), silent(END_LIMIT)).catch(() => {});
    end();
  };
  return { client, attend, end, close };
}

/**
 * @param {StartHere} start
 * @param {string} reason
 * @returns {Promise<Connection>}
 */
async function onThisThread(start, reason) {
  const { port1, port2 } = new MessageChannel();
  await start(port1);
  const client = new Client(port2);
  const close = async (/** @type {Error} */ error) => {
    await client.close(error).catch(() => {});
    port1.close();
    port2.close();
  };
  return { client, thread: "main", reason, close };
}

/** @param {number} ms */
function silent(ms) {
  return () => new CrashError(`no answer for ${ms} ms`);
}
