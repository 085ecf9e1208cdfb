import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { afterEach, test } from "node:test";
import { ContextError, OptionsError } from "../../src/common/errors.js";
import { textLogprobs } from "../../src/openai/logprobs.js";
import { script, seen } from "../doubles/bindings.js";
import { engine, reset } from "../doubles/engine.js";

/** @type {import("../../src/index.js").AnyGpu[]} */
const engines = [];
const open = async () => {
  const opened = await engine();
  engines.push(opened);
  return opened;
};
afterEach(async () => {
  await Promise.all(engines.splice(0).map((opened) => opened.dispose()));
  reset();
});

const messages = [{ role: "user", content: "hi" }];

const CACHED = { prompt_tokens_details: { cached_tokens: 1, audio_tokens: 0 } };
const DRAFTS = { completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 3, rejected_prediction_tokens: 2 } };

/** @template T @param {AsyncIterable<T>} stream @returns {Promise<T[]>} */
async function collect(stream) {
  const all = [];
  for await (const part of stream) all.push(part);
  return all;
}

test("a chat completion has the shape that clients know", async () => {
  const { chat } = await open();
  const begun = Date.now() / 1000;
  const answer = await chat.completions.create({ messages, max_tokens: 4, model: "mine" });
  const { id, created, timings, ...rest } = answer;
  assert.match(id, /^chatcmpl-/);
  assert.ok(created >= Math.floor(begun) && created <= Date.now() / 1000);
  assert.ok(timings.ttft_ms > 0);
  assert.equal(timings.prefill_ms, 2);
  assert.deepEqual(rest, {
    object: "chat.completion",
    model: "mine",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "abcd", refusal: null },
        logprobs: null,
        finish_reason: "length",
      },
    ],
    usage: { prompt_tokens: 8, completion_tokens: 4, total_tokens: 12, cached_tokens: 1, ...CACHED, ...DRAFTS },
    stats: { steps: 1, dispatches: 5 },
    tokens: [97, 98, 99, 100],
    overflow: null,
  });
});

test("a text that outgrows the context says so, in the middle and at the end", async () => {
  const { chat, completions } = await open();
  const shift = /** @type {const} */ ({ overflow: "shift", max_tokens: 5 });
  const full = { policy: "shift", dropped_messages: 0, dropped_tokens: 2, times: 1, ms: 1 };
  const parts = await collect(completions.create({ prompt: "p", ...shift, stream: true }));
  assert.equal(parts.map((part) => part.choices[0].text).join(""), "abcde");
  const told = parts.map((part) => part.overflow ?? null);
  assert.deepEqual(told, [null, null, null, full, null, null, full]);
  assert.deepEqual((await completions.create({ prompt: "p", ...shift })).overflow, full);

  const turns = [{ role: "user", content: "before" }, { role: "assistant", content: "b" }, ...messages];
  const chunks = await collect(chat.completions.create({ messages: turns, ...shift, max_tokens: 2, stream: true }));
  const left = { policy: "shift", dropped_messages: 1, dropped_tokens: 0, times: 0, ms: 0 };
  assert.deepEqual(chunks.map((chunk) => chunk.overflow), [undefined, left, undefined, undefined, left]);
  assert.deepEqual(chunks[1].choices[0].delta, {});
  assert.equal(JSON.parse(seen.options.at(-1) ?? "").usual_keep, 2);
  const answer = await chat.completions.create({ messages: turns, ...shift });
  assert.deepEqual(answer.overflow, { ...full, dropped_messages: 1 });
  assert.equal(answer.usage.prompt_tokens, "assistant:b;user:hi;".length);
});

