// Tests of requests: which values pass, which are refused, and that the table in the code has all fields.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CHAT, EMBEDDING, MESSAGE, TEXT, chatRequest, completionRequest } from "../../src/openai/request.js";
import { chatCompletions, completions } from "../../src/openai/completions.js";

const messages = [{ role: "user", content: "hi" }];
const chat = (/** @type {object} */ more) => chatRequest({ messages, ...more });
const text = (/** @type {object} */ more) => completionRequest({ prompt: "a", ...more });
const turn = (/** @type {object} */ more) => chatRequest({ messages: [{ role: "assistant", content: "hi", ...more }] });
const bare = { chat: chat({}), text: text({}), turn: turn({}) };
const asked = { chat, text, turn };

/** Values that ask for nothing special. @type {Record<string, [keyof typeof asked, unknown[]][]>} */
const NEUTRAL = {
  n: [["chat", [1]], ["text", [1]]],
  presence_penalty: [["chat", [0, -0]], ["text", [0]]],
  frequency_penalty: [["chat", [0]], ["text", [0]]],
  repetition_penalty: [["chat", [1]], ["text", [1]]],
  min_p: [["chat", [0]], ["text", [0]]],
  logit_bias: [["chat", [{}]], ["text", [{}]]],
  user: [["chat", ["me", ""]], ["text", ["me"]]],
  stream: [["chat", [false]], ["text", [false]]],
  stream_options: [["chat", [{}, { include_usage: true }, { include_usage: false, include_obfuscation: true }, { include_usage: null }]]],
  logprobs: [["chat", [false]], ["text", [false]]],
  top_logprobs: [["chat", [0]]],
  tools: [["chat", [[]]]],
  tool_choice: [["chat", ["none", "auto"]]],
  parallel_tool_calls: [["chat", [true, false]]],
  chat_template_kwargs: [["chat", [{}]]],
  functions: [["chat", [[]]]],
  function_call: [["chat", ["none", "auto"]], ["turn", []]],
  response_format: [["chat", [{ type: "text" }]]],
  modalities: [["chat", [["text"]]]],
  verbosity: [["chat", ["medium"]]],
  service_tier: [["chat", ["auto", "default"]]],
  store: [["chat", [false]]],
  metadata: [["chat", [{}, { a: "b" }]]],
  prediction: [["chat", [{ type: "content", content: "x" }]]],
  prompt_cache_key: [["chat", ["key"]]],
  prompt_cache_options: [["chat", [{ mode: "implicit" }]]],
  prompt_cache_retention: [["chat", ["24h"]]],
  safety_identifier: [["chat", ["id"]]],
  best_of: [["text", [1]]],
  echo: [["text", [false]]],
  suffix: [["text", [""]]],
  name: [["turn", [""]]],
  refusal: [["turn", [""]]],
  tool_calls: [["turn", [[]]]],
  tool_call_id: [["turn", [""]]],
  annotations: [["turn", [[], [{}]]]],
  parsed: [["turn", [null, { colour: "red" }]]],
};

/**
 * Values that would change the answer, and are not supported.
 *
 * @type {Record<string, [keyof typeof asked, unknown[]][]>}
 */
const REFUSED = {
  presence_penalty: [["chat", [2.1, "0", NaN]], ["text", [-3]]],
  frequency_penalty: [["chat", [-2.5]], ["text", [Infinity]]],
  repetition_penalty: [["chat", [0, -1, "1"]], ["text", [101]]],
  min_p: [["chat", [-0.1, 1.1]], ["text", [NaN]]],
  logit_bias: [["chat", [[], "5", 5]]],
  tools: [["chat", [{}, [{}], [{ type: "function" }], [{ type: "custom", function: { name: "f" } }], [{ type: "function", function: { name: "a b" } }],
    [{ type: "function", function: { name: "f", strict: "yes" } }], Array(129).fill({ type: "function", function: { name: "f" } })]]],
  chat_template_kwargs: [["chat", [[], "enable_thinking", Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`v${at}`, at]))]]],
  functions: [["chat", [[{ name: "f" }]]]],
  function_call: [["chat", [{ name: "f" }]], ["turn", [{ name: "f", arguments: "" }]]],
  modalities: [["chat", [["text", "audio"]]]],
  audio: [["chat", [{ voice: "alloy", format: "wav" }]], ["turn", [{ id: "x" }]]],
  reasoning_effort: [["chat", [5, {}]]],
  reasoning_content: [["turn", [5, ["a"]]]],
  verbosity: [["chat", ["low"]]],
  web_search_options: [["chat", [{}]]],
  moderation: [["chat", [{ model: "m" }]]],
  service_tier: [["chat", ["flex", "priority"]]],
  store: [["chat", [true]]],
  best_of: [["text", [2]]],
  echo: [["text", [true]]],
  suffix: [["text", ["the end"]]],
  name: [["turn", ["Ada"]]],
  refusal: [["turn", ["No."]]],
  tool_calls: [["turn", [{}, [{ id: "1", type: "function" }], [{ function: { name: "f", arguments: "[1]" } }], [{ function: { name: "f", arguments: "{" } }]]]],
  tool_call_id: [["turn", [1]]],
};

