// One measurement, with the module that measures alone: nothing of the package is between the engine and its figures. Before it, what
// this thread has for it.

import "./errors.js";
import { features } from "/below/a/path/anygpu/src/features.js";
import { compute, isThread, startThreads } from "/below/a/path/anygpu/src/start-threads.js";
import * as today from "/below/a/path/anygpu/wasm/conformance.js";
import * as threaded from "/below/a/path/anygpu/wasm/threads/conformance.js";

const WASM = "/below/a/path/anygpu/wasm";

/** Measures: `{ options, file, threads }` as the bindings take them. `tell` hears what is done now. */
export async function measure({ options, file, threads }, tell) {
  const folder = threads > 1 ? `${WASM}/threads` : WASM;
  const bindings = threads > 1 ? threaded : today;
  await bindings.default({ module_or_path: `${folder}/conformance_bg.wasm` });
  if (threads > 1) {
    if (bindings.thread_share === undefined) throw new Error("these modules have no threads; build them with cargo xtask web --threads");
    await startThreads(bindings, threads);
  }
  return JSON.parse(await bindings.bench(file && (await source(file)), JSON.stringify(options), tell));
}

/** A file that is here as a whole, so that no figure depends on the network. */
async function source(file) {
  const answer = await fetch(`/files/${file}`);
  if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return { size: bytes.length, readAt: async (offset, length) => bytes.subarray(offset, offset + length) };
}

if (isThread()) {
  compute(threaded);
} else if (typeof document === "undefined") {
  onmessage = async ({ data }) => {
    try {
      const result = data.features ? await features(data.features) : await measure(data, (doing) => postMessage({ doing }));
      postMessage({ result });
    } catch (error) {
      postMessage({ error: `${error?.name} (${error?.code}): ${error?.message}`, report: error?.report });
    }
  };
}