test("a streamed chat completion comes in chunks, the last with the outcome", async () => {
  const { chat } = await open();
  const parts = await collect(chat.completions.create({ messages, stream: true, max_tokens: 2 }));
  assert.deepEqual(
    parts.map((part) => [part.object, part.choices[0].delta, part.choices[0].finish_reason, part.token]),
    [
      ["chat.completion.chunk", { role: "assistant", content: "", refusal: null }, null, undefined],
      ["chat.completion.chunk", { content: "a" }, null, 97],
      ["chat.completion.chunk", { content: "b" }, null, 98],
      ["chat.completion.chunk", {}, "length", undefined],
    ],
  );
  assert.equal(new Set(parts.map((part) => part.id)).size, 1);
  assert.equal(parts[0].usage, undefined);
  const counted = { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10, cached_tokens: 1, ...CACHED, ...DRAFTS };
  assert.deepEqual(parts[3].usage, counted);
  assert.deepEqual(parts[3].tokens, [97, 98]);
  assert.equal(parts[3].model, "double");
});

/** Parts of an answer with reasoning, text and calls; some are certain only at its end. */
const PARTS = [[{ thought: "Hm." }], [{ said: "I " }, { said: "look." }], [], [{ call: { name: "f", arguments: '{"x":1}' } }], [{ call: { name: "g", arguments: "{}" } }]];

test("answers are those of the server", async () => {
  // Chunks are made here and not in the module, which they outlive. The server's test reads the same file.
  const known = JSON.parse(await readFile(new URL("../../../openai/tests/answers.json", import.meta.url), "utf8"));
  const bare = (/** @type {unknown} */ value) => JSON.parse(JSON.stringify(value, (key, all) => (key === "tool_calls" ? all.map(withoutId) : all)));
  const withoutId = (/** @type {{ id?: string }} */ { id, ...rest }) => rest;
  const { chat, completions } = await open();
  const tools = ["f", "g"].map((name) => ({ type: "function", function: { name } }));
  const requests = {
    chat: (/** @type {object} */ how) => chat.completions.create({ messages, tools, max_tokens: known.chat.parts.length, logprobs: true, ...how }),
    text: (/** @type {object} */ how) => completions.create({ prompt: "p", max_tokens: 3, logprobs: 2, ...how }),
  };
  for (const [name, create] of Object.entries(requests)) {
    script.parts = known[name].parts?.map((/** @type {object} */ part) => [part]) ?? null;
    /** @type {any} */
    const chunks = create({ stream: true });
    const choices = (await collect(chunks)).flatMap((/** @type {any} */ chunk) => chunk.choices);
    assert.deepEqual(bare(choices), known[name].choices, name);
    /** @type {any} */
    const whole = await create({});
    assert.deepEqual([bare(whole.choices), whole.usage], [[known[name].whole], known[name].usage], name);
  }
});

test("arguments come in pieces, of which the first has the call's name", async () => {
  script.parts = [[{ call: { name: "f", arguments: "" } }, { arguments: '{"x":' }], [{ arguments: "1" }, { arguments: "}" }, { call: { name: "g", arguments: "" } }], [{ arguments: "{}" }]];
  const { chat } = await open();
  const tools = [{ type: "function", function: { name: "f" } }, { type: "function", function: { name: "g" } }];
  const { choices: [{ message }] } = await chat.completions.create({ messages, tools, max_tokens: 3 });
  assert.deepEqual(message.tool_calls?.map((call) => call.function), [{ name: "f", arguments: '{"x":1}' }, { name: "g", arguments: "{}" }]);
  const pieces = await collect(chat.completions.create({ messages, tools, stream: true, max_tokens: 3 }));
  const deltas = pieces.flatMap(({ choices: [{ delta }] }) => delta.tool_calls ?? []);
  assert.deepEqual(deltas.map(({ index, type, function: called }) => [index, type, called]), [
    [0, "function", { name: "f", arguments: '{"x":' }],
    [0, undefined, { arguments: "1}" }],
    [1, "function", { name: "g", arguments: "" }],
    [1, undefined, { arguments: "{}" }],
  ]);
  assert.deepEqual(deltas.map(({ id }) => id !== undefined), [true, false, true, false]);
});

