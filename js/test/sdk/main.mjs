// The AI SDK with an engine that answers as ours does, and with a model if one is given. Prints the results.
import { embedMany, generateText, streamText } from "ai";
import { argv } from "node:process";
import { AnyGpu } from "anygpu";
import { embeddingModel, languageModel } from "anygpu/ai-sdk";
import { checked } from "./page/check.js";

const [, , chat] = argv;

/** @param {unknown} actual @param {unknown} expected */
function equal(actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}

/** What it was asked last. @type {any} */
let asked;
/** Whether the signal of that ended it. */
let stopped = false;
const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, prompt_tokens_details: { cached_tokens: 3 } };
const engine = /** @type {any} */ ({
  info: { name: "double", architecture: "llama" },
  chat: {
    completions: {
      create(/** @type {any} */ body, /** @type {any} */ { signal }) {
        asked = body;
        const choice = { index: 0, finish_reason: "length" };
        const whole = { id: "1", created: 1, model: "double", usage };
        if (!body.stream) return Promise.resolve({ ...whole, choices: [{ ...choice, message: { role: "assistant", content: "a b" } }] });
        return (async function* () {
          const endless = body.messages[0].content === "go on";
          for (let content = "a"; content !== ""; content = endless || content === "a" ? " b" : "") {
            if (endless) await new Promise((resolve) => setTimeout(resolve, 5));
            stopped = signal.aborted;
            if (stopped) throw signal.reason;
            yield { choices: [{ index: 0, finish_reason: null, delta: { content } }] };
          }
          yield { choices: [{ ...choice, delta: {} }], usage };
        })();
      },
    },
  },
  embeddings: {
    create: async (/** @type {any} */ { input }) => ({
      data: input.map((/** @type {string} */ text) => ({ embedding: [text.length, 0] })),
      usage: { prompt_tokens: 4, total_tokens: 4 },
    }),
  },
});
const model = languageModel(engine);

const results = await checked({
  "generateText": async () => {
    const { text, finishReason, usage } = await generateText({ model, instructions: "Be brief.", prompt: "hi", maxOutputTokens: 2, seed: 3, stopSequences: ["x"] });
    equal([text, finishReason, usage.inputTokens, usage.outputTokens], ["a b", "length", 7, 2]);
    equal(asked, {
      messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "hi" }],
      max_tokens: 2,
      stop: ["x"],
      seed: 3,
      stream: false,
    });
  },
  "streamText": async () => {
    const pieces = [];
    const result = streamText({ model, prompt: "hi" });
    for await (const piece of result.textStream) pieces.push(piece);
    equal([pieces, await result.finishReason, (await result.usage).totalTokens], [["a", " b"], "length", 9]);
  },
  "an abort reaches the engine": async () => {
    const controller = new AbortController();
    const result = streamText({ model, prompt: "go on", abortSignal: controller.signal });
    for await (const _ of result.textStream) controller.abort();
    await new Promise((resolve) => setTimeout(resolve, 50));
    equal(stopped, true);
  },
  "pictures are refused": async () => {
    const content = [{ type: "file", data: new Uint8Array([1]), mediaType: "image/png" }];
    const error = await generateText({ model, messages: [{ role: "user", content }], maxRetries: 0 }).catch((error) => error);
    equal([error.name, error.field], ["OptionsError", "messages"]);
  },
  "embedMany": async () => {
    const { embeddings } = await embedMany({ model: embeddingModel(engine), values: ["a", "bcd"] });
    equal(embeddings, [[1, 0], [3, 0]]);
  },
  ...(chat === undefined ? {} : {
    "a conversation": async () => {
      const engine = await AnyGpu.load(chat, { backend: "cpu" });
      const { text } = await generateText({ model: languageModel(engine), prompt: "What is the capital of France?", maxOutputTokens: 12 });
      let streamed = "";
      const again = streamText({ model: languageModel(engine), prompt: "What is the capital of France?", maxOutputTokens: 12 });
      for await (const piece of again.textStream) streamed += piece;
      await engine.dispose();
      if (!text.includes("Paris")) throw new Error(text);
      equal(streamed, text);
    },
  }),
});
console.log(JSON.stringify(results));
