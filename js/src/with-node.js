/** The package in Node.js, Deno and Bun: local files, and threads in Node.js, which has no browser-style workers. */

import { Worker as Thread } from "node:worker_threads";
import { ENGINE, SUITE } from "./connect.js";
import { FORMAT } from "./formats.js";
import "./with-files.js";

/** @import { StartWorker, WorkerLike } from "./connect.js" */

export * from "./index.js";

if (globalThis.Worker === undefined) {
  ENGINE.worker = { today: starting("engine"), older: starting("engine"), threads: starting("engine") };
  FORMAT.worker = { today: starting("format"), older: starting("format"), threads: starting("format") };
  SUITE.worker = { today: starting("suite"), older: starting("suite"), threads: starting("suite") };
} else {
  const start = () => new Worker(new URL("./with-node-worker.js", import.meta.url), { type: "module", name: "anygpu" });
  ENGINE.worker = { today: start, older: start, threads: start };
}

/**
 * Starts a thread with the interface of a browser's worker.
 *
 * @param {"engine" | "suite" | "format"} serves
 * @returns {StartWorker}
 */
function starting(serves) {
  return () => {
    const thread = new Thread(new URL("./with-node-worker.js", import.meta.url), { workerData: serves });
    /** @type {WorkerLike} */
    const worker = {
      onmessage: null,
      onmessageerror: null,
      onerror: null,
      postMessage: (message) => thread.postMessage(message),
      terminate: () => void thread.terminate(),
    };
    const failed = (/** @type {string} */ message) => worker.onerror?.({ message, preventDefault() {} });
    thread.on("message", (data) => worker.onmessage?.(/** @type {MessageEvent} */ ({ data })));
    thread.on("messageerror", () => worker.onmessageerror?.(null));
    thread.on("error", (error) => failed(error instanceof Error ? error.message : String(error)));
    thread.on("exit", (code) => failed(`its thread ended with ${code}`));
    return worker;
  };
}
