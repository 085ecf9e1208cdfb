// Sampled generation: the seed decides the text, whatever backend runs.

import { AnyGpu, beat, model } from "./run.js";
import { difference } from "./generate.js";

/** Tokens enough to tell texts apart. */
const REQUEST = { prompt: "Once upon a time", max_tokens: 16, ignore_eos: true };

/** All that sampling can be told, as the page tells it. */
const ALL = { temperature: 1, top_k: 40, top_p: 0.95, seed: 7 };

const CASES = {
  all: ALL,
  "another seed": { ...ALL, seed: 8 },
  "only a temperature": { temperature: 0.8 },
  "64 candidates": { ...ALL, top_k: 64 },
  "more candidates than are kept": { ...ALL, top_k: 100 },
  "top_p 0": { temperature: 1, top_p: 0 },
};

/** Which texts are the same on the CPU, and which are not. */
const SAME = [
  ["more candidates than are kept", "64 candidates"],
  ["top_p 0", "greedy"],
];
const DIFFERENT = [
  ["all", "another seed"],
  ["all", "64 candidates"],
  ["only a temperature", "greedy"],
];

async function text(engine, sampling) {
  beat();
  return (await engine.completions.create({ ...REQUEST, ...sampling })).tokens;
}

/** Checks an engine on any backend, with one on the CPU beside it. */
export async function checkSampling(results, engine) {
  const cpu = await AnyGpu.load(`/files/${model.file}`, { backend: "cpu", cache: false, onProgress: beat });
  const known = { greedy: await text(cpu, {}) };
  for (const [name, sampling] of Object.entries(CASES)) known[name] = await text(cpu, sampling);
  await cpu.dispose();
  for (const [one, other] of SAME) {
    await results.add(`sampling: ${one} as ${other}`, difference(known[one], known[other]));
  }
  for (const [one, other] of DIFFERENT) {
    const same = difference(known[one], known[other]) === undefined;
    await results.add(`sampling: ${one} unlike ${other}`, same ? `both are ${known[one].join(" ")}` : undefined);
  }
  // The first once more: a seed gives its text again.
  for (const [name, sampling] of [...Object.entries(CASES), ["all", ALL]]) {
    const wrong = await text(engine, sampling).then(
      (tokens) => difference(tokens, known[name]),
      (error) => `${error.name}: ${error.message}`,
    );
    await results.add(`sampled as on the CPU: ${name}`, wrong);
  }
}
