// Loads, uses and disposes of engines, over and over; nothing of them may stay. Objects of the page are counted after
// each cycle. The browser's memory is watched from outside, in rests between cycles.

import { census } from "./census.js";
import { AnyGpu, Results, beat, options, say, sleep } from "./run.js";

/** A small model, so that mostly the engine is loaded again and again, not the file. */
const MODEL = "/files/llama-q4_0.gguf";
const N_CTX = 64;
/** Number of rests, with the same number of cycles before each. The others are compared with the first. */
const RESTS = 8;
/** Length of a rest, in milliseconds; a cycle's garbage is collected by then. */
const REST_MS = 1500;
/** Kinds of cycles, in order; each on a worker, then on this thread. */
const KINDS = ["plain", "kept", "plain", "aborted"];
/**
 * Largest growth of the page's heap from the first rest to the last, in bytes: more than the browser's caches, less
 * than an engine.
 */
const HEAP = 1 << 20;
/** How long workers and pages may take to release their objects, in milliseconds. */
const PATIENCE = 5000;

/** Returns the kind and the thread of a cycle. */
function cycle(index) {
  const worker = options.worker && index % 2 === 0;
  return { kind: KINDS[(index >> 1) % KINDS.length], worker };
}

/** Loads, uses and disposes of an engine. Returns its counters, unless the load was aborted. */
async function run({ kind, worker }) {
  const { backend } = options;
  const controller = new AbortController();
  const onProgress = ({ phase }) => {
    beat();
    if (kind === "aborted" && phase === "upload") controller.abort();
  };
  const sessions = { keep: kind === "kept" };
  const load = { backend, worker, threads: options.threads, nCtx: N_CTX, sessions, signal: controller.signal, onProgress };
  const loading = AnyGpu.load(MODEL, load);
  if (kind === "aborted") {
    const error = await loading.then(() => null, (error) => error);
    if (error?.name !== "AbortError") throw new Error(`${error} where an AbortError is due`);
    return null;
  }
  const engine = await loading;
  try {
    const session = kind === "kept" ? { session: "of a cycle" } : {};
    await engine.completions.create({ prompt: [1, 2, 3], max_tokens: 3, ignore_eos: true }, session);
    return await engine.stats();
  } finally {
    await engine.dispose();
  }
}

/** Returns the size of the page's heap after a collection, if the browser tells. */
function heap() {
  if (globalThis.gc === undefined || performance.memory === undefined) return null;
  globalThis.gc();
  return performance.memory.usedJSHeapSize;
}

/** Waits until everything has ended, and counts what is left. */
async function rest() {
  await fetch("/phase", { method: "POST", body: "rest" });
  globalThis.gc?.();
  await sleep(REST_MS);
  const bytes = heap();
  await fetch("/phase", { method: "POST", body: "cycles" });
  return bytes;
}

/** Lists objects of which there are more than before, as text. Ending ones get some time. */
async function left(before) {
  for (let waited = 0; ; waited += 50) {
    const now = await census();
    const more = Object.entries(now).filter(([name, count]) => count > (before[name] ?? 0));
    if (more.length === 0 || waited >= PATIENCE) return more.map(([name, count]) => `${count} ${name}`).join(", ");
    await sleep(50);
  }
}

export default async function cycles() {
  const results = new Results();
  const { cycles: count, backend } = options;
  if (count < RESTS) throw new Error(`${count} cycles are too few; take at least ${RESTS}`);
  const heaps = [];
  /** Counters by thread: the first and the last. */
  const memory = {};
  const leaks = [];
  // The first run creates what stays: the page's own objects, and this thread's module.
  await run({ kind: "plain", worker: false });
  const before = await census();
  const begin = performance.now();
  for (let index = 0; index < count; index += 1) {
    const what = cycle(index);
    const stats = await run(what);
    const thread = what.worker ? "worker" : "page";
    if (stats) {
      const { memory: device, wasm_memory: wasm } = stats;
      memory[thread] = { device, wasm, first: memory[thread]?.first ?? { device, wasm } };
    }
    const more = await left(before);
    if (more) leaks.push(`cycle ${index} (${what.kind}, ${thread}): ${more}`);
    if ((index + 1) % Math.floor(count / RESTS) === 0) heaps.push(await rest());
    if ((index + 1) % 100 === 0) await say(`${index + 1} cycles, ${((performance.now() - begin) / (index + 1)).toFixed(0)} ms each`);
  }
  await results.add("nothing that is counted stays", leaks[0]);
  for (const [thread, { device, wasm, first }] of Object.entries(memory)) {
    const same = (what, now, then) => (now === then ? undefined : `${now} bytes ${what}, ${then} at first`);
    await results.add(`${thread}: an engine takes as much as the first (${device} bytes of the device, ${wasm} of wasm)`,
      same("of the device", device, first.device) ?? same("of wasm", wasm, first.wasm));
  }
  const [least, most] = [heaps[0], heaps[heaps.length - 1]];
  if (least === null) await results.skip("the page's heap does not grow", "this browser does not tell how large it is");
  else {
    const grown = most - least > HEAP ? `it grew by ${most - least} bytes` : undefined;
    await results.add(`the page's heap does not grow (${least} bytes, then ${most})`, grown);
  }
  const ms = (performance.now() - begin) / count;
  await say(`${count} cycles on ${backend}, ${ms.toFixed(0)} ms each`);
  return { ...results, cycles: [{ backend, count, ms, heaps, memory }] };
}
