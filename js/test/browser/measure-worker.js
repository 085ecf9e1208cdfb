// One measurement, with the bindings alone: nothing of the package is between the engine and its figures. Before it, what
// this thread has for it.

import "./errors.js";
import { features } from "/below/a/path/anygpu/src/features.js";
import * as bindings from "/below/a/path/anygpu/wasm/bindings.js";

/** Measures: `{ options, file }` as the bindings take them. `tell` hears what is done now. */
export async function measure({ options, file }, tell) {
  await bindings.default({ module_or_path: "/below/a/path/anygpu/wasm/bindings_bg.wasm" });
  return JSON.parse(await bindings.bench(file && (await source(file)), JSON.stringify(options), tell));
}

/** A file that is here as a whole, so that no figure depends on the network. */
async function source(file) {
  const answer = await fetch(`/files/${file}`);
  if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return { size: bytes.length, readAt: async (offset, length) => bytes.subarray(offset, offset + length) };
}

if (typeof document === "undefined") {
  onmessage = async ({ data }) => {
    try {
      const result = data.features ? await features(data.features) : await measure(data, (doing) => postMessage({ doing }));
      postMessage({ result });
    } catch (error) {
      postMessage({ error: `${error?.name} (${error?.code}): ${error?.message}`, report: error?.report });
    }
  };
}
