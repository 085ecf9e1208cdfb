// Loads a model with one engine as a page does, and runs it once, while the browser is watched from outside.

import { AnyGpu, beat, modelNamed, options, say, sleep } from "./run.js";

/** Time at rest in which the memory in use is measured, in milliseconds. */
const REST_MS = 1000;

let told = Promise.resolve();

/** Reports the phase that begins now; reports stay in order. */
const phase = (name) => (told = told.then(() => fetch("/phase", { method: "POST", body: name })));

/** Reports each new phase of loading. Programs are compiled after the last byte of the weights. */
function follow() {
  let last = "";
  return ({ phase: name, loaded, total }) => {
    beat();
    const now = name === "upload" && loaded === total ? "compile" : name;
    if (now !== last && now !== "ready") phase(now);
    last = now;
  };
}

/** Lengths of the prompt and of the answer, in tokens; the context holds little more. */
const { prefill, decode } = options;
const nCtx = prefill + decode + 64;

/** Runs this engine through the package: from a blob, or from an address with its cache. */
async function anygpu(name) {
  const { backend, worker } = options;
  const address = `/files/${modelNamed(name).file}`;
  await phase("download");
  const source = options.source === "blob" ? await (await fetch(address)).blob() : address;
  const engine = await AnyGpu.load(source, { backend, worker, nCtx, onProgress: follow() });
  await phase("generate");
  const prompt = Uint32Array.from({ length: prefill }, (_, index) => (1 + index * 7) % engine.info.vocab);
  const stream = engine.completions.create({ prompt, max_tokens: decode, ignore_eos: true, stream: true });
  for await (const _ of stream) beat();
  await phase("rest");
  await sleep(REST_MS);
  const { backend: chosen, adapter } = engine.info;
  const { memory, wasm_memory } = await engine.stats();
  return { engine: "anygpu", backend: chosen, adapter, device_memory_bytes: memory, wasm_memory_bytes: wasm_memory };
}

/** Runs wllama from a blob, which is also how it loads from an address. */
async function wllama(name) {
  const { open, words } = await import("./peers.js");
  await phase("download, load");
  const { engine, threads } = await open(name, nCtx);
  await phase("generate");
  await engine.createCompletion({ prompt: words(0, prefill), max_tokens: decode, temperature: 0, ignore_eos: true, stream: true, onData: beat });
  await phase("rest");
  await sleep(REST_MS);
  return { engine: `wllama, ${threads} thread${threads > 1 ? "s" : ""}`, backend: "cpu", adapter: "" };
}

export default async function memory() {
  const { engine, model, source } = options;
  await phase("page");
  await sleep(REST_MS);
  const found = await { anygpu, wllama }[engine](model);
  await say(`${found.engine} on ${found.backend}, ${model} from a ${source}, ${prefill} + ${decode} tokens, watched from outside:`);
  const entry = { model, source, prefill_tokens: prefill, decode_tokens: decode, isolated: globalThis.crossOriginIsolated, ...found };
  return { passed: 1, failed: 0, skipped: 0, memory: [entry] };
}