test("thoughts, words and calls are told apart, whole and in pieces", async () => {
  script.parts = PARTS;
  const { chat } = await open();
  const tools = [{ type: "function", function: { name: "f" } }];
  const { choices: [{ message, finish_reason }], usage } = await chat.completions.create({ messages, tools, max_tokens: 4 });
  const [first, second] = message.tool_calls ?? [];
  assert.deepEqual({ ...message, tool_calls: [] }, { role: "assistant", content: "I look.", refusal: null, reasoning_content: "Hm.", tool_calls: [] });
  assert.deepEqual([first, second].map((call) => [call?.type, call?.function]), [["function", { name: "f", arguments: '{"x":1}' }], ["function", { name: "g", arguments: "{}" }]]);
  assert.ok([first, second].every((call) => /^[a-z2-9]{9}$/.test(call?.id ?? "")) && first?.id !== second?.id);
  assert.deepEqual([finish_reason, usage.completion_tokens_details.reasoning_tokens], ["tool_calls", 1]);
  assert.deepEqual(JSON.parse(seen.options.at(-1) ?? "").chat, { tools });
  const pieces = await collect(chat.completions.create({ messages, tools, stream: true, max_tokens: 4 }));
  const deltas = pieces.map(({ choices: [{ delta }] }) => delta);
  const ids = deltas.flatMap((delta) => delta.tool_calls ?? []).map(({ id }) => id);
  assert.deepEqual(deltas, [
    { role: "assistant", content: "", refusal: null },
    { reasoning_content: "Hm." },
    { content: "I look." },
    {},
    { tool_calls: [{ index: 0, id: ids[0], ...first && { type: first.type, function: first.function } }] },
    { tool_calls: [{ index: 1, id: ids[1], ...second && { type: second.type, function: second.function } }] },
    {},
  ]);
  assert.equal(pieces.at(-1)?.choices[0].finish_reason, "tool_calls");
  assert.deepEqual(pieces.map(({ token }) => token), [undefined, 97, 98, 99, 100, undefined, undefined]);
  // An answer that only calls functions has no content.
  script.parts = [[], [PARTS[3][0]]];
  const only = await chat.completions.create({ messages, tools, max_tokens: 2 });
  assert.equal(only.choices[0].message.content, null);
  // The next turn repeats all of it.
  const { tool_calls = [] } = message;
  await chat.completions.create({ messages: [...messages, message, { role: "tool", tool_call_id: tool_calls[0].id, content: "2" }], max_tokens: 1 });
});

test("the usage comes as OpenAI sends it, if it is asked for", async () => {
  const { chat, completions } = await open();
  const asked = { stream: /** @type {const} */ (true), max_tokens: 2, stream_options: { include_usage: true } };
  for (const [first, ...parts] of [
    await collect(chat.completions.create({ messages, ...asked })),
    await collect(completions.create({ prompt: "12345678", ...asked, max_tokens: 3 })),
  ]) {
    assert.equal(first.usage, null);
    assert.deepEqual(parts.map((part) => part.choices.length), [1, 1, 1, 0]);
    const [, , last, counted] = parts;
    assert.deepEqual(parts.map((part) => part.usage && part.usage.prompt_tokens), [null, null, null, 8]);
    assert.equal(last.choices[0].finish_reason, "length");
    assert.deepEqual(counted.usage?.prompt_tokens_details, { cached_tokens: 1, audio_tokens: 0 });
    assert.deepEqual([last.tokens, counted.tokens?.slice(0, 2)], [undefined, [97, 98]]);
  }
});

