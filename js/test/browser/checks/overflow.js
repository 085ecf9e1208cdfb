// Checks of texts and conversations that outgrow the context.

import { beat, errors } from "../run.js";
import { assert, equal, load, rejection, talker } from "../expect.js";

const N_CTX = 16;
/** Half of the context. The model has no begin-of-text token, which would stay. */
const STEP = N_CTX / 2;
const PROMPT = [956, 1352, 259, 490];
const request = { prompt: PROMPT, max_tokens: 26, ignore_eos: true, temperature: 1, top_k: 40, seed: 5 };

/** Converts tokens to text for comparison. */
const text = (tokens) => JSON.stringify([...tokens]);

export default {
  "a conversation that outgrows the context goes on": async () => {
    const engine = await load(await talker(), { nCtx: 112 });
    const messages = [{ role: "system", content: "You tell stories." }];
    const sampled = { max_tokens: 8, ignore_eos: true, temperature: 0.8, top_k: 40 };
    let dropped = 0;
    for (let turn = 0; turn < 6; turn++) {
      messages.push({ role: "user", content: `What did dragon number ${turn} do?` });
      let [answer, told, last] = ["", null, null];
      const shift = { messages, overflow: "shift", seed: turn, stream: true, ...sampled };
      for await (const chunk of engine.chat.completions.create(shift)) {
        beat();
        if (chunk.overflow && !chunk.usage) told = chunk.overflow;
        answer += chunk.choices[0].delta.content ?? "";
        last = chunk;
      }
      equal(last.usage.completion_tokens, 8, `the tokens of answer ${turn}`);
      equal(last.overflow?.dropped_messages, told?.dropped_messages, "the messages that were told to be left out");
      const now = last.overflow?.dropped_messages ?? 0;
      assert(now >= dropped && now % 2 === 0, `${now} messages were left out, and ${dropped} before`);
      dropped = now;
      messages.push({ role: "assistant", content: answer });
    }
    assert(dropped >= 2, `${dropped} messages were left out`);
    messages.push({ role: "user", content: "And then?" });
    await rejection(engine.chat.completions.create({ messages, ...sampled }), errors.ContextError);
    await engine.dispose();
  },

  "a text that outgrows the context is that of fresh ones from what is left": async () => {
    const engine = await load(undefined, { nCtx: N_CTX });
    const whole = await engine.completions.create({ ...request, overflow: "shift" });
    equal(whole.overflow.times, 2, "the times that room was made");
    equal(whole.overflow.dropped_tokens, 2 * STEP, "the tokens that made room");
    const context = text(await engine.tokens());
    let [left, made] = [PROMPT, []];
    for (;;) {
      const max_tokens = request.max_tokens - made.length;
      const fresh = await engine.completions.create({ ...request, prompt: left, max_tokens, overflow: "stop" });
      beat();
      made = [...made, ...fresh.tokens];
      left = [...left, ...fresh.tokens];
      if (made.length === request.max_tokens) break;
      equal(fresh.overflow.policy, "stop", "what ended a text in a full context");
      left = left.slice(STEP);
    }
    equal(text(whole.tokens), text(made), "the tokens");
    equal(context, text(left), "what is in the context");
    await rejection(engine.completions.create(request), errors.ContextError);
    await rejection(engine.completions.create({ ...request, keep: 1 }), errors.OptionsError);
    await engine.dispose();
  },
};
