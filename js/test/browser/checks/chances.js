// Checks of penalties, biases and token probabilities: on all backends they are as on the CPU.

import { AnyGpu, beat } from "../run.js";
import { FILE, assert, equal, load } from "../expect.js";
import { difference } from "../generate.js";

const DRAWN = { prompt: "Once upon a time", ignore_eos: true, temperature: 1, top_k: 40, top_p: 0.95, seed: 7, max_tokens: 6 };
const PENALTIES = { presence_penalty: 1, frequency_penalty: 0.5, repetition_penalty: 1.2 };
const LEAST = { min_p: 0.2 };
/** Bans " lived", which is chosen without the bias. */
const BIASES = { logit_bias: { 640: -100 } };

/**
 * Tolerance: logits of about 20 differ by thousandths between the CPU, which multiplies integers, and the GPU backends.
 */
const NEAR = 1e-2;

async function tokens(engine, more) {
  beat();
  return (await engine.completions.create({ ...DRAWN, ...more })).tokens;
}

/** Returns token probabilities from the chunks of a stream. */
async function streamed(engine, request) {
  const all = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
  for await (const { choices } of engine.completions.create({ ...request, stream: true })) {
    beat();
    for (const name of Object.keys(all)) all[name].push(...(choices[0].logprobs?.[name] ?? []));
  }
  return all;
}

/** Fails a check unless two lists of numbers are nearly equal. */
function near(found, expected, what) {
  const wrong = expected.findIndex((value, at) => !(Math.abs(found[at] - value) < NEAR));
  assert(wrong < 0 && found.length === expected.length, `${what}: ${found} instead of ${expected}`);
}

export default {
  "penalties, min_p, biases and log probabilities": async () => {
    const cpu = await AnyGpu.load(`/files/${FILE}`, { backend: "cpu", nCtx: 128, cache: false, onProgress: beat });
    const engine = await load();
    const plain = await tokens(cpu, {});
    for (const one of [PENALTIES, LEAST, BIASES]) {
      assert(difference(await tokens(cpu, one), plain) !== undefined, `${JSON.stringify(one)} changes nothing`);
    }
    for (const some of [PENALTIES, { ...LEAST, ...BIASES }]) {
      const wrong = difference(await tokens(engine, some), await tokens(cpu, some));
      assert(wrong === undefined, `with ${JSON.stringify(some)} ${wrong}`);
    }
    const request = { ...DRAWN, ...PENALTIES, ...LEAST, ...BIASES, logprobs: 4, max_tokens: 4 };
    const { choices: [{ text, logprobs }] } = await cpu.completions.create(request);
    const found = await streamed(engine, request);
    equal(found.tokens.join(""), text, "the text of the tokens");
    equal(JSON.stringify(found.text_offset), JSON.stringify(logprobs.text_offset), "where tokens begin");
    near(found.token_logprobs, logprobs.token_logprobs, "of the tokens");
    found.top_logprobs.forEach((top, at) => {
      const expected = logprobs.top_logprobs[at];
      equal(Object.keys(top).join("|"), Object.keys(expected).join("|"), `the likeliest at ${at}`);
      near(Object.values(top), Object.values(expected), `of the likeliest at ${at}`);
    });
    await cpu.dispose();
    await engine.dispose();
  },
};