test("several answers have seeds one after the other", async () => {
  const { chat, completions } = await open();
  seen.options.length = 0;
  const asked = { max_tokens: 2, seed: 5, n: 3 };
  const { choices, usage, tokens, stats } = await completions.create({ prompt: "p", ...asked });
  assert.deepEqual(choices.map(({ index, text }) => [index, text]), [[0, "fg"], [1, "gh"], [2, "hi"]]);
  assert.deepEqual(seen.options.map((json) => JSON.parse(json).seed), ["5", "6", "7"]);
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens], [1, 6, 7]);
  assert.deepEqual(usage.completion_tokens_details, { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 9, rejected_prediction_tokens: 6 });
  assert.deepEqual([tokens.length, stats.steps, stats.dispatches], [6, 3, 15]);

  const parts = await collect(chat.completions.create({ messages, ...asked, n: 2, stream: true }));
  const of = (/** @type {number} */ index) => parts.flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
  for (const [index, text] of [[0, "fg"], [1, "gh"]]) {
    const all = of(Number(index));
    assert.equal(all.map(({ delta }) => delta.content ?? "").join(""), text);
    assert.deepEqual(all.map(({ delta }) => delta.role), ["assistant", undefined, undefined, undefined]);
    assert.deepEqual(all.map(({ finish_reason }) => finish_reason), [null, null, null, "length"]);
  }
  assert.deepEqual(parts.map(({ usage }) => usage?.completion_tokens), [...new Array(7).fill(undefined), 4]);
});

test("several prompts have answers one after the other, and each counts once", async () => {
  const { completions } = await open();
  const { choices, usage } = await completions.create({ prompt: ["p", "four"], max_tokens: 2, seed: 5, n: 2 });
  assert.deepEqual(choices.map(({ index, text }) => [index, text]), [[0, "fg"], [1, "gh"], [2, "fg"], [3, "gh"]]);
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [5, 8]);
  const parts = await collect(completions.create({ prompt: ["p", "four"], max_tokens: 2, stream: true }));
  assert.deepEqual(new Set(parts.map(({ choices }) => choices[0].index)), new Set([0, 1]));
  assert.deepEqual(parts.at(-1)?.usage?.prompt_tokens, 5);
});

test("an error ends all of several answers, and an abort does", async () => {
  const { completions } = await open();
  script.generateThrows = Object.assign(new Error("the prompt has 9 tokens, the context 4"), { code: "context" });
  await assert.rejects(completions.create({ prompt: "a", n: 3 }), ContextError);
  await assert.rejects(collect(completions.create({ prompt: "a", n: 3, stream: true })), ContextError);
  script.generateThrows = null;
  const begun = seen.generations.filter((what) => what === "begin").length;
  for await (const _ of completions.create({ prompt: "a", n: 3, stream: true, max_tokens: 100_000 })) break;
  assert.equal((await completions.create({ prompt: "a", max_tokens: 2 })).choices[0].text, "ab");
  assert.equal(seen.generations.filter((what) => what === "begin").length, begun + 2);
});

const half = { token: "\uFFFD", logprob: -1.5, bytes: [0xe2, 0x80] };
const likely = (/** @type {string} */ token, /** @type {number} */ top) => {
  const chosen = { token, logprob: -0.5, bytes: [token.charCodeAt(0)] };
  return { ...chosen, top_logprobs: [chosen, half].slice(0, top) };
};

test("log probabilities of a chat have OpenAI's shape", async () => {
  const { chat } = await open();
  const asked = { messages, max_tokens: 2, logprobs: true, top_logprobs: 2 };
  const { choices } = await chat.completions.create(asked);
  assert.deepEqual(choices[0].logprobs, { content: [likely("a", 2), likely("b", 2)], refusal: null });
  const none = await chat.completions.create({ ...asked, top_logprobs: 0 });
  assert.deepEqual(none.choices[0].logprobs?.content, [likely("a", 0), likely("b", 0)]);
  const parts = await collect(chat.completions.create({ ...asked, stream: true }));
  const told = parts.map((part) => part.choices[0].logprobs);
  assert.deepEqual(told, [null, { content: [likely("a", 2)], refusal: null }, { content: [likely("b", 2)], refusal: null }, null]);
});

