// Checks of sampled generation: the text depends on the seed, and not on the backend.

import { AnyGpu, beat, model, options } from "./run.js";
import { difference } from "./generate.js";

/** Fields of all requests. */
const REQUEST = { prompt: "Once upon a time", ignore_eos: true };

/** All fields of sampling, with the page's names. */
const ALL = { temperature: 1, top_k: 40, top_p: 0.95, seed: 7 };

/** Sampling requests by name. */
export const CASES = {
  all: ALL,
  "another seed": { ...ALL, seed: 8 },
  "only a temperature": { temperature: 0.8 },
  "64 candidates": { ...ALL, top_k: 64 },
  "more candidates than are kept": { ...ALL, top_k: 100 },
  "top_p 0": { temperature: 1, top_p: 0 },
};

/** Pairs of cases that give the same text on the CPU, and pairs that do not. */
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

/** Compares an engine on any backend with one on the CPU in some of the cases; the first case runs twice. */
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
  // The first case again: the same seed gives the same text.
  for (const name of [...names, names[0]]) {
    const wrong = await text(engine, request(name)).then(
      (tokens) => difference(tokens, known[name]),
      (error) => `${error.name}: ${error.message}`,
    );
    await results.add(`sampled as on the CPU: ${name}`, wrong);
  }
}
