/** Starts the workers of structured output. This file is beside their scripts; see `worker-start.js`. */

/** @import { BuildName } from "./module/build-choice.js" */
/** @import { StartWorker } from "./workers/connect.js" */

// Bundlers recognise exactly this form of workers.

const today = () => new Worker(new URL("./format-worker.js", import.meta.url), { type: "module", name: "anygpu-format" });

/** They do not use threads. @type {Record<BuildName, StartWorker>} */
export const FORMAT_WORKERS = {
  today,
  older: () => new Worker(new URL("./format-worker-older.js", import.meta.url), { type: "module", name: "anygpu-format-older" }),
  threads: today,
};