test("log probabilities of a text have OpenAI's shape", async () => {
  const { completions } = await open();
  const asked = { prompt: "p", max_tokens: 2, logprobs: 2 };
  const [a, b] = [{ a: -0.5, "bytes:\\xe2\\x80": -1.5 }, { b: -0.5, "bytes:\\xe2\\x80": -1.5 }];
  const { choices } = await completions.create(asked);
  const all = { tokens: ["a", "b"], token_logprobs: [-0.5, -0.5], top_logprobs: [a, b], text_offset: [0, 1] };
  assert.deepEqual(choices[0].logprobs, all);
  const parts = await collect(completions.create({ ...asked, stream: true }));
  assert.deepEqual(parts.map((part) => part.choices[0].logprobs), [
    { tokens: ["a"], token_logprobs: [-0.5], top_logprobs: [a], text_offset: [0] },
    { tokens: ["b"], token_logprobs: [-0.5], top_logprobs: [b], text_offset: [1] },
    null,
  ]);
  const one = await completions.create({ ...asked, logprobs: 0 });
  assert.deepEqual(one.choices[0].logprobs?.top_logprobs, [{ a: -0.5 }, { b: -0.5 }]);
});

test("tokens that are parts of a character begin where it begins", () => {
  const bytes = [[0x61], [0xe2, 0x80], [0x99], [0xf0, 0x9f, 0x98, 0x80], [0x62]];
  const tokens = bytes.map((bytes) => ({ token: "\uFFFD", logprob: -1, bytes, top_logprobs: [] }));
  const told = textLogprobs();
  assert.deepEqual(tokens.flatMap((token) => told([token]).text_offset), [0, 1, 1, 2, 4]);
});

test("a stream becomes lines of JSON, and cancelling those ends the generation", async () => {
  const { chat } = await open();
  const asked = { messages, stream: /** @type {const} */ (true), max_tokens: 2 };
  const text = await new Response(chat.completions.create(asked).toReadableStream()).text();
  const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.ok(text.endsWith("}\n"));
  assert.deepEqual(lines.map(({ choices }) => choices[0].delta.content), ["", "a", "b", undefined]);
  const reader = chat.completions.create({ ...asked, max_tokens: 100_000 }).toReadableStream().getReader();
  await reader.read();
  await reader.cancel();
  const reason = new Error("enough");
  const failing = chat.completions.create({ ...asked, signal: AbortSignal.abort(reason) }).toReadableStream();
  await assert.rejects(failing.getReader().read(), reason);
  assert.equal((await chat.completions.create({ messages, max_tokens: 1 })).choices[0].message.content, "a");
});

test("a stream's controller ends it without an error", async () => {
  const { chat, completions } = await open();
  const first = chat.completions.create({ messages, stream: true });
  const roles = [];
  for await (const { choices } of first) roles.push(choices[0].delta.role, first.controller.abort());
  assert.deepEqual(roles, ["assistant", undefined]);
  const asked = { prompt: "a", stream: /** @type {const} */ (true), max_tokens: 100_000 };
  const stream = completions.create(asked);
  let pieces = 0;
  for await (const _ of stream) if (++pieces === 2) stream.controller.abort();
  assert.equal(pieces, 2);
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
  // Also while it waits for the next piece.
  const waiting = completions.create(asked);
  await waiting.next();
  const next = waiting.next();
  const after = waiting.next();
  await waiting.return();
  await next;
  assert.equal((await after).done, true);
  assert.equal((await completions.create({ prompt: "a", max_tokens: 2 })).choices[0].text, "ab");
});

