/** Tests of an engine that is lost at bad moments, and another that takes over. */

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { AnyGpu } from "../../src/index.js";
import { CrashError, NetworkError } from "../../src/common/errors.js";
import { Rungs, openTwice } from "../../src/engine/recovery.js";
import { script, seen } from "../doubles/bindings.js";
import { connection, reset } from "../doubles/engine.js";

/** @type {ReturnType<typeof connection>[]} */
const links = [];

afterEach(async () => {
  for (const link of links.splice(0)) await link.close().catch(() => {});
  reset();
});

const LOST = Object.assign(new Error("the device was lost (a test)"), { code: "lost" });

/** Returns engines one after the other; `opened` counts them. */
async function engines(/** @type {(count: number) => void} */ onOpen = () => {}) {
  const state = { opened: 0 };
  const open = async (/** @type {string[]} */ without) => {
    state.opened += 1;
    onOpen(state.opened);
    const link = connection();
    links.push(link);
    const facts = await link.client.call("load", { what: new Blob(["model"]), options: {}, engine: { without } });
    return { connection: link, facts };
  };
  const engine = new AnyGpu(await open([]), open);
  return { engine, state };
}

/** Reads a stream, during which something happens after the third chunk. */
async function streamed(/** @type {AnyGpu} */ engine, /** @type {() => void} */ disturb) {
  let [text, chunks] = ["", 0];
  for await (const chunk of engine.completions.create({ prompt: "p", max_tokens: 8, stream: true })) {
    text += chunk.choices[0]?.text ?? "";
    if (++chunks === 3) disturb();
  }
  return text;
}

test("an answer goes on where the device was lost, and the caller is told", async () => {
  const { engine, state } = await engines((count) => count > 1 && (script.generateThrows = null));
  /** @type {object[]} */
  const told = [];
  engine.on("recovered", (event) => told.push(event));
  const text = await streamed(engine, () => (script.generateThrows = LOST));
  assert.equal(text, "abcdefgh");
  assert.deepEqual([state.opened, told.length], [2, 1]);
  const { from, to, reason, ms } = /** @type {any} */ (told[0]);
  assert.deepEqual([from, to, reason], ["cpu", "cpu", LOST.message]);
  assert.ok(ms >= 0);
  const again = JSON.parse(seen.options.at(-1) ?? "");
  assert.deepEqual(again.done, [97, 98, 99]);
});

test("several answers go on where the device was lost, with how likely all of their tokens were", async () => {
  const { engine, state } = await engines((count) => count > 1 && (script.generateThrows = null));
  const texts = ["", ""];
  const tokens = ["", ""];
  let chunks = 0;
  const asked = { prompt: "p", max_tokens: 6, n: 2, logprobs: 0, stream: /** @type {const} */ (true) };
  for await (const { choices: [{ index, text, logprobs }] } of engine.completions.create(asked)) {
    texts[index] += text;
    tokens[index] += logprobs?.tokens.join("") ?? "";
    if (++chunks === 3) script.generateThrows = LOST;
  }
  assert.deepEqual([texts, tokens], [["abcdef", "bcdefg"], ["abcdef", "bcdefg"]]);
  assert.equal(state.opened, 2);
});

test("an answer that has outgrown the context goes on where it was, and says so once", async () => {
  const { engine } = await engines((count) => count > 1 && (script.generateThrows = null));
  const turns = ["user", "assistant", "user"].map((role) => ({ role, content: role }));
  const request = /** @type {const} */ ({ messages: turns, overflow: "shift", max_tokens: 8, stream: true });
  /** @type {unknown[]} */
  const told = [];
  let text = "";
  for await (const chunk of engine.chat.completions.create(request)) {
    text += chunk.choices[0].delta.content ?? "";
    if (chunk.overflow) told.push([chunk.overflow.dropped_messages, chunk.overflow.times]);
    if (text === "abcd") script.generateThrows = LOST;
  }
  assert.equal(text, "abcdefgh");
  assert.deepEqual(told, [[1, 0], [1, 1], [1, 2], [1, 2]]);
});

test("a worker that stops is a loss like any other", async () => {
  const { engine, state } = await engines();
  const { connection: first } = engine._recovery._opened;
  const text = await streamed(engine, () => first.client.fail(new CrashError("the worker stopped; load the model again")));
  assert.equal(text, "abcdefgh");
  assert.equal(state.opened, 2);
});

