/**
 * Tests of `anygpu serve` with OpenAI's client, LangChain and the AI SDK. Each check fails by throwing; the last line
 * is their results as JSON.
 */

import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { embed, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI, { APIError } from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const [, , texts = "", vectors = "", calls = "", key = ""] = process.argv;
const client = new OpenAI({ baseURL: texts, apiKey: key, maxRetries: 0 });
const embedder = new OpenAI({ baseURL: vectors, apiKey: key, maxRetries: 0 });
/** Client of a model that always gives the same answer: reasoning and two calls if there are tools, else text. */
const caller = new OpenAI({ baseURL: calls, apiKey: key, maxRetries: 0 });

const messages = [{ role: "user", content: "Tell me of a dragon." }];
const story = { model: "gab", prompt: "Once upon a time", max_tokens: 24 };

const described = (name, parameters) => ({ type: "function", function: { name, parameters: { type: "object", ...parameters } } });
const tools = [described("weather", { properties: { city: { type: "string" } } }), described("time")];
/** Returns a function without parameters. */
const bare = (name) => ({ type: "function", function: { name } });
const question = [{ role: "user", content: "Is it warm in Paris?" }];

/** Returns the error of a request that must fail. */
async function refused(promise, status) {
  const error = await promise.then(() => null, (error) => error);
  assert.ok(error instanceof APIError, String(error));
  assert.equal(error.status, status);
  return error;
}

const CHECKS = {
  async models() {
    const { data } = await client.models.list();
    assert.deepEqual(data.map(({ id }) => id), ["gab"]);
    assert.equal((await client.models.retrieve("gab")).object, "model");
  },
  async chat() {
    const answer = await client.chat.completions.create({ model: "gab", messages, max_tokens: 12 });
    const [{ message, finish_reason }] = answer.choices;
    assert.equal(message.role, "assistant");
    assert.ok(message.content.length > 0);
    assert.equal(finish_reason, "length");
    assert.equal(answer.usage.completion_tokens, 12);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 12);
    // The model's own answer becomes a part of the conversation.
    const more = [...messages, message, { role: "user", content: "And then?" }];
    const next = await client.chat.completions.create({ model: "gab", messages: more, max_tokens: 2 });
    assert.ok(next.usage.prompt_tokens_details.cached_tokens > 0);
  },
  async "chat as a stream, with usage"() {
    const request = { model: "gab", messages, max_tokens: 12 };
    const whole = await client.chat.completions.create(request);
    const stream = await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } });
    let [text, usage] = ["", null];
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(usage.completion_tokens, 12);
  },
  async "the stream's own helper"() {
    const final = await client.chat.completions.stream({ model: "gab", messages, max_tokens: 6 }).finalChatCompletion();
    assert.equal(final.choices[0].finish_reason, "length");
    assert.ok(final.choices[0].message.content.length > 0);
  },
  async "a JSON schema"() {
    const schema = {
      type: "object",
      properties: { colour: { enum: ["red", "green"] }, days: { type: "array", items: { type: "integer", minimum: 1, maximum: 9 }, minItems: 2, maxItems: 2 } },
      required: ["colour", "days"],
      additionalProperties: false,
    };
    const response_format = { type: "json_schema", json_schema: { name: "choice", strict: true, schema } };
    const { choices } = await client.chat.completions.parse({ model: "gab", messages, response_format });
    const { colour, days } = choices[0].message.parsed ?? JSON.parse(choices[0].message.content);
    assert.ok(["red", "green"].includes(colour) && days.length === 2 && days.every((day) => day >= 1 && day <= 9));
    response_format.json_schema.schema = { ...schema, not: {} };
    const error = await refused(client.chat.completions.create({ model: "gab", messages, response_format }), 400);
    assert.deepEqual([error.param, error.type], ["response_format", "invalid_request_error"]);
  },
  async completions() {
    const whole = await client.completions.create(story);
    assert.match(whole.choices[0].text, /^, there was a little dragon/);
    let text = "";
    for await (const chunk of await client.completions.create({ ...story, stream: true })) text += chunk.choices[0].text;
    assert.equal(text, whole.choices[0].text);
    const stopped = await client.completions.create({ ...story, stop: ["little"] });
    assert.deepEqual([stopped.choices[0].text, stopped.choices[0].finish_reason], [", there was a ", "stop"]);
  },
  async embeddings() {
    const request = { model: "bert-mean", input: ["the cat sat", "on the mat"] };
    // The client asks for base64 by default, and returns numbers.
    const { data, usage } = await embedder.embeddings.create(request);
    const floats = await embedder.embeddings.create({ ...request, encoding_format: "float" });
    assert.equal(data[0].embedding.length, 24);
    data[1].embedding.forEach((value, at) => assert.ok(Math.abs(value - floats.data[1].embedding[at]) < 1e-6));
    assert.ok(usage.total_tokens > 0);
  },
  async errors() {
    const wrong = new OpenAI({ baseURL: texts, apiKey: "wrong", maxRetries: 0 });
    assert.equal((await refused(wrong.models.list(), 401)).code, "invalid_api_key");
    const unsupported = await refused(client.chat.completions.create({ model: "gab", messages, reasoning_effort: "low" }), 400);
    assert.deepEqual([unsupported.param, unsupported.code, unsupported.type], ["reasoning_effort", "unsupported_parameter", "invalid_request_error"]);
    assert.equal((await refused(client.chat.completions.create({ model: "gpt-5", messages }), 404)).code, "model_not_found");
    const long = await refused(client.completions.create({ ...story, max_tokens: 1e6, overflow: "error", stream: true }), 400);
    assert.equal(long.code, "context_length_exceeded");
    await refused(client.embeddings.create({ model: "gab", input: "a" }), 400);
  },
  async tools() {
    const request = { model: "by-heart", messages: question, tools };
    const [{ message, finish_reason }] = (await caller.chat.completions.create(request)).choices;
    assert.equal(finish_reason, "tool_calls");
    assert.deepEqual([message.content, message.reasoning_content], [null, "Let me look."]);
    const called = message.tool_calls.map(({ type, function: { name, arguments: given } }) => [type, name, JSON.parse(given)]);
    assert.deepEqual(called, [["function", "weather", { city: "Paris" }], ["function", "time", {}]]);
    // The client assembles a stream to the same answer.
    const stream = caller.chat.completions.stream(request);
    const final = (await stream.finalChatCompletion()).choices[0];
    assert.equal(final.finish_reason, "tool_calls");
    assert.deepEqual(final.message.tool_calls.map((call) => call.function.arguments), message.tool_calls.map((call) => call.function.arguments));
    const answered = message.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "25 degrees" }));
    const end = await caller.chat.completions.create({ ...request, messages: [...question, message, ...answered] });
    assert.deepEqual([end.choices[0].message.content, end.choices[0].finish_reason], ["It is warm.", "stop"]);
    const none = await caller.chat.completions.create({ ...request, tool_choice: "none" });
    assert.equal(none.choices[0].message.content, "It is warm.");
    const named = { type: "function", function: { name: "time" } };
    const calledWith = async (more) => {
      const { choices } = await caller.chat.completions.create({ ...request, ...more });
      return choices[0].message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
    };
    assert.deepEqual(await calledWith({ tool_choice: "required" }), [["weather", { city: "Paris" }]]);
    const several = { tool_choice: "required", parallel_tool_calls: true };
    assert.deepEqual(await calledWith(several), [["weather", { city: "Paris" }], ["time", {}]]);
    // The model would not choose this by itself. Without parameters there is only one possible call.
    assert.deepEqual(await calledWith({ tool_choice: named, tools: [tools[0], bare("time")] }), [["time", {}]]);
    const other = { ...request, tool_choice: "required", response_format: { type: "json_object" } };
    assert.equal((await refused(caller.chat.completions.create(other), 400)).param, "response_format");
  },
  async "the client runs tools itself"() {
    const seen = [];
    const own = (name, parameters) => {
      const run = (given) => {
        seen.push([name, given]);
        return "25 degrees";
      };
      return { type: "function", function: { name, function: run, parse: JSON.parse, parameters: { type: "object", ...parameters }, description: name } };
    };
    const runner = caller.chat.completions.runTools({ model: "by-heart", messages: question, tools: [own("weather"), own("time")] });
    assert.equal(await runner.finalContent(), "It is warm.");
    assert.deepEqual(seen, [["weather", { city: "Paris" }], ["time", {}]]);
    // A function that is demanded by name is run once, and ends the loop.
    const empty = { properties: {}, additionalProperties: false };
    const forced = { tool_choice: { type: "function", function: { name: "time" } }, tools: [own("weather"), own("time", empty)] };
    await caller.chat.completions.runTools({ model: "by-heart", messages: question, ...forced }).done();
    assert.deepEqual(seen.slice(2), [["time", {}]]);
  },
  async "tools and formats of zod, which are strict"() {
    const zodTools = [zodFunction({ name: "weather", parameters: z.object({ city: z.string() }) }), zodFunction({ name: "time", parameters: z.object({}) })];
    const called = async (more) => {
      const { choices } = await caller.chat.completions.parse({ model: "by-heart", messages: question, tools: zodTools, ...more });
      return choices[0].message.tool_calls.map((call) => [call.function.name, call.function.parsed_arguments]);
    };
    const expected = [["weather", { city: "Paris" }], ["time", {}]];
    assert.deepEqual(await called({}), expected);
    // Fields that the client adds when it parses answers are sent back.
    const { choices: [{ message }] } = await caller.chat.completions.parse({ model: "by-heart", messages: question, tools: zodTools });
    const answered = message.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "25 degrees" }));
    const end = await caller.chat.completions.create({ model: "by-heart", messages: [...question, message, ...answered], tools: zodTools });
    assert.equal(end.choices[0].message.content, "It is warm.");
    assert.deepEqual(await called({ tool_choice: "required", parallel_tool_calls: true }), expected);
    const response_format = zodResponseFormat(z.object({ colour: z.enum(["red", "green"]), sure: z.boolean() }), "choice");
    const { choices } = await client.chat.completions.parse({ model: "gab", messages, response_format });
    assert.ok(["red", "green"].includes(choices[0].message.parsed.colour));
  },
  async "several answers and log probabilities"() {
    const request = { model: "gab", messages, max_tokens: 6, n: 3, temperature: 1, seed: 5, logprobs: true, top_logprobs: 2 };
    const { choices, usage } = await client.chat.completions.create(request);
    assert.equal(new Set(choices.map(({ message }) => message.content)).size, 3);
    assert.deepEqual([choices.map(({ index }) => index), usage.completion_tokens], [[0, 1, 2], 18]);
    for (const { logprobs } of choices) {
      assert.equal(logprobs.content.length, 6);
      assert.ok(logprobs.content.every(({ logprob, bytes, top_logprobs }) => logprob <= 0 && bytes.length > 0 && top_logprobs.length === 2));
    }
    const streamed = ["", "", ""];
    const chunks = [];
    const stream = await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } });
    for await (const chunk of stream) {
      chunks.push(chunk);
      for (const { index, delta } of chunk.choices) streamed[index] += delta.content ?? "";
    }
    assert.deepEqual(streamed, choices.map(({ message }) => message.content));
    const last = chunks.pop();
    assert.deepEqual([last.choices, last.usage.completion_tokens, last.usage.prompt_tokens], [[], 18, usage.prompt_tokens]);
    assert.ok(chunks.every((chunk) => chunk.usage === null));
    const legacy = await client.completions.create({ ...story, max_tokens: 3, logprobs: 1 });
    assert.equal(legacy.choices[0].logprobs.tokens.join(""), legacy.choices[0].text);
  },
  async LangChain() {
    const options = { apiKey: key, maxRetries: 0 };
    const model = new ChatOpenAI({ ...options, model: "gab", maxTokens: 8, configuration: { baseURL: texts } });
    const answer = await model.invoke("Tell me of a dragon.");
    assert.equal(answer.usage_metadata.output_tokens, 8);
    let text = "";
    for await (const chunk of await model.stream("Tell me of a dragon.")) text += chunk.content;
    assert.equal(text, answer.content);
    const bound = new ChatOpenAI({ ...options, model: "by-heart", configuration: { baseURL: calls } }).bindTools(tools);
    const called = await bound.invoke("Is it warm in Paris?");
    assert.deepEqual(called.tool_calls.map(({ name, args }) => [name, args]), [["weather", { city: "Paris" }], ["time", {}]]);
    const embeddings = new OpenAIEmbeddings({ ...options, model: "bert-mean", configuration: { baseURL: vectors } });
    assert.equal((await embeddings.embedQuery("the cat sat")).length, 24);
  },
  async "the AI SDK"() {
    const provider = (baseURL) => createOpenAICompatible({ name: "anygpu", baseURL, apiKey: key, includeUsage: true });
    const request = { model: provider(texts)("gab"), messages, maxOutputTokens: 8, maxRetries: 0 };
    const answer = await generateText(request);
    assert.deepEqual([answer.usage.outputTokens, answer.finishReason], [8, "length"]);
    const stream = streamText(request);
    let text = "";
    for await (const part of stream.textStream) text += part;
    assert.equal(text, answer.text);
    assert.equal((await stream.usage).outputTokens, 8);
    const own = tool({ inputSchema: jsonSchema({ type: "object" }), execute: () => "25 degrees" });
    const asked = { model: provider(calls)("by-heart"), messages: question, tools: { weather: own, time: own }, maxRetries: 0 };
    const steps = streamText({ ...asked, stopWhen: stepCountIs(3) });
    assert.equal(await steps.text, "It is warm.");
    const [thought] = await steps.steps;
    assert.deepEqual([thought.reasoningText, thought.toolCalls.map(({ toolName, input }) => [toolName, input])], ["Let me look.", [["weather", { city: "Paris" }], ["time", {}]]]);
    const { embedding } = await embed({ model: provider(vectors).embeddingModel("bert-mean"), value: "the cat sat" });
    assert.equal(embedding.length, 24);
  },
  async "the AI SDK's own provider for OpenAI"() {
    const provider = (baseURL) => createOpenAI({ baseURL, apiKey: key });
    const request = { model: provider(texts).chat("gab"), messages, maxOutputTokens: 8, maxRetries: 0 };
    const answer = await generateText(request);
    assert.deepEqual([answer.usage.outputTokens, answer.finishReason], [8, "length"]);
    assert.equal(await streamText(request).text, answer.text);
    const { text } = await generateText({ ...request, model: provider(texts).completion("gab") });
    assert.ok(text.length > 0);
    const own = tool({ inputSchema: z.object({}), strict: true, execute: () => "25 degrees" });
    const asked = { model: provider(calls).chat("by-heart"), messages: question, tools: { time: own }, toolChoice: "required", maxRetries: 0 };
    const { toolCalls } = await generateText(asked);
    assert.deepEqual(toolCalls.map(({ toolName, input }) => [toolName, input]), [["time", {}]]);
    const { embedding } = await embed({ model: provider(vectors).embedding("bert-mean"), value: "the cat sat" });
    assert.equal(embedding.length, 24);
  },
  async abort() {
    const endless = { ...story, max_tokens: 1e8, overflow: "shift", ignore_eos: true, stream: true };
    const stream = await client.completions.create(endless);
    for await (const chunk of stream) if (chunk.choices[0].text !== "") break;
    // The server notices the abort: no request is in progress any more.
    const metrics = () => fetch(new URL("/metrics", texts), { headers: { Authorization: `Bearer ${key}` } }).then((r) => r.text());
    while (!/^anygpu_requests_in_progress 0$/m.test(await metrics()));
  },
};

const results = [];
for (const [name, check] of Object.entries(CHECKS)) {
  const message = await check().then(() => undefined, (error) => error.stack);
  results.push({ name, ok: message === undefined, message });
}
console.log(JSON.stringify(results));
