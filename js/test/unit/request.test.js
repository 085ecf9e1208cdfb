// Tests of requests, as far as the client reads them: the engine's module reads their fields.

import assert from "node:assert/strict";
import { test } from "node:test";
import { OptionsError } from "../../src/common/errors.js";
import { chatCompletions, completions, embeddings } from "../../src/openai/completions.js";
import { given, resumed, written } from "../../src/openai/request.js";

const messages = [{ role: "user", content: "hi" }];

test("a request is an object, and its signal and those beside it are the client's", () => {
  const { signal } = new AbortController();
  const { body, signals, session } = given({ messages, signal, n: null }, { signal, session: "mine", headers: {}, maxRetries: 2 });
  assert.deepEqual(JSON.parse(body), { messages, n: null });
  assert.deepEqual([signals, session], [[signal, signal], "mine"]);
  assert.deepEqual(given({ signal: null }, { signal: null, session: null, timeout: null }), { body: "{}", signals: [], session: undefined });
  for (const nothing of [undefined, null, 5, []]) assert.throws(() => given(nothing), { name: "OptionsError", field: "request" });
  assert.throws(() => given({ signal: {} }), { field: "signal" });
  for (const [options, field] of /** @type {[object, string][]} */ ([[{ signal: {} }, "signal"], [{ timeout: 100 }, "timeout"], [{ sginal: null }, "sginal"], [{ session: "" }, "session"]])) {
    assert.throws(() => given({}, options), { name: "OptionsError", code: "options", field });
  }
  assert.throws(() => resumed("one", { session: "other" }), { field: "session" });
});

test("what JSON has not is refused by its name, not taken for nothing", () => {
  assert.equal(written({ prompt: Uint32Array.of(1, 2), stop: undefined }), '{"prompt":[1,2]}');
  const odd = JSON.parse(written({ temperature: NaN, top_p: Infinity, seed: 5n, stop: () => {} }));
  assert.deepEqual([odd.temperature, odd.top_p, odd.seed], ["number NaN", "number Infinity", "bigint 5"]);
  assert.match(odd.stop, /^function /);
  /** @type {any} */
  const round = {};
  round.self = round;
  assert.throws(() => written(round), OptionsError);
});

test("a wrong request rejects, in a stream with its first chunk, and nothing is run", async () => {
  const never = () => assert.fail("it was run");
  const refused = new OptionsError("n must be an integer from 1 to 128, not 0", { field: "n" });
  const read = async () => {
    throw refused;
  };
  const engine = { read, run: never, recall: never, embed: never, model: "m" };
  for (const [api, request] of /** @type {const} */ ([
    [chatCompletions(engine), { messages, n: 0 }],
    [completions(engine), { prompt: "a", n: 0 }],
  ])) {
    await assert.rejects(api.create(/** @type {any} */ (request)), refused);
    const stream = /** @type {any} */ (api.create(/** @type {any} */ ({ ...request, stream: true })));
    await assert.rejects(stream.next(), refused);
    assert.equal((await stream.next()).done, true);
  }
  await assert.rejects(embeddings(engine).create({ input: "a" }), refused);
});
