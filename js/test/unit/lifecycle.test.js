// Tests of pages that go away and come back, devices that do not come back, and persistent storage.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Client } from "../../src/workers/client.js";
import { CrashError, DeviceLostError, DisposedError } from "../../src/common/errors.js";
import { comeBack } from "../../src/workers/page-lifecycle.js";
import { afterAwake, within } from "../../src/common/timeout.js";
import { persist } from "../../src/opfs/storage.js";
import { patient, watch } from "../../src/workers/hang-detection.js";
import { live, onEnd } from "../../src/workers/exit-detection.js";
import { script } from "../doubles/bindings.js";
import { lockManager } from "../doubles/browser.js";
import { engine, reset } from "../doubles/engine.js";

afterEach(reset);

const sleep = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Blocks this thread, as in a frozen page. @param {number} ms */
function freeze(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Returns a `pageshow` event. */
const shown = (/** @type {boolean} */ persisted) => Object.assign(new Event("pageshow"), { persisted });

test("time in which the thread was frozen does not count", async () => {
  const late = () => new Error("late");
  const answer = new Promise((resolve) => setTimeout(resolve, 150, "answer"));
  const waiting = within(200, answer, late);
  freeze(400);
  assert.equal(await waiting, "answer");
  const begin = performance.now();
  await assert.rejects(within(200, new Promise(() => {}), late), /late/);
  // Only the lower bound is certain: a busy machine may take any time.
  assert.ok(performance.now() - begin > 150);
  let acted = 0;
  const stop = afterAwake(20, () => (acted += 1));
  stop();
  await sleep(60);
  assert.equal(acted, 0);
});

/** Returns a worker: one that answers, one that is gone, or one that is busy and reports progress. */
function worker(/** @type {"answers" | "gone" | "busy"} */ kind) {
  const endpoint = {
    /** @type {((event: MessageEvent) => void) | null} */
    onmessage: null,
    asked: 0,
    postMessage(/** @type {any} */ { id }) {
      const tell = (/** @type {object} */ data) => endpoint.onmessage?.(/** @type {MessageEvent} */ ({ data }));
      const first = ++endpoint.asked === 1;
      if (kind === "answers" || (kind === "busy" && !first)) setTimeout(tell, 5, { id, result: {} });
      else if (kind === "busy") setTimeout(tell, 5, { id, event: {} });
    },
  };
  return endpoint;
}

test("a worker that does not come back with its page rejects what waits for it", async () => {
  for (const [kind, event] of /** @type {const} */ ([["gone", "pageshow"], ["gone", "resume"]])) {
    const [window, document] = [new EventTarget(), new EventTarget()];
    const client = new Client(worker(kind));
    const end = comeBack(client, { window, document }, 50);
    const waiting = client.call("generate", {});
    window.dispatchEvent(shown(false));
    await sleep(100);
    (event === "pageshow" ? window : document).dispatchEvent(event === "pageshow" ? shown(true) : new Event("resume"));
    await assert.rejects(waiting, (error) => error instanceof CrashError && /load the model again/.test(error.message));
    assert.ok((await client.lost) instanceof CrashError);
    end();
  }
});

test("a worker that comes back is used on, however busy it is", async () => {
  for (const kind of /** @type {const} */ (["answers", "busy"])) {
    const window = new EventTarget();
    const endpoint = worker(kind);
    const client = new Client(endpoint);
    const end = comeBack(client, { window, document: window }, 50);
    window.dispatchEvent(shown(true));
    await sleep(200);
    assert.equal(endpoint.asked, kind === "answers" ? 1 : 2);
    assert.deepEqual(await client.call("stats", {}), {});
    end();
    window.dispatchEvent(shown(true));
    assert.equal(endpoint.asked, kind === "answers" ? 2 : 3, "nobody listens any more");
  }
});

/**
 * Returns a worker with a call that takes forever. It answers others after some time, and may report progress; or it
 * hangs.
 */
function working(/** @type {{ after: number, every?: number }} */ { after, every }) {
  const endpoint = {
    /** @type {((event: MessageEvent) => void) | null} */
    onmessage: null,
    /** @type {string[]} */
    asked: [],
    postMessage(/** @type {any} */ { id, method }) {
      const tell = (/** @type {object} */ data) => endpoint.onmessage?.(/** @type {MessageEvent} */ ({ data }));
      endpoint.asked.push(method);
      if (method === "features") setTimeout(tell, after, { id, result: {} }).unref();
      else if (every !== undefined) setInterval(tell, every, { id, event: {} }).unref();
    },
  };
  return endpoint;
}

test("a worker that hangs rejects what waits for it, and the next has longer", async () => {
  const patience = patient(100);
  const client = new Client(working({ after: 1e6 }));
  watch(client, patience);
  const begin = performance.now();
  await assert.rejects(client.call("generate", {}), (error) => error instanceof CrashError && /100 ms/.test(error.message));
  assert.ok(performance.now() - begin > 80);
  assert.equal(patience.limit, 200);
  assert.ok((await client.lost) instanceof CrashError);
});

test("a worker that answers, or tells how it gets on, works as long as it takes", async () => {
  const limit = 800;
  const kinds = [{ after: 2 }, { after: 1e6, every: 40 }, { after: 200, slow: true }];
  await Promise.all(kinds.map(async ({ slow = false, ...kind }) => {
    const patience = patient(limit);
    const endpoint = working(kind);
    const client = new Client(endpoint);
    const end = watch(client, patience);
    const controller = new AbortController();
    const waiting = client.call("generate", {}, { signal: controller.signal });
    await sleep(1.5 * limit);
    controller.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    assert.equal(endpoint.asked.includes("features"), !("every" in kind));
    // A worker that answers late has more time from then on.
    assert.equal(patience.limit, slow ? 2 * limit : limit);
    end();
  }));
});

test("a worker of which nothing is asked is left alone", async () => {
  const endpoint = working({ after: 1e6 });
  const client = new Client(endpoint);
  watch(client, patient(40));
  await sleep(150);
  assert.deepEqual(endpoint.asked, []);
  const end = watch(client, patient(40));
  end();
  client.call("generate", {}).catch(() => {});
  await sleep(150);
  assert.deepEqual(endpoint.asked, ["generate"]);
});

test("who waits for a loss is told, and not of anything else", async () => {
  const opened = await engine();
  let told = /** @type {Error | null} */ (null);
  opened.lost.then((error) => (told = error));
  script.generateThrows = Object.assign(new Error("too long"), { code: "context" });
  await assert.rejects(opened.completions.create({ prompt: "a" }), { name: "ContextError" });
  assert.equal(told, null);
  script.generateThrows = Object.assign(new Error("it is gone; load the model again"), { code: "lost" });
  const both = ["a", "b"].map((prompt) => assert.rejects(opened.completions.create({ prompt }), DeviceLostError));
  await Promise.all(both);
  assert.ok(/** @type {unknown} */ (told) instanceof DeviceLostError);
  await opened.dispose();
  const other = await engine();
  other.lost.then((error) => (told = error));
  told = null;
  await other.dispose();
  await assert.rejects(other.stats(), DisposedError);
  assert.equal(told, null);
});

test("storage is asked to stay once, if it is not granted", async () => {
  const manager = (/** @type {boolean | Error} */ granted) => {
    const calls = /** @type {string[]} */ ([]);
    const persisted = async () => {
      calls.push("persisted");
      if (granted instanceof Error) throw granted;
      return granted;
    };
    const storage = { persisted, persist: async () => (calls.push("persist"), false) };
    return { calls, storage: /** @type {StorageManager} */ (/** @type {unknown} */ (storage)) };
  };
  await persist(/** @type {StorageManager} */ ({}));
  const { calls, storage } = manager(false);
  await Promise.all([persist(storage), persist(storage)]);
  assert.deepEqual(calls, ["persisted", "persist"]);
  await persist(manager(new Error("no")).storage);
});

test("a worker's end releases what the page waits for", async () => {
  const locks = /** @type {any} */ (lockManager());
  assert.equal(await live("a", locks), true);
  let ended = 0;
  onEnd("a", () => (ended += 1), locks);
  const stop = onEnd("a", () => (ended += 10), locks);
  await sleep(20);
  assert.equal(ended, 0);
  stop();
  locks.end("a");
  await sleep(20);
  assert.equal(ended, 1);
});

test("without locks a worker starts all the same", async () => {
  assert.equal(await live("a", undefined), false);
  assert.equal(await live(undefined, /** @type {any} */ (lockManager())), false);
  const refusing = { request: () => Promise.reject(new DOMException("no", "SecurityError")) };
  assert.equal(await live("a", /** @type {any} */ (refusing)), false);
  onEnd("a", () => assert.fail("it is not known"), /** @type {any} */ (refusing))();
  // The wait ends by itself.
  const silent = { request: () => new Promise(() => {}) };
  assert.equal(await live("a", /** @type {any} */ (silent)), false);
});
