/** Entry of a thread in Node.js, and of the engine's worker in Deno and Bun. */

import { parentPort, workerData } from "node:worker_threads";
import { serve } from "./workers/serve.js";
import "./with-files.js";

/** @import { Module } from "./module/wasm-module.js" */
/** @import { Core, Port } from "./workers/serve.js" */

/** @returns {Promise<Core & Module<any>>} */
async function served() {
  if (workerData === "suite") return (await import("./suite/suite-today.js")).suite();
  if (workerData === "format") return (await import("./format/format-today.js")).formats();
  return (await import("./engine/engine-today.js")).engine();
}

/** @param {(data: unknown) => void} post @param {(hear: (data: unknown) => void) => void} listen */
function answer(post, listen) {
  /** @type {Port} */
  const port = { onmessage: null, postMessage: post };
  const ready = served();
  ready.then((core) => serve(port, core));
  // Earlier messages wait until the core is ready.
  listen(async (/** @type {any} */ data) => {
    const core = await ready;
    // The thread ends after this message, and Deno crashes if a module is being compiled then.
    if (data.method === "dispose") await core.settled();
    port.onmessage?.(/** @type {MessageEvent} */ ({ data }));
  });
}

if (typeof workerData === "string") {
  answer((message) => parentPort?.postMessage(message), (hear) => parentPort?.on("message", hear));
} else if (typeof self === "object") {
  answer((message) => self.postMessage(message), (hear) => self.addEventListener("message", ({ data }) => hear(data)));
}