test("plain completions take text or tokens", async () => {
  const { completions } = await open();
  const answer = await completions.create({ prompt: "abc", max_tokens: 1 });
  assert.equal(answer.object, "text_completion");
  assert.deepEqual(answer.choices, [{ index: 0, text: "a", logprobs: null, finish_reason: "length" }]);
  assert.equal((await completions.create({ prompt: [1, 2, 3, 4], max_tokens: 1 })).usage.prompt_tokens, 4);
  const parts = await collect(completions.create({ prompt: Uint32Array.of(1), stream: true, max_tokens: 2 }));
  assert.deepEqual(parts.map((part) => part.choices[0].text), ["a", "b", ""]);
  assert.deepEqual(parts.map((part) => part.choices[0].finish_reason), [null, null, "length"]);
});

test("a request goes to the engine as it is meant, and nothing else of it", async () => {
  const { completions } = await open();
  seen.options.length = 0;
  const sampling = { temperature: 0.5, top_k: 40, top_p: 0.9, seed: 7, ignore_eos: true, fetch_interval: 2 };
  await completions.create({ prompt: "", max_completion_tokens: 2, stop: "x", model: "m", n: 1, ...sampling });
  assert.deepEqual(JSON.parse(seen.options[0]), { ...sampling, seed: "7", max_tokens: 2, stop: ["x"] });
});

test("nothing is computed before the first piece is asked for", async () => {
  const { completions } = await open();
  const stream = completions.create({ prompt: "a", stream: true });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(seen.generations, []);
  await stream.return();
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
  assert.deepEqual(seen.generations, []);
});

test("leaving the loop ends the generation, and the engine stays usable", async () => {
  const { completions } = await open();
  let pieces = 0;
  for await (const _ of completions.create({ prompt: "a", stream: true, max_tokens: 100_000 })) if (++pieces === 3) break;
  const answer = await completions.create({ prompt: "a", max_tokens: 2 });
  assert.equal(answer.choices[0].text, "ab");
  assert.equal(seen.generations.length, 4);
});

test("an abort throws its reason, early or late, and the engine stays usable", async () => {
  const { completions } = await open();
  const reason = new Error("enough");
  const early = AbortSignal.abort(reason);
  await assert.rejects(completions.create({ prompt: "a", signal: early }), reason);
  await assert.rejects(collect(completions.create({ prompt: "a", stream: true, signal: early })), reason);
  assert.deepEqual(seen.generations, []);
  const controller = new AbortController();
  let pieces = 0;
  const reading = async () => {
    const request = { prompt: "a", stream: /** @type {const} */ (true), max_tokens: 100_000, signal: controller.signal };
    for await (const _ of completions.create(request)) if (++pieces === 2) controller.abort(reason);
  };
  await assert.rejects(reading(), reason);
  assert.equal(pieces, 2);
  for (const signal of [early, AbortSignal.any([early])]) {
    await assert.rejects(completions.create({ prompt: "a" }, { signal }), reason);
    await assert.rejects(collect(completions.create({ prompt: "a", stream: true }, { signal })), reason);
    await assert.rejects(completions.create({ prompt: "a", signal: new AbortController().signal }, { signal }), reason);
  }
  const late = new AbortController();
  const whole = completions.create({ prompt: "a", max_tokens: 100_000, signal: late.signal });
  setTimeout(() => late.abort(), 20);
  await assert.rejects(whole, { name: "AbortError" });
  const second = new AbortController();
  const other = completions.create({ prompt: "a", max_tokens: 100_000 }, { signal: second.signal });
  setTimeout(() => second.abort(reason), 20);
  await assert.rejects(other, reason);
  assert.equal((await completions.create({ prompt: "a", max_tokens: 1 })).choices[0].text, "a");
});

test("generations of one session, or without one, run one after the other", async () => {
  const { completions } = await open();
  for (const options of [{}, { session: "mine" }]) {
    seen.generations.length = 0;
    await Promise.all([1, 2, 3].map(() => completions.create({ prompt: "a", max_tokens: 5 }, options)));
    const turns = seen.generations.filter((what) => what !== "pause");
    assert.deepEqual(turns, ["begin", "end", "begin", "end", "begin", "end"]);
  }
});

