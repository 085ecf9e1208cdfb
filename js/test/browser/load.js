// Times the stages of loading: from a server alone, from a server into an empty cache, from the cache, and from a blob.

import { AnyGpu, beat, modelNamed, options, say } from "./run.js";

/** Sources of the bytes, in this order: one fills the cache for the next. */
const WAYS = ["server", "server and cache", "cache", "blob"];

/** Formats a line of the table. */
const line = (name, values) => name.padEnd(18) + values.map((value) => String(value).padStart(9)).join("");

/** Loads once with a new engine; returns the times of the stages in milliseconds. */
async function measured(way, address) {
  const { backend, worker } = options;
  const source = way === "blob" ? await (await fetch(address)).blob() : address;
  const begin = performance.now();
  const engine = await AnyGpu.load(source, { backend, worker, nCtx: 256, cache: way.includes("cache"), onProgress: beat });
  const all_ms = performance.now() - begin;
  const { info, report } = engine;
  await engine.dispose();
  const { open_ms, loading, compile_ms, cache } = info;
  const select_ms = report.rungs.reduce((sum, rung) => sum + (rung.tried_ms ?? 0), 0);
  return { way, all_ms, open_ms, select_ms, ...loading, compile_ms, remembered: report.remembered, proofs: report.proofs, cache, info };
}

export default async function load() {
  const loads = [];
  for (const name of options.models) {
    const address = `/files/${modelNamed(name).file}`;
    await AnyGpu.cache.clear();
    for (const way of WAYS) {
      const found = await measured(way, address);
      if (loads.length === 0) await say(`${found.info.backend} (${found.info.adapter})`);
      if (way === WAYS[0]) {
        await say(line(name, ["MB/s", "all ms", "open", "select", "proofs", "load", "read", "write", "device", "compile"]));
      }
      const { all_ms, open_ms, select_ms, proofs, bytes, total_ms, read_ms, write_ms, device_ms, compile_ms } = found;
      const before = [bytes / total_ms / 1e3, all_ms, open_ms, select_ms].map(Math.round);
      const stages = [total_ms, read_ms, write_ms, device_ms, compile_ms].map(Math.round);
      await say(line(way, [...before, proofs, ...stages]));
      loads.push({ model: name, ...found });
    }
    await AnyGpu.cache.clear();
  }
  return { passed: loads.length, failed: 0, skipped: 0, loads };
}
