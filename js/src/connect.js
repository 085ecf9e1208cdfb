/**
 * Starts a core or the conformance suite: in a worker if that works, otherwise on this thread. This file is beside the
 * workers' scripts, because bundlers that leave their URLs as they are look for the scripts beside their output.
 */

import { CrashError, throwIfAborted } from "./common/errors.js";
import { within } from "./common/timeout.js";
import { buildFor } from "./module/build-choice.js";
import { chooseThread, features } from "./module/gpu-features.js";
import { threadsOf } from "./module/thread-count.js";
import { Client } from "./workers/client.js";
import { onEnd, vitalName } from "./workers/exit-detection.js";
import { patient, watch } from "./workers/hang-detection.js";
import { comeBack } from "./workers/page-lifecycle.js";
import { serve } from "./workers/serve.js";

/** @import { BackendChoice, Thread } from "../index.d.ts" */
/** @import { BuildName } from "./module/build-choice.js" */
/** @import { Patience } from "./workers/hang-detection.js" */
/** @import { Port } from "./workers/serve.js" */

/** How long a worker may be silent while it starts, in milliseconds. */
const START_LIMIT = 30_000;
/** How long calls in progress may take to end before the worker is terminated, in milliseconds. */
const END_LIMIT = 2_000;

/**
 * @typedef {object} WorkerLike A part of a worker's interface.
 * @property {((event: MessageEvent) => void) | null} onmessage
 * @property {((event: any) => void) | null} onmessageerror
 * @property {((event: any) => void) | null} onerror
 * @property {(message: any) => void} postMessage
 * @property {() => void} terminate
 */

/** @typedef {() => WorkerLike} StartWorker */

/** @typedef {(port: Port) => Promise<void>} StartHere Starts it on this thread. */

/**
 * @typedef {object} Served Ways to start a core, for each build. Each only loads its own wasm module.
 * @property {Record<BuildName, StartWorker>} worker
 * @property {Record<BuildName, string>} script The worker's script, beside this one.
 * @property {Record<"today" | "older", StartHere>} here A page must not wait for threads, so that there are none.
 */

// Bundlers recognise exactly these forms of workers and imports. Webpack makes one file of all workers that share a name.

/** @type {Served} */
export const ENGINE = {
  worker: {
    today: () => new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "anygpu" }),
    older: () => new Worker(new URL("./worker-older.js", import.meta.url), { type: "module", name: "anygpu-older" }),
    threads: () => new Worker(new URL("./worker-threads.js", import.meta.url), { type: "module", name: "anygpu-threads" }),
  },
  script: { today: "worker.js", older: "worker-older.js", threads: "worker-threads.js" },
  here: {
    today: async (port) => serve(port, (await import("./engine/engine-today.js")).engine()),
    older: async (port) => serve(port, (await import("./engine/engine-older.js")).engine()),
  },
};

/** @type {Served} */
export const SUITE = {
  worker: {
    today: () => new Worker(new URL("./suite-worker.js", import.meta.url), { type: "module", name: "anygpu-suite" }),
    older: () => new Worker(new URL("./suite-worker-older.js", import.meta.url), { type: "module", name: "anygpu-suite-older" }),
    threads: () => new Worker(new URL("./suite-worker-threads.js", import.meta.url), { type: "module", name: "anygpu-suite-threads" }),
  },
  script: { today: "suite-worker.js", older: "suite-worker-older.js", threads: "suite-worker-threads.js" },
  here: {
    today: async (port) => serve(port, (await import("./suite/suite-today.js")).suite()),
    older: async (port) => serve(port, (await import("./suite/suite-older.js")).suite()),
  },
};

/**
 * @typedef {object} Connection
 * @property {Client} client
 * @property {BuildName} build
 * @property {number} threads How many the CPU may have.
 * @property {Thread} thread
 * @property {string} reason Why this thread.
 * @property {(error: Error) => Promise<void>} close Frees all that the core holds; calls in progress and later ones reject
 * with the error.
 */

/**
 * @typedef {object} Where
 * @property {BackendChoice} backend
 * @property {boolean} [worker] Whether to run in a worker if that works; true by default.
 * @property {number} [threads] How many the CPU may have, if not as many as usual.
 * @property {string} [workerUrl] Address of the worker's script, if it is not the package's own.
 * @property {AbortSignal} [signal]
 * @property {Patience} [patience] With the worker.
 */

