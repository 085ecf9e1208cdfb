// One measurement, with the wasm module that only measures, so that no code of the package affects the engine's
// figures. Before that, it reports this thread's GPU interfaces.

import "./errors.js";
import { features } from "/below/a/path/anygpu/src/module/gpu-features.js";
import { compute, isThread, startThreads } from "/below/a/path/anygpu/src/module/start-threads.js";
import * as today from "/below/a/path/anygpu/wasm/conformance.js";
import * as threaded from "/below/a/path/anygpu/wasm/threads/conformance.js";

const WASM = "/below/a/path/anygpu/wasm";

/** Measures: `{ options, file, threads }` as the bindings take them. `tell` gets the current activity. */
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

/** Returns a source that holds a whole file in memory, so that no figure depends on the network. */
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
