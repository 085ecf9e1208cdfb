// Checks of slow devices: steps are cut into parts, so that neither the page's thread nor the GPU is busy for long.
// They run on this thread, where turns of the event loop can be seen. The device's rate is forced, so that the results
// do not depend on time.

import { say } from "../run.js";
import { assert, equal, load } from "../expect.js";

/** Rates in multiply-adds a millisecond: faster than any device, and slow enough for a few dozen parts. */
const [FAST, SLOW] = [1e12, 1e6];
/** Prompts that are computed in one step, and do not share a prefix. */
const [FIRST, SECOND] = [300, 301].map((token) => Array.from({ length: 120 }, (_, at) => token + 7 * at));

/**
 * Returns the result of a promise, and the longest time between two turns of the event loop meanwhile, in milliseconds.
 */
async function watched(promise) {
  let [longest, last, over] = [0, performance.now(), false];
  const turn = () => {
    const now = performance.now();
    [longest, last] = [Math.max(longest, now - last), now];
    if (!over) setTimeout(turn);
  };
  setTimeout(turn);
  const value = await promise;
  over = true;
  return [value, longest];
}

/**
 * Returns the answer to the second prompt on a device with this rate, and the number of submits and dispatches that it
 * took.
 */
async function answer(rate) {
  const engine = await load(undefined, { worker: false, rate });
  const ask = (prompt) => engine.completions.create({ prompt, max_tokens: 4, ignore_eos: true });
  // The first prompt compiles.
  await ask(FIRST);
  const before = await engine.stats();
  const [{ choices }, gap] = await watched(ask(SECOND));
  const { submits, dispatches } = await engine.stats();
  await engine.dispose();
  const text = choices[0].text;
  return { text, submits: submits - before.submits, dispatches: dispatches - before.dispatches, gap };
}

export default {
  "a prompt on a slow device is computed in parts": async () => {
    const [fast, slow] = [await answer(FAST), await answer(SLOW)];
    equal(slow.text, fast.text, "the text");
    const parts = slow.submits - fast.submits;
    assert(fast.submits <= 12, `${fast.submits} submits on a fast device`);
    assert(parts >= 40 && parts <= 400, `${parts} more submits on a slow device`);
    assert(slow.dispatches > fast.dispatches, "no kernel was cut");
    const gap = ({ gap }) => `${Math.round(gap)} ms`;
    await say(`longest time between turns: ${gap(fast)} whole, ${gap(slow)} with ${parts} more submits`);
  },
};