/**
 * @param {Served} served
 * @param {Where} where
 * @returns {Promise<Connection>}
 */
export async function connect(served, { backend, worker: wantsWorker = true, threads: wanted, workerUrl, signal, patience = patient() }) {
  throwIfAborted(signal);
  const usual = buildFor(globalThis.WebAssembly);
  const here = async (/** @type {string} */ reason) => {
    return { ...(await onThisThread(served.here[usual], reason)), build: usual, threads: 1 };
  };
  if (!wantsWorker) return here("worker is false");
  const many = usual === "today" ? threadsOf(backend, wanted) : 1;
  let why = "";
  for (const build of many > 1 ? /** @type {BuildName[]} */ (["threads", usual]) : [usual]) {
    let worker;
    try {
      worker = attached(newWorker(served, build, workerUrl), patience);
      const alive = vitalName();
      const asked = worker.client.call("features", { backend, alive }, { signal });
      const found = await within(START_LIMIT, asked, silent(START_LIMIT));
      worker.attend(found.alive ? alive : null);
      const { thread, reason } = await chooseThread(backend, found, () => features(backend));
      if (thread === "worker") return { ...worker, build, threads: build === "threads" ? many : 1, thread, reason };
      worker.end();
      return here(reason);
    } catch (error) {
      worker?.end();
      throwIfAborted(signal);
      why = `the worker did not start: ${error instanceof Error ? error.message : error}`;
      if (build === "threads") console.warn(`anygpu: the CPU has one thread: ${why}`);
    }
  }
  return here(why);
}

/**
 * Address of this script. The constant hides `import.meta.url` from bundlers, which would include the files it is used
 * with.
 */
const HERE = import.meta.url;

/**
 * @param {Served} served
 * @param {BuildName} build
 * @param {string} [url] Address of the script for current browsers, if it is not the package's own.
 * @returns {WorkerLike}
 */
function newWorker({ worker, script }, build, url) {
  const own = build === "today" ? url : url?.replace(/(\.m?js)?$/, `-${build}$1`);
  const address = own ?? new URL(script[build], HERE).href;
  if (isElsewhere(address)) return new Worker(importing(address), { type: "module", name: "anygpu" });
  return own === undefined ? worker[build]() : new Worker(own, { type: "module", name: "anygpu" });
}

/** Whether a script has another origin, so that the page must not start a worker from it. @param {string} address */
function isElsewhere(address) {
  const { origin, protocol } = new URL(address);
  return protocol.startsWith("http") && origin !== globalThis.location?.origin && globalThis.location !== undefined;
}

/**
 * Scripts that import another one, by its address. They stay as long as the page, since a worker may take long to
 * start.
 *
 * @type {Map<string, string>}
 */
const importers = new Map();

/**
 * Returns the address of a script of the page's own origin that imports one of another origin.
 *
 * @param {string} address
 */
function importing(address) {
  const before = importers.get(address);
  if (before !== undefined) return before;
  const script = new Blob([`import ${JSON.stringify(address)};`], { type: "text/javascript" });
  const url = URL.createObjectURL(script);
  importers.set(address, url);
  return url;
}

/**
 * Returns the address of the wasm module, if it is not in the package's own folder.
 *
 * @param {string | undefined} folder
 * @param {{ build: BuildName }} connection
 * @param {"bindings" | "conformance" | "constrain"} [name]
 */
export function moduleUrl(folder, { build }, name = "bindings") {
  if (folder === undefined) return undefined;
  return new URL(`${build === "today" ? "" : `${build}/`}${name}_bg.wasm`, folder).href;
}

/** @param {WorkerLike} worker @param {Patience} patience */
function attached(worker, patience) {
  const client = new Client(worker);
  const stopped = (/** @type {string} */ why) =>
    client.fail(new CrashError(`the engine's worker stopped (${why}); load the model again`));
  worker.onerror = (event) => {
    event.preventDefault();
    stopped(event.message ?? "its script did not load");
  };
  worker.onmessageerror = () => stopped("one of its messages cannot be read");
  const watches = [comeBack(client)];
  // The watches begin with the worker's first answer.
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
 * @returns {Promise<Omit<Connection, "build" | "threads">>}
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
