// Tests of the AI SDK with an engine that answers like ours, and with a chat model if one is given; and of OpenAI's
// client with converted streams. It prints the results.
import { Output, embedMany, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { argv } from "node:process";
import { Stream } from "openai/core/streaming";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import { AnyGpu } from "anygpu";
import { embeddingModel, languageModel } from "anygpu/ai-sdk";
import { checked } from "./page/check.js";

const [, , gab, byHeart, chat] = argv;

/** @param {unknown} actual @param {unknown} expected */
function equal(actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}

/** Last request. @type {any} */
let asked;
/** Options beside the last request. @type {any} */
let beside;
/** Whether that request was ended by its signal. */
let stopped = false;
const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, prompt_tokens_details: { cached_tokens: 3 } };
const engine = /** @type {any} */ ({
  info: { name: "double", architecture: "llama" },
  chat: {
    completions: {
      create(/** @type {any} */ body, /** @type {any} */ { signal, ...others }) {
        asked = body;
        beside = others;
        const common = { id: "1", created: 1, model: "double" };
        const logprobs = (/** @type {string} */ token) => (body.logprobs ? { content: [{ token, logprob: -1, bytes: [], top_logprobs: [] }] } : null);
        const choice = { index: 0, finish_reason: "length", logprobs: null };
        const message = { role: "assistant", content: "a b" };
        if (!body.stream) return Promise.resolve({ ...common, usage, choices: [{ ...choice, message, logprobs: logprobs("a b") }] });
        return (async function* () {
          const endless = body.messages[0].content === "go on";
          for (let content = "a"; content !== ""; content = endless || content === "a" ? " b" : "") {
            if (endless) await new Promise((resolve) => setTimeout(resolve, 5));
            stopped = signal.aborted;
            if (stopped) throw signal.reason;
            yield { ...common, choices: [{ index: 0, finish_reason: null, logprobs: logprobs(content), delta: { content } }] };
          }
          yield { ...common, choices: [{ ...choice, delta: {} }] };
          yield { ...common, choices: [], usage };
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

/** The chat model, loaded once for all checks that need it. */
const conversing = chat === undefined ? null : AnyGpu.load(chat, { backend: "cpu" });

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
  "what only this engine has goes by its own name, and how likely tokens were comes back": async () => {
    const anygpu = { logprobs: true, top_logprobs: 2, min_p: 0.1, session: "mine" };
    const { providerMetadata } = await generateText({ model, prompt: "hi", seed: 1, topK: 5, providerOptions: { anygpu } });
    equal(asked, {
      messages: [{ role: "user", content: "hi" }],
      top_k: 5,
      seed: 1,
      logprobs: true,
      top_logprobs: 2,
      min_p: 0.1,
      stream: false,
    });
    equal(beside, { session: "mine" });
    const token = (/** @type {string} */ token) => ({ token, logprob: -1, bytes: [], top_logprobs: [] });
    equal(providerMetadata?.anygpu, { logprobs: [token("a b")] });
    const result = streamText({ model, prompt: "hi", providerOptions: { anygpu }, includeRawChunks: true });
    let raw = 0;
    for await (const part of result.fullStream) raw += Number(part.type === "raw");
    equal((await result.providerMetadata)?.anygpu, { logprobs: [token("a"), token(" b")] });
    const { id, modelId } = await result.response;
    equal([raw, id, modelId, (await result.usage).raw], [4, "1", "double", usage]);
    const error = await generateText({ model, prompt: "hi", providerOptions: { anygpu: { n: 2 } }, maxRetries: 0 }).catch((error) => error);
    equal([error.name, error.field], ["OptionsError", "n"]);
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
  "functions are passed on, and tools that only a provider runs are refused": async () => {
    const inputSchema = jsonSchema({ type: "object", properties: {} });
    await generateText({ model, prompt: "hi", tools: { time: tool({ description: "now", inputSchema, strict: true }) } });
    const parameters = { type: "object", properties: {} };
    equal(asked.tools, [{ type: "function", function: { name: "time", description: "now", parameters, strict: true } }]);
    await generateText({ model, prompt: "hi", tools: { time: tool({ inputSchema }) } });
    equal(asked.tools, [{ type: "function", function: { name: "time", parameters } }]);
    const search = { type: "provider", id: "openai.web_search", name: "search", args: {} };
    const error = await model.doGenerate({ prompt: [{ role: "user", content: [] }], tools: [search] }).catch((/** @type {any} */ error) => error);
    equal([error.name, error.field], ["OptionsError", "tools"]);
  },
  "embedMany": async () => {
    const { embeddings } = await embedMany({ model: embeddingModel(engine), values: ["a", "bcd"] });
    equal(embeddings, [[1, 0], [3, 0]]);
  },
  "a model calls tools, and its thoughts are told apart": async () => {
    const engine = await AnyGpu.load(byHeart, { backend: "cpu" });
    const messages = /** @type {any[]} */ ([{ role: "user", content: "Is it warm in Paris?" }]);
    const tools = ["weather", "time"].map((name) => ({ type: "function", function: { name, parameters: { type: "object" } } }));
    const whole = (await engine.chat.completions.create({ messages, tools })).choices[0];
    equal([whole.finish_reason, whole.message.content, whole.message.reasoning_content], ["tool_calls", null, "Let me look."]);
    const calls = (/** @type {any} */ message) => message.tool_calls.map((/** @type {any} */ { function: { name, arguments: given } }) => [name, JSON.parse(given)]);
    const expected = [["weather", { city: "Paris" }], ["time", {}]];
    equal(calls(whole.message), expected);
    // OpenAI's client assembles a stream to the same answer.
    const lines = engine.chat.completions.create({ messages, tools, stream: true }).toReadableStream();
    const { choices: [made] } = await ChatCompletionStream.fromReadableStream(lines).finalChatCompletion();
    equal([made.finish_reason, calls(made.message)], ["tool_calls", expected]);
    const answered = whole.message.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "25 degrees" }));
    const end = await engine.chat.completions.create({ messages: [...messages, whole.message, ...answered], tools });
    equal([end.choices[0].message.content, end.choices[0].finish_reason], ["It is warm.", "stop"]);
    const one = await engine.chat.completions.create({ messages, tools, parallel_tool_calls: false });
    equal(calls(one.choices[0].message), expected.slice(0, 1));
    const thoughtless = await engine.chat.completions.create({ messages, tools: tools.slice(1), tool_choice: "auto", chat_template_kwargs: { enable_thinking: false }, max_tokens: 40 });
    equal(thoughtless.choices[0].message.reasoning_content, undefined);
    const none = await engine.chat.completions.create({ messages, tools, tool_choice: "none" });
    equal(none.choices[0].message.content, "It is warm.");
    const refused = async (/** @type {object} */ more) => engine.chat.completions.create(/** @type {any} */ ({ messages, ...more })).catch((/** @type {any} */ error) => [error.name, /takes no argument|tools: unsupported schema keyword "not" at #/.test(error.message)]);
    equal(await refused({ chat_template_kwargs: { never_read: 1 } }), ["FileError", true]);
    // A call that the model would not choose by itself, and one that it would.
    const bare = { type: "function", function: { name: "time" } };
    const forced = await engine.chat.completions.create({ messages, tools: [tools[0], bare], tool_choice: bare });
    equal([calls(forced.choices[0].message), forced.choices[0].finish_reason], [[["time", {}]], "tool_calls"]);
    const single = await engine.chat.completions.create({ messages, tools, tool_choice: "required" });
    equal([calls(single.choices[0].message), single.choices[0].message.reasoning_content], [expected.slice(0, 1), "Let me look."]);
    const required = await engine.chat.completions.create({ messages, tools, tool_choice: "required", parallel_tool_calls: true });
    equal([calls(required.choices[0].message), required.choices[0].message.reasoning_content], [expected, "Let me look."]);
    // Helpers of OpenAI's client set `strict` on every function; the prompt stays the same.
    const strict = tools.map((tool) => ({ ...tool, function: { ...tool.function, strict: true } }));
    for (const [tool_choice, like] of /** @type {const} */ ([["auto", whole], ["required", required.choices[0]]])) {
      const answer = await engine.chat.completions.create({ messages, tools: strict, tool_choice, parallel_tool_calls: true });
      equal([calls(answer.choices[0].message), answer.usage?.prompt_tokens], [calls(like.message), required.usage?.prompt_tokens]);
    }
    equal(await refused({ tools: [{ type: "function", function: { name: "f", parameters: { not: {} } } }], tool_choice: "required" }), ["OptionsError", true]);
    // The AI SDK runs the tools itself.
    /** @type {unknown[]} */
    const ran = [];
    const own = (/** @type {string} */ name) => tool({ inputSchema: jsonSchema({ type: "object" }), execute: (input) => (ran.push([name, input]), "25 degrees") });
    const asked = { model: languageModel(engine), messages, tools: { weather: own("weather"), time: own("time") }, stopWhen: stepCountIs(3), maxRetries: 0 };
    const steps = streamText(asked);
    equal([await steps.text, ran], ["It is warm.", expected]);
    const [thought] = await steps.steps;
    equal([thought.reasoningText, thought.toolCalls.map(({ toolName, input }) => [toolName, input])], ["Let me look.", expected]);
    const { text, steps: [first] } = await generateText(asked);
    equal([text, first.reasoningText, first.finishReason], ["It is warm.", "Let me look.", "tool-calls"]);
    await engine.dispose();
  },
  "answers have the format that is asked for": async () => {
    const engine = await AnyGpu.load(gab, { backend: "cpu" });
    const properties = { name: { type: "string", maxLength: 8 }, age: { type: "integer", minimum: 0, maximum: 150 }, tags: { type: "array", items: { enum: ["red", "große"] }, maxItems: 3 } };
    const schema = { type: "object", properties, required: ["name", "age", "tags"], additionalProperties: false };
    const response_format = { type: "json_schema", json_schema: { name: "person", strict: true, schema } };
    const asked = { messages: /** @type {any[]} */ ([{ role: "user", content: "Who?" }]), response_format, temperature: 1, seed: 3, n: 2 };
    const { choices } = await engine.chat.completions.create(asked);
    const people = choices.map(({ message, finish_reason }) => (equal(finish_reason, "stop"), JSON.parse(message.content)));
    for (const { name, age, tags, ...others } of people) {
      const sound = name.length <= 8 && Number.isInteger(age) && age >= 0 && age <= 150 && tags.length <= 3 && tags.every((/** @type {string} */ tag) => ["red", "große"].includes(tag));
      equal([sound, Object.keys(others)], [true, []]);
    }
    let text = "";
    for await (const { choices: [choice] } of engine.chat.completions.create({ ...asked, n: 1, stream: true })) text += choice?.delta.content ?? "";
    equal(text, choices[0].message.content);
    // The AI SDK asks for objects, complete and streamed.
    const model = languageModel(engine);
    const settings = { model, prompt: "Who?", temperature: 1, seed: 3, maxRetries: 0, output: Output.object({ schema: jsonSchema(schema) }) };
    equal((await generateText(settings)).output, people[0]);
    equal(await streamText(settings).output, people[0]);
    const object = await engine.chat.completions.create({ ...asked, n: 1, response_format: { type: "json_object" }, max_tokens: 1 });
    equal(object.choices[0].message.content[0], "{");
    const refused = async (/** @type {object} */ schema) => engine.chat.completions.create({ ...asked, response_format: { type: "json_schema", json_schema: { name: "a", schema } } }).catch((error) => error);
    const error = await refused({ type: "object", not: {} });
    equal([error.name, error.field, error.message.includes('"not" at #')], ["OptionsError", "response_format", true]);
    // The deepest schema that is allowed, and a deeper one.
    const deep = (/** @type {number} */ levels) => Array.from({ length: levels }).reduce((/** @type {object} */ inner) => ({ type: "array", items: inner, maxItems: 1 }), { type: "null" });
    equal((await refused(deep(100))).name, "OptionsError");
    const controller = new AbortController();
    const stopped = engine.chat.completions.create({ ...asked, response_format: { type: "json_object" } }, { signal: controller.signal });
    setTimeout(() => controller.abort(), 300);
    equal((await stopped.catch((error) => error)).name, "AbortError");
    equal((await engine.chat.completions.create({ ...asked, n: 1 })).choices[0].message.content, text);
    await engine.dispose();
  },
  "OpenAI's client reads what a stream becomes": async () => {
    const engine = await AnyGpu.load(gab, { backend: "cpu" });
    const asked = { prompt: "Once upon a time", max_tokens: 4, n: 2, temperature: 1, seed: 4, logprobs: 1 };
    const whole = await engine.completions.create(asked);
    const stream_options = { include_usage: true };
    const lines = engine.completions.create({ ...asked, stream: true, stream_options }).toReadableStream();
    const pieces = [];
    for await (const piece of Stream.fromReadableStream(lines, new AbortController())) pieces.push(piece);
    await engine.dispose();
    const last = pieces.pop();
    equal([last.choices, last.usage.total_tokens], [[], whole.usage.total_tokens]);
    equal(pieces.map(({ usage }) => usage).find((usage) => usage !== null), undefined);
    for (const { index, text, logprobs } of whole.choices) {
      const choices = pieces.flatMap(({ choices }) => choices).filter((choice) => choice.index === index);
      equal(choices.map((choice) => choice.text).join(""), text);
      const all = (/** @type {string} */ name) => choices.flatMap((choice) => choice.logprobs?.[name] ?? []);
      equal(Object.fromEntries(Object.keys(logprobs).map((name) => [name, all(name)])), logprobs);
    }
    equal(whole.choices[0].text === whole.choices[1].text, false);
  },
  ...(chat === undefined ? {} : {
    "OpenAI's client makes an answer of what a stream becomes": async () => {
      const engine = await conversing;
      const messages = [{ role: "user", content: "What is the capital of France?" }];
      const asked = { messages, max_tokens: 3, n: 2, temperature: 0.5, logprobs: true, top_logprobs: 3 };
      const whole = await engine.chat.completions.create(asked);
      const stream_options = { include_usage: true };
      const pieces = engine.chat.completions.create({ ...asked, stream: true, stream_options });
      const made = await ChatCompletionStream.fromReadableStream(pieces.toReadableStream()).finalChatCompletion();
      const plain = ({ choices, usage }) => [
        choices.map(({ index, message, logprobs, finish_reason }) => [index, message.role, message.content, logprobs.content, finish_reason]),
        [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens],
      ];
      equal(plain(made), plain(whole));
    },
    "a conversation": async () => {
      const engine = await conversing;
      const { text } = await generateText({ model: languageModel(engine), prompt: "What is the capital of France?", maxOutputTokens: 12 });
      let streamed = "";
      const again = streamText({ model: languageModel(engine), prompt: "What is the capital of France?", maxOutputTokens: 12 });
      for await (const piece of again.textStream) streamed += piece;
      const options = { anygpu: { logprobs: true, top_logprobs: 1 } };
      const told = await generateText({ model: languageModel(engine), prompt: "What is the capital of France?", maxOutputTokens: 4, providerOptions: options });
      await engine.dispose();
      const likely = /** @type {any[]} */ (told.providerMetadata?.anygpu?.logprobs);
      equal(likely.map(({ token }) => token).join("").trim(), told.text.trim());
      if (!likely.every(({ logprob, top_logprobs: [best] }) => logprob <= 0 && logprob === best.logprob)) throw new Error(JSON.stringify(likely));
      if (!text.includes("Paris")) throw new Error(text);
      equal(streamed, text);
    },
  }),
});
console.log(JSON.stringify(results));
