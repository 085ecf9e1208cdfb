// Checks of generation: greedy tokens equal the reference, sampled ones equal the CPU's, and a token's cost is limited.

import { AnyGpu, Results, beat, model, options, reference, say } from "./run.js";
import { CASES, checkSampling } from "./sampling.js";

/** Limits for the cost of a decode step on a GPU or the CPU. */
const PER_STEP = { objects: 0, submits: 1, uploaded: 256, read_back: 64 };

/** Rate of a device that runs each step whole, in multiply-adds a millisecond, so that costs do not depend on speed. */
const WHOLE = 1e12;

/** Number of tokens that includes steps in the steady state. */
const STEADY = 16;

/** Limit for the wasm memory on a GPU backend: weights do not stay in it. */
const MAX_WASM_MEMORY = 64 * 2 ** 20;

/** Returns why the cost of decoding is too high; undefined if it is not. */
export function excess(stats) {
  if (!(stats.steps > 0)) return "no step was in the steady state";
  const over = Object.entries(PER_STEP).filter(([name, limit]) => stats[name] > limit * stats.steps);
  return over.length ? over.map(([name]) => `${stats[name]} ${name} in ${stats.steps} steps`).join(", ") : undefined;
}

/** Returns what is wrong with the number of threads in the CPU's name; undefined if it is right. */
export function missing(threads, adapter) {
  const all = `${threads} thread${threads > 1 ? "s" : ""}`;
  return adapter.endsWith(`, ${all}`) ? undefined : `${adapter} instead of ${all}`;
}

/** Returns how tokens differ from those of the reference; undefined if they do not. */
export function difference(found, expected) {
  const at = expected.findIndex((token, index) => found[index] !== token);
  if (at >= 0) return `token ${at} is ${found[at]} instead of ${expected[at]}`;
  return found.length === expected.length ? undefined : `${found.length} tokens instead of ${expected.length}`;
}

export default async function generate() {
  const results = new Results();
  const { worker, threads } = options;
  const [, backend, layout] = /^(.*?)(?:-(packed|r32f|bits))?$/.exec(options.backend);
  const engine = await AnyGpu.load(`/files/${model.file}`, {
    backend, webgl: { layout }, worker, threads, nCtx: model.nCtx, cache: false, onProgress: beat, rate: WHOLE,
  });
  const { info } = engine;
  await say(`${info.name} on ${info.backend} (${info.adapter}), in the ${info.thread}; ${info.load_ms.toFixed(0)} ms to load`);
  if (threads !== undefined) await results.add("threads", missing(threads, info.adapter));
  const memory = (await engine.stats()).wasm_memory;
  await say(`wasm memory ${(memory / 2 ** 20).toFixed(1)} MiB`);
  if (info.backend !== "cpu") {
    await results.add("wasm memory", memory < MAX_WASM_MEMORY ? undefined : `${memory} bytes after loading`);
  }

  const cases = options.prompt === null && model.reference ? await reference() : [{ prompt: options.prompt ?? "" }];
  const answers = [];
  for (const { prompt, prompt_ids, greedy_ids } of cases) {
    const stream = engine.completions.create({
      prompt: prompt_ids ?? prompt, max_tokens: options.tokens, temperature: 0, ignore_eos: true, stream: true,
    });
    let text = "", last;
    for await (const chunk of stream) {
      beat();
      text += chunk.choices[0].text;
      last = chunk;
    }
    const { tokens, stats, timings, usage } = last;
    answers.push({ prompt, text, tokens, stats, timings, usage });
    await say(
      `prefill ${timings.prefill_ms.toFixed(0)} ms, ${timings.decode_ms_per_token.toFixed(1)} ms a token, ` +
        `${(stats.dispatches / Math.max(stats.steps, 1)).toFixed(0)} dispatches a token`,
    );
    const name = JSON.stringify(prompt).slice(0, 40);
    if (greedy_ids) await results.add(`tokens of ${name}`, difference(tokens, greedy_ids.slice(0, options.tokens)));
    else await say(text);
    if (options.tokens < STEADY) await results.skip(`cost of ${name}`, `it takes ${STEADY} tokens to measure`);
    else await results.add(`cost of ${name}`, excess(stats));
  }
  if (options.prompt === null && model.reference) {
    await checkSampling(results, engine, options.model === "gab" ? Object.keys(CASES) : ["all"]);
  }
  const stats = await engine.stats();
  await engine.dispose();
  return { ...results, info, report: engine.report, wasm_memory: memory, stats, answers };
}
