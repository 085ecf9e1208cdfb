// Sampled generation: the seed decides the text, whatever backend runs.

import { AnyGpu, beat, model, options } from "./run.js";
import { difference } from "./generate.js";

/** What is always asked for. */
const REQUEST = { prompt: "Once upon a time", ignore_eos: true };

/** All that sampling can be told, as the page tells it. */
const ALL = { temperature: 1, top_k: 40, top_p: 0.95, seed: 7 };

/** Ways to sample, by name. */
export const CASES = {
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
  ["all", "greedy"],
  ["all", "another seed"],
  ["all", "64 candidates"],
  ["only a temperature", "greedy"],
];

async function text(engine, sampling) {
  beat();
  return (await engine.completions.create({ ...REQUEST, ...sampling })).tokens;
}

/** Checks an engine on any backend, with one on the CPU beside it: some of the cases, the first of them twice. */
export async function checkSampling(results, engine, names) {
  const request = (name) => ({ max_tokens: Math.min(16, options.tokens), ...CASES[name] });
  const cpu = await AnyGpu.load(`/files/${model.file}`, {
    backend: "cpu", nCtx: model.nCtx, cache: false, onProgress: beat,
  });
  const known = {};
  for (const name of ["greedy", ...names]) known[name] = await text(cpu, request(name));
  await cpu.dispose();
  const run = ([one, other]) => one in known && other in known;
  for (const [one, other] of SAME.filter(run)) {
    await results.add(`sampling: ${one} as ${other}`, difference(known[one], known[other]));
  }
  for (const [one, other] of DIFFERENT.filter(run)) {
    const same = difference(known[one], known[other]) === undefined;
    await results.add(`sampling: ${one} unlike ${other}`, same ? `both are ${known[one].join(" ")}` : undefined);
  }
  // The first once more: a seed gives its text again.
  for (const name of [...names, names[0]]) {
    const wrong = await text(engine, request(name)).then(
      (tokens) => difference(tokens, known[name]),
      (error) => `${error.name}: ${error.message}`,
    );
    await results.add(`sampled as on the CPU: ${name}`, wrong);
  }
}
