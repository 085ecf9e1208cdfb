// Makes each call of storage, of locks and of the network fail once, in a load and a generation with the browser's own
// interfaces. Each must soon end with the right tokens or with an error of the package, and afterwards the cache must
// have the right file or none. `failing.test.js` does so with doubles.

import { AnyGpu, Results, beat, errors, options, reference, say } from "./run.js";
import { Client } from "/below/a/path/anygpu/src/workers/client.js";
import { difference } from "./generate.js";
import { FILE } from "./expect.js";

const MODEL = new URL(`/files/${FILE}`, location.href).href;
/** Limit for a load and a generation, in milliseconds. */
const LIMIT = 30_000;
/** Time limit for a call of storage that never answers, in milliseconds. */
const SILENCE = 1000;
const TOKENS = 3;
/** Calls that change storage, or read something that comes only once. Only these can fail after they took effect. */
const CHANGES = ["write", "truncate", "close", "removeEntry", "put", "delete", "read", "fetch"];

/** Threads that the engine runs on, the interfaces that fail there, and the ways in which they can fail. */
const PLACES = [
  { name: "files, in a worker", what: "files", where: startWorker, kinds: ["before", "after", "torn"] },
  { name: "files, in a page", what: "files", where: startTab, kinds: ["before", "after", "torn", "silent"] },
  { name: "the Cache API", what: "cache", where: startWorker, kinds: ["before", "after", "silent"] },
  { name: "locks", what: "locks", where: startWorker, kinds: ["before"] },
  { name: "the network", what: "network", where: startWorker, kinds: ["before", "after"], cold: true },
];

function query(what) {
  return new URLSearchParams({ what: JSON.stringify({ ...what, model: MODEL }) });
}

async function startWorker(what) {
  const worker = new Worker(new URL(`failing-worker.js?${query(what)}`, import.meta.url), { type: "module" });
  const client = new Client(worker);
  worker.onerror = (event) => client.fail(new errors.CrashError(`the worker stopped: ${event.message}`));
  return { client, end: () => worker.terminate() };
}

async function startTab(what) {
  const frame = document.createElement("iframe");
  const ready = new Promise((resolve) => {
    addEventListener("message", function listen({ source, ports }) {
      if (source !== frame.contentWindow) return;
      removeEventListener("message", listen);
      resolve(ports[0]);
    });
  });
  frame.src = `failing.html?${query(what)}`;
  document.body.append(frame);
  return { client: new Client(await ready), end: () => frame.remove() };
}

/** Returns the package's locks that are held. */
async function locks() {
  const { held } = await navigator.locks.query();
  return held.filter(({ name }) => name.startsWith("anygpu")).map(({ name }) => name);
}

/** Loads and generates. Returns the cache state or the error, the call that failed, and the locks that were left. */
async function whole(where, what, known) {
  const { client, end } = await where(what);
  const running = async () => {
    const load = { what: MODEL, options: { network: { retries: 1, stallTimeout: 5000 } }, engine: { backend: "cpu", n_ctx: 64 } };
    const { info } = await client.call("load", load);
    const generate = { max_tokens: TOKENS, ignore_eos: true };
    const { tokens } = await client.call("generate", { prompt: { tokens: known.prompt_ids }, generate });
    const wrong = difference(Array.from(tokens), known.greedy_ids.slice(0, TOKENS));
    if (wrong) throw new Error(wrong);
    return info.cache.state;
  };
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("it hangs")), LIMIT)));
  try {
    const outcome = await Promise.race([running(), late]).catch((error) => error);
    if (outcome instanceof Error && !(outcome instanceof errors.AnyGpuError)) throw outcome;
    const { calls, failed } = await client.call("faults", {});
    await client.close(new errors.DisposedError("closed"));
    return { outcome, calls, failed, held: await locks() };
  } finally {
    clearTimeout(timer);
    end();
    beat();
  }
}

/** Removes everything from storage. */
async function clear() {
  await AnyGpu.cache.clear();
  await caches.delete("anygpu");
}

/** Makes one call fail, and checks what is left. Returns the name of the call. */
async function once({ what, where }, warm, at, how, known) {
  if (!warm) await clear();
  const { failed, held } = await whole(where, { what, at, how, limit: how === "silent" ? SILENCE : undefined }, known);
  const expect = (condition, message) => {
    if (!condition) throw new Error(`call ${at}, ${failed}, fails ${how} being done: ${message}`);
  };
  if (failed === null) return null;
  expect(held.length === 0, `locks are held: ${held.join(", ")}`);
  const place = what === "cache" ? what : "files";
  const { outcome } = await whole(where, { what: place }, known);
  expect(outcome === "stored" || outcome === "hit", `afterwards: ${outcome}`);
  const offline = await whole(where, { what: place, offline: true }, known);
  expect(offline.outcome === "hit", `what was kept is not there: ${offline.outcome}`);
  return failed;
}

/** Makes every so many-th call fail, in each of the possible ways. Returns the number of failures. */
async function each(place, warm, known) {
  const { what, where, kinds } = place;
  await clear();
  if (warm) await whole(where, { what }, known);
  const { outcome, calls } = await whole(where, { what }, known);
  if (outcome !== (warm ? "hit" : "stored")) throw new Error(`nothing failed, and the cache did this: ${outcome}`);
  let count = 0;
  for (let at = 1 + (options.seed % Math.min(options.every, calls)); at <= calls; at += options.every) {
    const name = await once(place, warm, at, "before", known);
    // The order of calls varies, and now and then there are one or two fewer.
    if (name === null) break;
    count += 1;
    for (const how of kinds.slice(1)) {
      if (how !== "silent" && !CHANGES.includes(name)) continue;
      if (how === "torn" && name !== "write") continue;
      await once(place, warm, at, how, known);
      count += 1;
    }
  }
  return { count, calls };
}

export default async function failing() {
  const results = new Results();
  const [known] = await reference();
  for (const place of PLACES) {
    for (const warm of place.cold ? [false] : [false, true]) {
      const name = `${place.name}${warm ? ", of a file that is kept" : ""}`;
      if (!options.only.some((part) => name.includes(part))) continue;
      const begin = performance.now();
      let found, failure;
      try {
        found = await each(place, warm, known);
        if (found.count === 0) failure = "nothing failed";
      } catch (error) {
        failure = `${error?.name}: ${error?.message}`;
      }
      const ms = Math.round(performance.now() - begin);
      await results.add(`${name}: ${found?.count} failures of ${found?.calls} calls (${ms} ms)`, failure);
      await clear();
    }
  }
  if (options.every > 1) await say(`one of ${options.every} calls; --seed ${options.seed} says which`);
  return { ...results };
}