test("a worker that stops while the model loads gets one successor", async (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const stopped = new CrashError("the engine stopped (a test); load the model again, and report this");
  /** Opens an engine, unless that throws the next of these errors. @param {Error[]} errors @param {AbortSignal} [signal] */
  const attempts = async (errors, signal) => {
    let count = 0;
    const open = async () => {
      if (count++ < errors.length) throw errors[count - 1];
      return "opened";
    };
    const outcome = await openTwice(open, signal).catch((error) => error);
    return [outcome, count];
  };
  assert.deepEqual(await attempts([]), ["opened", 1]);
  assert.deepEqual(await attempts([stopped]), ["opened", 2]);
  assert.match(String(warned.mock.calls[0].arguments[0]), /once more, since the engine stopped \(a test\)/);
  const second = new CrashError("the engine stopped (again)");
  assert.deepEqual(await attempts([stopped, second]), [second, 2]);
  const network = new NetworkError("offline");
  assert.deepEqual(await attempts([network]), [network, 1]);
  assert.deepEqual(await attempts([stopped], AbortSignal.abort()), [stopped, 1]);
  assert.equal(warned.mock.callCount(), 2);
});

test("several calls that notice a loss open one engine", async () => {
  const { engine, state } = await engines();
  engine._recovery._opened.connection.client.fail(new CrashError("the worker stopped; load the model again"));
  const [stats, ids] = await Promise.all([engine.stats(), engine.encode("ab")]);
  assert.equal(stats.dispatches, 1);
  assert.deepEqual([...ids], [97, 98]);
  assert.equal(state.opened, 2);
});

test("losses without a token between them come to an end", async () => {
  const { engine, state } = await engines();
  script.generateThrows = LOST;
  // The third loss leaves out the only rung; the error is that of the loss.
  await assert.rejects(engine.completions.create({ prompt: "p" }), { code: "lost" });
  assert.equal(state.opened, 4);
  assert.equal((await engine.lost).code, "lost");
});

test("a rung that is lost three times is left out, and the next one goes on", async () => {
  script.rungs = ["webgpu", "webgl packed", "cpu"];
  const { engine, state } = await engines((count) => count === 4 && (script.generateThrows = null));
  /** @type {string[]} */
  const told = [];
  engine.on("recovered", ({ from, to }) => told.push(`${from} to ${to}`));
  const text = await streamed(engine, () => (script.generateThrows = LOST));
  assert.equal(text, "abcdefgh");
  assert.deepEqual(told, ["webgpu to webgpu", "webgpu to webgpu", "webgpu to webgl packed"]);
  assert.deepEqual([engine.info.backend, engine.report.chosen, state.opened], ["webgl packed", "webgl packed", 4]);
});

test("where all is lost, each further rung has one chance", async () => {
  script.rungs = ["webgpu", "webgl packed", "webgl r32f", "cpu"];
  const { engine, state } = await engines();
  script.generateThrows = LOST;
  await assert.rejects(engine.completions.create({ prompt: "p" }), { code: "lost" });
  // Three times the first rung, once each of the others, and once more to find none.
  assert.equal(state.opened, 3 + 3 + 1);
});

test("losses long ago do not count", () => {
  let now = 0;
  const rungs = new Rungs(() => now);
  for (let loss = 0; loss < 9; loss += 1) {
    rungs.lost("webgpu", false);
    now += 70_000;
  }
  assert.deepEqual(rungs.without, []);
  rungs.lost("webgl packed", false);
  rungs.lost("webgpu", false);
  rungs.lost("webgpu", false);
  assert.deepEqual(rungs.without, ["webgpu"]);
  rungs.lost(null, true);
  rungs.lost("webgpu", true);
  assert.deepEqual(rungs.without, ["webgpu"]);
});

test("a device that is lost while it is opened again is tried again", async () => {
  const { engine, state } = await engines((count) => {
    script.loadThrows = count === 2 || count === 3 ? LOST : null;
    if (count > 1) script.generateThrows = null;
  });
  script.rungs = ["webgpu", "cpu"];
  const text = await streamed(engine, () => (script.generateThrows = LOST));
  assert.equal(text, "abcdefgh");
  assert.equal(state.opened, 4);
});

test("a model that cannot be had any more ends it with the reason", async () => {
  const gone = new NetworkError("the server is gone; try again later");
  const { engine } = await engines((count) => {
    if (count > 1) throw gone;
  });
  script.generateThrows = LOST;
  await assert.rejects(engine.completions.create({ prompt: "p" }), gone);
  assert.equal(await engine.lost, gone);
});

test("what is no loss is not tried again", async () => {
  const { engine, state } = await engines();
  script.generateThrows = Object.assign(new Error("numbers are NaN; convert the file again"), { code: "not_a_number" });
  await assert.rejects(engine.completions.create({ prompt: "p" }), { code: "not_a_number" });
  assert.equal(state.opened, 1);
});

test("an engine that is disposed of meanwhile stays so", async () => {
  const { engine, state } = await engines((count) => count > 1 && engine.dispose());
  script.generateThrows = LOST;
  await assert.rejects(engine.completions.create({ prompt: "p" }), { code: "disposed" });
  assert.equal(state.opened, 2);
  assert.equal(seen.freed, 2);
});