const TABLES = { chat: CHAT, text: TEXT, turn: MESSAGE };

for (const [kind, table] of Object.entries(TABLES)) {
  const of = (/** @type {typeof NEUTRAL} */ cases, /** @type {string} */ name) =>
    (cases[name] ?? []).flatMap(([of, values]) => (of === kind ? values : []));
  const field = (/** @type {string} */ name) => (kind === "turn" ? `messages[0].${name}` : name);
  const ask = asked[/** @type {keyof typeof asked} */ (kind)];
  const plain = bare[/** @type {keyof typeof asked} */ (kind)];

  for (const [name, { use, neutral, ignored }] of Object.entries(table)) {
    if (["messages", "prompt", "role"].includes(name)) continue;
    test(`${kind}: ${name}: what asks for nothing passes, as if it were left out`, () => {
      const values = of(NEUTRAL, name);
      assert.ok(use || values.length > 0 || (neutral?.length === 0 && !ignored), "the table's neutral values are not tested");
      const nothing = name === "content" ? [] : [null, undefined];
      for (const value of [...nothing, ...values]) assert.deepEqual(ask({ [name]: value }), plain, JSON.stringify(value));
    });
    if (use || ignored) continue;
    test(`${kind}: ${name}: what cannot be done is refused by name`, () => {
      const values = of(REFUSED, name);
      assert.ok(values.length > 0, "no refusal of it is tested");
      for (const value of values) {
        assert.throws(() => ask({ [name]: value }), (error) => {
          assert.deepEqual([error.name, error.code, error.field], ["OptionsError", "options", field(name)]);
          assert.match(error.message, /(is not supported|can only be .*): .{10}/);
          return true;
        });
      }
    });
  }
}

test("the README has every field", () => {
  const read = (/** @type {string} */ name) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
  const readme = read("README.md");
  const names = new Set([...Object.keys(CHAT), ...Object.keys(TEXT), ...Object.keys(MESSAGE), ...Object.keys(EMBEDDING)]);
  assert.deepEqual([...names].filter((name) => !readme.includes(`\`${name}\``)), []);
});

test("a request goes to the engine as it is meant", () => {
  const generate = (/** @type {object} */ more) => JSON.parse(JSON.stringify(text(more).generate));
  assert.deepEqual(generate({}), {});
  assert.deepEqual(generate({ max_tokens: null, temperature: null, top_k: null, top_p: null, seed: null, stop: null }), {});
  assert.deepEqual(generate({ stop: "x", max_completion_tokens: 3 }), { stop: ["x"], max_tokens: 3 });
  assert.deepEqual(generate({ max_tokens: null, max_completion_tokens: 3 }), { max_tokens: 3 });
  // The engine limits the number of candidates by itself.
  for (const top_k of [0, 40, 64, 65, 100, 2 ** 32 - 1]) assert.deepEqual(generate({ top_k }), { top_k });
  assert.deepEqual(generate({ top_p: 1 }), { top_p: 1 });
  // Only the likeliest token: the engine requires more than 0.
  assert.deepEqual(generate({ top_p: 0 }), { top_p: 2 ** -24 });
});

test("helpers of OpenAI's client set strict on every function: it may be true, and the model is not told", () => {
  const asked = (/** @type {object} */ more, tool_choice = "auto") => {
    const tool = { type: "function", function: { name: "f", ...more } };
    return JSON.stringify(chat({ tools: [tool], tool_choice }).generate.chat);
  };
  for (const strict of [true, false, null]) {
    for (const choice of ["auto", "required"]) assert.equal(asked({ strict }, choice), asked({}, choice));
  }
});

test("what a client has read of a call may come back with it", () => {
  const call = (/** @type {object} */ more) => ({ id: "1", type: "function", function: { name: "f", arguments: "{}", ...more } });
  assert.deepEqual(turn({ tool_calls: [call({ parsed_arguments: { a: 1 } })] }), turn({ tool_calls: [call({ parsed_arguments: null })] }));
});

