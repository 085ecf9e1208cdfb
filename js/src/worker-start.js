/**
 * Starts the workers of the engine and of the suite. This file is beside their scripts, because bundlers that leave the
 * URLs as they are look for the scripts beside their output.
 */

/** @import { BuildName } from "./module/build-choice.js" */
/** @import { StartWorker } from "./workers/connect.js" */

// Bundlers recognise exactly this form of workers. Webpack makes one file of all workers that share a name.

/** @type {Record<BuildName, StartWorker>} */
export const ENGINE_WORKERS = {
  today: () => new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "anygpu" }),
  older: () => new Worker(new URL("./worker-older.js", import.meta.url), { type: "module", name: "anygpu-older" }),
  threads: () => new Worker(new URL("./worker-threads.js", import.meta.url), { type: "module", name: "anygpu-threads" }),
};

/** @type {Record<BuildName, StartWorker>} */
export const SUITE_WORKERS = {
  today: () => new Worker(new URL("./suite-worker.js", import.meta.url), { type: "module", name: "anygpu-suite" }),
  older: () => new Worker(new URL("./suite-worker-older.js", import.meta.url), { type: "module", name: "anygpu-suite-older" }),
  threads: () => new Worker(new URL("./suite-worker-threads.js", import.meta.url), { type: "module", name: "anygpu-suite-threads" }),
};

/**
 * Address of this script. The constant hides `import.meta.url` from bundlers, which would include the files it is used
 * with.
 */
const HERE = import.meta.url;

/** Returns the address of one of the package's worker scripts. @param {string} name */
export const scriptUrl = (name) => new URL(name, HERE).href;