test("generations of several sessions take turns, and each has the text that it has alone", async () => {
  const { completions, sessions } = await open();
  /** @type {string[]} */
  const told = [];
  const texts = ["a", "b", "c"].map(async (session) => {
    let text = "";
    for await (const { choices } of completions.create({ prompt: session, max_tokens: 6, stream: true }, { session })) {
      if (choices[0].text !== "") told.push(session);
      text += choices[0].text;
    }
    return text;
  });
  assert.deepEqual(await Promise.all(texts), ["abcdef", "abcdef", "abcdef"]);
  const starts = seen.generations.filter((what) => what === "begin").length;
  assert.deepEqual([starts, seen.generations.indexOf("end") > seen.generations.lastIndexOf("begin")], [3, true]);
  // Nobody has all its tokens before another one has any.
  assert.deepEqual(new Set(told.slice(0, 6)), new Set(["a", "b", "c"]));
  assert.deepEqual((await sessions.list()).map(({ name }) => name).sort(), ["a", "b", "c"]);
});

test("an error of the engine has its class in both forms, and the engine stays usable", async () => {
  const { completions } = await open();
  script.generateThrows = Object.assign(new Error("the prompt has 9 tokens, the context 4"), { code: "context" });
  await assert.rejects(completions.create({ prompt: "a" }), ContextError);
  await assert.rejects(collect(completions.create({ prompt: "a", stream: true })), (error) => {
    assert.ok(error instanceof ContextError);
    return error.code === "context" && /9 tokens/.test(error.message);
  });
  script.generateThrows = null;
  await completions.create({ prompt: "a" });
});

test("texts become tokens and back", async () => {
  const opened = await open();
  assert.deepEqual(await opened.encode("ab"), Uint32Array.of(97, 98));
  assert.equal((await opened.encode(messages)).length, 8);
  assert.equal(await opened.decode([97, 98]), "ab");
  await assert.rejects(opened.decode(/** @type {any} */ ([1.5])), { name: "OptionsError", field: "tokens[0]" });
  await assert.rejects(opened.encode(/** @type {any} */ (5)), OptionsError);
});

test("embeddings have the shape that clients know", async () => {
  const { embeddings } = await open();
  const one = await embeddings.create({ input: "abc", model: "mine" });
  assert.deepEqual(one, {
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: [3, 1, 0.5] }],
    model: "mine",
    usage: { prompt_tokens: 3, total_tokens: 3 },
  });
  const several = await embeddings.create({ input: ["a", "bc"], dimensions: 2, normalize: false });
  assert.deepEqual(several.data, [
    { object: "embedding", index: 0, embedding: [1, 0] },
    { object: "embedding", index: 1, embedding: [2, 0] },
  ]);
  assert.deepEqual([several.model, several.usage], ["double", { prompt_tokens: 3, total_tokens: 3 }]);
  const tokens = await embeddings.create({ input: [[1, 2], [3]] });
  assert.deepEqual(tokens.data.map(({ embedding }) => embedding[0]), [2, 1]);
  assert.equal((await embeddings.create({ input: [7, 8, 9, 10] })).data[0].embedding[0], 4);
});

test("embeddings in base64 are the bytes of floats", async () => {
  const { embeddings } = await open();
  const { data } = await embeddings.create({ input: "abc", encoding_format: "base64" });
  const bytes = Buffer.from(data[0].embedding, "base64");
  assert.deepEqual([0, 4, 8].map((at) => bytes.readFloatLE(at)), [3, 1, 0.5]);
});

test("requests for embeddings that make no sense are refused, and an abort ends them", async () => {
  const { embeddings } = await open();
  for (const request of [{}, { input: 5 }, null]) await assert.rejects(embeddings.create(/** @type {any} */ (request)), OptionsError);
  const controller = new AbortController();
  const aborted = embeddings.create({ input: new Array(500).fill("a") }, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
});
