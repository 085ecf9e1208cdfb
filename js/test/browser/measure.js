// Measurements of `cargo xtask bench`: models, operators and ablations, and then the same with other engines.

import { chooseThread, features } from "/below/a/path/anygpu/src/module/gpu-features.js";
import { threadsOf } from "/below/a/path/anygpu/src/module/thread-count.js";
import { beat, modelNamed, options, say } from "./run.js";

/** Returns the options of a measurement as the bindings take them. */
function request(what, model) {
  const { backend, depth, prefill, decode, repeat, queued } = options;
  const engine = { backend, n_ctx: model && depth + prefill + decode + 1 };
  return { what, model, engine, depth, prefill, decode, repeat, queued };
}

/** Number of CPU threads; other engines get the same. */
const threads = threadsOf(options.backend, options.threads);

/** Measures in a new worker, so that nothing is left of the last measurement; on this thread if only that works. */
async function measured(message) {
  const tell = () => beat();
  const here = async () => (await import("./measure-worker.js")).measure({ ...message, threads: 1 }, tell);
  if (!options.worker) return here();
  const worker = new Worker(new URL("measure-worker.js", import.meta.url), { type: "module" });
  try {
    const { backend } = options;
    const { thread } = await chooseThread(backend, await answer(worker, { features: backend }, tell), () => features(backend));
    return thread === "main" ? await here() : await answer(worker, message, tell);
  } finally {
    worker.terminate();
  }
}

/** Resolves to a worker's answer. */
function answer(worker, message, tell) {
  return new Promise((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(`the worker stopped: ${event.message}`));
    worker.onmessage = ({ data: { result, error, report } }) => {
      if (error !== undefined) reject(Object.assign(new Error(error), { report }));
      else if (result !== undefined) resolve(result);
      else tell();
    };
    worker.postMessage(message);
  });
}

/** Shows a report, and returns it without its text. */
async function shown({ text, ...report }) {
  for (const line of text.trimEnd().split("\n")) await say(line);
  return report;
}

export default async function measure() {
  const result = { models: [], ablations: [] };
  const reports = { model: result.models, ablate: result.ablations };
  for (const what of options.what) {
    if (what === "ops") {
      result.ops = await shown(await measured({ options: request(what), threads }));
      continue;
    }
    for (const name of options.models) {
      const { file } = modelNamed(name);
      reports[what].push(await shown(await measured({ options: request(what, name), file, threads })));
    }
  }
  if (options.peers) {
    const peers = await import("./peers.js");
    if (result.ops) result.peer_ops = await shown(await peers.ops(result.ops));
    result.peer_models = [];
    for (const report of result.models) result.peer_models.push(await shown(await peers.model(report)));
  }
  const passed = result.models.length + result.ablations.length + (result.ops ? 1 : 0);
  return { passed, failed: 0, skipped: 0, ...result };
}