test("what makes no sense is refused, and the field is named", () => {
  /** @type {[(more: object) => unknown, any, string][]} */
  const cases = [
    [completionRequest, {}, "prompt"],
    [text, { prompt: 5 }, "prompt"],
    [text, { prompt: [1, -1] }, "prompt[1]"],
    [text, { prompt: ["one", "two"] }, "prompt"],
    [text, { prompt: [[1], [2]] }, "prompt"],
    [text, { prompt: [1, "two"] }, "prompt[1]"],
    [text, { prompt: [[["one"]]] }, "prompt[0][0]"],
    [text, { prompt: { length: 1e12 } }, "prompt"],
    [text, { max_tokens: 0 }, "max_tokens"],
    [text, { overflow: "truncate" }, "overflow"],
    [text, { keep: -1 }, "keep"],
    [text, { max_tokens: 1.5 }, "max_tokens"],
    [text, { max_tokens: "5" }, "max_tokens"],
    [text, { temperature: NaN }, "temperature"],
    [text, { top_p: 1.5 }, "top_p"],
    [text, { top_k: -1 }, "top_k"],
    [text, { seed: 2 ** 60 }, "seed"],
    [text, { stop: [""] }, "stop"],
    [text, { fetch_interval: 65 }, "fetch_interval"],
    [text, { signal: {} }, "signal"],
    [text, { stream: "yes" }, "stream"],
    [text, { n: 0 }, "n"],
    [text, { n: 129 }, "n"],
    [text, { n: "1" }, "n"],
    [text, { logprobs: true }, "logprobs"],
    [text, { logprobs: 21 }, "logprobs"],
    [chat, { logprobs: 5 }, "logprobs"],
    [chat, { logprobs: true, top_logprobs: 21 }, "top_logprobs"],
    [chat, { logprobs: false, top_logprobs: 1 }, "top_logprobs"],
    [chat, { top_logprobs: 1 }, "top_logprobs"],
    [text, { maxTokens: 2 }, "maxTokens"],
    [text, { messages }, "messages"],
    [text, { tools: [] }, "tools"],
    [text, { stream_options: { x: 1 } }, "stream_options.x"],
    [chat, { messages: [] }, "messages"],
    [chat, { messages: null }, "messages"],
    [chat, { messages: "hi" }, "messages"],
    [chat, { messages: ["hi"] }, "messages[0]"],
    [chat, { messages: [{ content: "hi" }] }, "messages[0].role"],
    [chat, { messages: [{ role: "", content: "hi" }] }, "messages[0].role"],
    [chat, { messages: [...messages, { role: "user", content: null }] }, "messages[1].content"],
    [chat, { messages: [{ role: "user", content: 5 }] }, "messages[0].content"],
    [chat, { messages: [{ role: "user", content: "hi", colour: "red" }] }, "messages[0].colour"],
    [chat, { messages: [{ role: "user", content: [{ type: "image_url" }] }] }, "messages[0].content[0].type"],
    [chat, { messages: [{ role: "user", content: [{ image_url: {} }] }] }, "messages[0].content[0].image_url"],
    [chat, { messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages[0].content[0].text"],
    [chat, { messages: [{ role: "user", content: [{ text: "hi" }] }] }, "messages[0].content[0].type"],
    [chat, { prompt: "a" }, "prompt"],
    [chat, { toString: 1 }, "toString"],
    [(more) => chatRequest({ messages }, more), { signal: {} }, "signal"],
    [(more) => chatRequest({ messages }, more), { timeout: 100 }, "timeout"],
    [(more) => chatRequest({ messages }, more), { sginal: null }, "sginal"],
  ];
  for (const [ask, request, field] of cases) {
    assert.throws(() => ask(request), { name: "OptionsError", code: "options", field }, JSON.stringify(request));
  }
  for (const nothing of [undefined, null, 5, []]) {
    assert.throws(() => chatRequest(nothing), { name: "OptionsError", field: "request" });
  }
});

test("an answer that was given before can be part of a conversation", () => {
  for (const more of [{}, { content: null }, { content: null, refusal: null, tool_calls: [], annotations: [] }]) {
    const { prompt } = chatRequest({ messages: [...messages, { role: "assistant", ...more }] });
    assert.deepEqual(prompt, { messages: [...messages, { role: "assistant", content: "" }] });
  }
});

test("parts of text are one text", () => {
  const content = [{ type: "text", text: "h" }, { type: "text", text: "i", prompt_cache_breakpoint: {} }];
  assert.deepEqual(chatRequest({ messages: [{ role: "user", content }] }).prompt, { messages });
});

test("a prompt is one text or its token ids", () => {
  for (const prompt of ["", null]) assert.deepEqual(text({ prompt }).prompt, { text: "" });
  assert.deepEqual(text({ prompt: ["a"] }).prompt, { text: "a" });
  for (const prompt of [[1, 2], [[1, 2]], Uint32Array.of(1, 2)]) {
    assert.deepEqual(text({ prompt }).prompt, { tokens: Uint32Array.of(1, 2) });
  }
});

test("a wrong request rejects, or throws at once where a stream is asked for", async () => {
  const never = () => assert.fail("it was run");
  for (const [api, request] of /** @type {const} */ ([
    [chatCompletions(never, never, "m"), { messages, n: 0 }],
    [completions(never, never, "m"), { prompt: "a", n: 0 }],
  ])) {
    await assert.rejects(api.create(/** @type {any} */ (request)), { name: "OptionsError", field: "n" });
    assert.throws(() => api.create(/** @type {any} */ ({ ...request, stream: true })), { name: "OptionsError", field: "n" });
  }
});

test("what changes the chances of tokens goes to the engine, unless it changes nothing", () => {
  const { generate } = chat({ presence_penalty: 0.5, frequency_penalty: 0, min_p: 0.05, logit_bias: { 7: -100, 9: 1.5 } });
  assert.deepEqual(generate.adjust, { presence_penalty: 0.5, min_p: 0.05, logit_bias: [[7, -100], [9, 1.5]] });
  assert.deepEqual(text({ repetition_penalty: 1.3 }).generate.adjust, { repetition_penalty: 1.3 });
  for (const logit_bias of [{ a: 1 }, { "-1": 1 }, { 1.5: 1 }, { 5: "1" }, { 5: 101 }, { 5: NaN }]) {
    assert.throws(() => chat({ logit_bias }), /logit_bias\./);
  }
  const many = Object.fromEntries(Array.from({ length: 1025 }, (_, id) => [id, 1]));
  assert.throws(() => chat({ logit_bias: many }), /1024 tokens/);
});

test("log probabilities are asked for, with so many of the likeliest tokens", () => {
  assert.equal(chat({ logprobs: true }).generate.log_probs, 0);
  assert.equal(chat({ logprobs: true, top_logprobs: 20 }).generate.log_probs, 20);
  assert.equal(text({ logprobs: 0 }).generate.log_probs, 0);
  assert.equal(text({ logprobs: 5 }).generate.log_probs, 5);
  for (const none of [chat({ top_logprobs: 0 }), text({ logprobs: false }), text({})]) {
    assert.equal("log_probs" in none.generate, false);
  }
});

test("tools, what the template is told, and turns with calls go to the engine", () => {
  const tool = { type: "function", function: { name: "f", description: "d", parameters: { type: "object" } } };
  assert.deepEqual(chat({ tools: [tool] }).generate.chat, { tools: [tool] });
  assert.deepEqual(chat({ tools: [tool], tool_choice: "auto", parallel_tool_calls: false }).generate.chat, { tools: [tool], one_call: true });
  assert.deepEqual(chat({ tools: [tool], tool_choice: "required", parallel_tool_calls: true }).generate.chat, { tools: [tool], one_call: false, demanded: true });
  assert.deepEqual(chat({ tools: [tool], tool_choice: "none" }).generate.chat, {});
  const variables = { enable_thinking: false, reasoning_effort: "low" };
  assert.deepEqual(chat({ chat_template_kwargs: { enable_thinking: false }, reasoning_effort: "low" }).generate.chat, { variables });
  const call = { id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } };
  const turns = [{ role: "user", content: "?" }, { role: "assistant", reasoning_content: "Hm.", tool_calls: [call] }, { role: "tool", tool_call_id: "a", content: "2", name: "f" }];
  const { prompt } = chatRequest({ messages: turns });
  assert.deepEqual(prompt, { messages: [turns[0], { ...turns[1], content: "" }, turns[2]] });
  assert.throws(() => chatRequest({ messages: [{ role: "tool", content: "2" }] }), { field: "messages[0].tool_call_id" });
});

test("formats and calls that are demanded go beside what the engine gets", () => {
  const tools = ["f", "g"].map((name) => ({ type: "function", function: { name } }));
  const named = (/** @type {string} */ name) => ({ type: "function", function: { name } });
  assert.deepEqual(chat({ tools, tool_choice: "required" }).demanded, { name: undefined });
  assert.deepEqual(chat({ tools, tool_choice: named("g") }).demanded, { name: "g" });
  const format = { type: "json_schema", json_schema: { name: "a", schema: {} } };
  assert.deepEqual(chat({ response_format: format }).wanted, format);
  for (const tool_choice of ["required", named("h"), "f", { type: "function" }, { type: "allowed_tools" }]) {
    assert.throws(() => chat({ tools: tool_choice === "required" ? [] : tools, tool_choice }), { code: "options" });
  }
  const both = { tools, tool_choice: "required", response_format: { type: "json_object" } };
  assert.throws(() => chat(both), { field: "response_format" });
  assert.throws(() => chat({ response_format: { type: "xml" } }), { field: "response_format.type" });
});

test("the chunk of the usage is for streams that ask for it", () => {
  const usage = (/** @type {object} */ more) => chat(more).usage;
  const stream_options = { include_usage: true };
  assert.deepEqual([usage({ stream: true, stream_options }), usage({ stream: true }), usage({ stream_options })], [true, false, false]);
});
