import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { startThreads } from "../../src/module/start-threads.js";
import { threadsOf } from "../../src/module/thread-count.js";

/** @typedef {import("../../src/module/start-threads.js").Sharing} Sharing */

const isolated = (/** @type {number} */ hardwareConcurrency) => ({ crossOriginIsolated: true, navigator: { hardwareConcurrency } });

test("an isolated page has as many threads as the machine, but at most eight unless it asks for more", () => {
  assert.equal(threadsOf("cpu", undefined, isolated(4)), 4);
  assert.equal(threadsOf("auto", undefined, isolated(64)), 8);
  assert.equal(threadsOf("cpu", 16, isolated(4)), 16);
  assert.equal(threadsOf("cpu", 1, isolated(4)), 1);
});

test("other pages, backends that are no CPU, and browsers that do not say how many they run have one", () => {
  assert.equal(threadsOf("cpu", 8, { ...isolated(8), crossOriginIsolated: false }), 1);
  assert.equal(threadsOf("cpu", 8, {}), 1);
  for (const backend of /** @type {const} */ (["gpu", "webgpu", "webgl"])) assert.equal(threadsOf(backend, 8, isolated(8)), 1);
  assert.equal(threadsOf("cpu", undefined, { crossOriginIsolated: true }), 1);
});

const before = { Worker: globalThis.Worker, location: globalThis.location, warn: console.warn };
afterEach(() => {
  Object.assign(globalThis, { Worker: before.Worker, location: before.location });
  console.warn = before.warn;
});

/** Starts threads with workers that behave as listed, in order. @param {("starts" | "fails" | "throws")[]} fates */
async function started(fates) {
  /** Events in order. @type {unknown[]} */
  const log = [];
  let made = 0;
  class Worker {
    /** @type {(event: unknown) => void} */
    onmessage = () => {};
    /** @type {(event: unknown) => void} */
    onerror = () => {};
    _fate = fates[made++];

    /** @param {string} url @param {object} options */
    constructor(url, options) {
      if (this._fate === "throws") throw new Error("the policy says no");
      assert.deepEqual([url, options], ["https://a.test/worker.js", { type: "module", name: "anygpu thread" }]);
    }

    /** @param {unknown} message */
    postMessage(message) {
      if (message === null) return log.push("computes");
      assert.deepEqual(message, { module: "the module", memory: "the memory" });
      const event = { message: "no memory", preventDefault() {} };
      return queueMicrotask(() => (this._fate === "starts" ? this.onmessage({ data: null }) : this.onerror(event)));
    }

    terminate() {
      log.push("ended");
    }
  }
  Object.assign(globalThis, { Worker, location: { href: "https://a.test/worker.js" } });
  console.warn = () => log.push("warned");
  const bindings = {
    thread_parts: () => ["the module", "the memory"],
    thread_share: (/** @type {number} */ others, /** @type {string | undefined} */ refused) => log.push({ others, refused }),
  };
  await startThreads(/** @type {Sharing} */ (/** @type {unknown} */ (bindings)), fates.length + 1);
  return log;
}

test("threads compute once all have started and the module knows how many they are", async () => {
  assert.deepEqual(await started(["starts", "starts"]), [{ others: 2, refused: undefined }, "computes", "computes"]);
});

test("a thread that cannot be started is done without, and the reason is told", async () => {
  const one = (/** @type {string} */ why) => `1 more could not be started (${why})`;
  const failed = await started(["starts", "fails", "starts"]);
  assert.deepEqual(failed, ["ended", "warned", { others: 2, refused: one("no memory") }, "computes", "computes"]);
  const thrown = await started(["throws"]);
  assert.deepEqual(thrown, ["warned", { others: 0, refused: one("the policy says no") }]);
});
