// A part of a text that is begun and continued elsewhere: its session comes from a file, and goes into the report.

import { AnyGpu, Results, beat, options, say } from "./run.js";
import { FILE } from "./expect.js";

export default async function leg() {
  const session = options.session && (await (await fetch(`/files/${options.session}`)).arrayBuffer());
  const load = { backend: options.backend, worker: options.worker, cache: false, onProgress: beat };
  const engine = await AnyGpu.load(`/files/${FILE}`, session ? { ...load, session } : load);
  const { completions, info } = engine;
  const prompt = session ? await engine.tokens() : options.prompt;
  const answer = await completions.create({
    prompt, max_tokens: options.tokens, temperature: 1, seed: 7, top_k: 40, top_p: 0.95, ignore_eos: true,
  });
  const saved = new Uint8Array(await (await engine.export()).arrayBuffer());
  await engine.dispose();
  const results = new Results();
  const computed = answer.usage.prompt_tokens - answer.usage.cached_tokens;
  await results.add("a session is not computed again", !session || computed === 1 ? undefined : `${computed} tokens were`);
  await say(`${answer.tokens.length} tokens on ${info.backend} (${info.adapter}), ${saved.length} bytes`);
  const hex = Array.from(saved, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { ...results, tokens: answer.tokens, session: hex };
}
