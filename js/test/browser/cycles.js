// Engines that are loaded, used and disposed of, over and over: nothing of them may stay. What the page can count is counted
// after each; what the browser holds is watched from outside, in rests between them.

import { census } from "./census.js";
import { AnyGpu, Results, beat, options, say, sleep } from "./run.js";

/** Small, so that what is loaded again and again is the engine, not the file. */
const MODEL = "/files/llama-q4_0.gguf";
const N_CTX = 64;
/** Rests, each after as many cycles. The first is what the others are compared with. */
const RESTS = 8;
/** What a cycle leaves for the collector is gone by then, in milliseconds. */
const REST_MS = 1500;
/** What happens in one cycle after the other; each on a worker, then on this thread. */
const KINDS = ["plain", "kept", "plain", "aborted"];
/** What the page's heap may grow by from the first rest to the last, in bytes: caches of the browser, never an engine. */
const HEAP = 1 << 20;
/** What ends with a worker or a page may take this long to go, in milliseconds. */
const PATIENCE = 5000;

/** What cycle `index` is like. */
function cycle(index) {
  const worker = options.worker && index % 2 === 0;
  return { kind: KINDS[(index >> 1) % KINDS.length], worker };
}

/** Loads, uses and disposes of an engine. Gives its counters, unless it was given up while it was loaded. */
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

/** Bytes of the page's heap after a collection, where the browser tells. */
function heap() {
  if (globalThis.gc === undefined || performance.memory === undefined) return null;
  globalThis.gc();
  return performance.memory.usedJSHeapSize;
}

/** Lets everything end, and looks at what is left. */
async function rest() {
  await fetch("/phase", { method: "POST", body: "rest" });
  globalThis.gc?.();
  await sleep(REST_MS);
  const bytes = heap();
  await fetch("/phase", { method: "POST", body: "cycles" });
  return bytes;
}

/** What there is more of than before, as text. What is about to end gets some time. */
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
  /** Counters by thread: the first seen, and the last. */
  const memory = {};
  const leaks = [];
  // What the page has by itself, and the module of this thread, which stays.
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
