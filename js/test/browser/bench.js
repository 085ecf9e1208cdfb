// Timing of prefill and decode: medians of several rounds.

import { AnyGpu, beat, median, model, options, say } from "./run.js";

const ROUNDS = 3;

export default async function bench() {
  const { backend, worker, prefill, decode } = options;
  const nCtx = prefill + decode;
  const engine = await AnyGpu.load(`/files/${model.file}`, { backend, worker, nCtx, cache: false, onProgress: beat });
  const { vocab } = engine.info;
  const rounds = [];
  // The first round compiles shaders, and does not count.
  for (let round = 0; round <= ROUNDS; round++) {
    // Each round begins with another token; otherwise the prompt would be cached.
    const prompt = Uint32Array.from({ length: prefill }, (_, index) => (round + 1 + index * 7) % vocab);
    const stream = engine.completions.create({ prompt, max_tokens: decode, ignore_eos: true, draft_max: 0, stream: true });
    let last;
    for await (const chunk of stream) {
      beat();
      last = chunk;
    }
    const { timings, usage } = last;
    if (usage.cached_tokens) throw new Error(`${usage.cached_tokens} tokens of the prompt were not computed`);
    if (round) rounds.push(timings);
  }
  const middle = (name) => median(rounds.map((timings) => timings[name]));
  const result = {
    info: engine.info,
    load_ms: engine.info.load_ms,
    prefill_tokens: prefill,
    prefill_ms: middle("prefill_ms"),
    prefill_tokens_per_second: (1000 * prefill) / middle("prefill_ms"),
    decode_tokens: decode,
    decode_ms_per_token: middle("decode_ms_per_token"),
    decode_tokens_per_second: 1000 / middle("decode_ms_per_token"),
    ttft_ms: middle("ttft_ms"),
    rounds,
  };
  await say(
    `${engine.info.backend} (${engine.info.adapter}): prefill ${result.prefill_tokens_per_second.toFixed(1)} tokens/s, ` +
      `decode ${result.decode_tokens_per_second.toFixed(1)} tokens/s`,
  );
  await engine.dispose();
  return { passed: 1, failed: 0, skipped: 0, ...result };
}
