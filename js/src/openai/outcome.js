/** Computes the result of a generation as a whole. */

/** @import { Generated, Told } from "./completions.js" */

/**
 * @param {Generated[]} results Results of all answers, prompt by prompt.
 * @param {number} n Number of answers to each prompt.
 * @param {Clock} clock
 */
export function outcome(results, n, clock) {
  // The first answer to a prompt is the one that computes it.
  const firsts = results.filter((_, index) => index % n === 0);
  const ofPrompts = (/** @type {(result: Generated) => number} */ of) => firsts.reduce((all, result) => all + of(result), 0);
  const [prompt_tokens, cached_tokens] = [ofPrompts((one) => one.prompt_tokens), ofPrompts((one) => one.cached_tokens)];
  const sum = (/** @type {(result: Generated) => number} */ of) => results.reduce((all, result) => all + of(result), 0);
  const tokens = results.flatMap((result) => result.tokens);
  const accepted = sum((result) => result.accepted_tokens);
  return {
    usage: {
      prompt_tokens,
      completion_tokens: tokens.length,
      total_tokens: prompt_tokens + tokens.length,
      cached_tokens,
      prompt_tokens_details: { cached_tokens, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: sum((result) => result.thought_tokens ?? 0),
        audio_tokens: 0,
        accepted_prediction_tokens: accepted,
        rejected_prediction_tokens: sum((result) => result.drafted_tokens) - accepted,
      },
    },
    timings: { prefill_ms: ofPrompts((one) => one.prefill_ms), decode_ms_per_token: perToken(results), ttft_ms: clock.firstMs() },
    stats: { steps: sum((result) => result.steady_steps), ...steady(results) },
    tokens,
    overflow: results.map((result) => result.overflow).find((overflow) => overflow !== null) ?? null,
  };
}

/** Returns the mean time of a token. The first token of each answer does not count. @param {Generated[]} results */
function perToken(results) {
  const decoded = results.map(({ tokens }) => Math.max(tokens.length - 1, 0));
  const ms = results.reduce((all, { decode_ms_per_token }, at) => all + decode_ms_per_token * decoded[at], 0);
  return ms / Math.max(decoded.reduce((all, some) => all + some, 0), 1);
}

/** Sums the counters of all answers; memory is that of the last. @param {Generated[]} results */
function steady(results) {
  const all = results.map((result) => Object.entries(result.steady));
  /** @type {Record<string, number>} */
  const sums = {};
  for (const [name, value] of all.flat()) sums[name] = name === "memory" ? value : (sums[name] ?? 0) + value;
  return sums;
}

/** Measures the time from the call to the first piece. */
export class Clock {
  _start = performance.now();
  /** @type {number | null} */
  _first = null;

  /** @param {Told} event */
  told({ overflow }) {
    if (this._first === null && overflow === undefined) this._first = performance.now();
  }

  /** Returns the time in milliseconds; all of it so far if no piece came. */
  firstMs() {
    return (this._first ?? performance.now()) - this._start;
  }
}
