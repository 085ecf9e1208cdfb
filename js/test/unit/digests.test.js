import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256 } from "../../src/common/sha256.js";

/** Workers that were started. @type {FakeWorker[]} */
let workers = [];

/** A worker that does what the worker's script does, once the test allows it. */
class FakeWorker {
  /** @type {(event: { data: unknown }) => void} */
  onmessage = () => {};
  /** @type {(event: { preventDefault(): void }) => void} */
  onerror = () => {};
  asked = 0;
  terminated = false;
  answers = true;
  /** Promise of the last answer: the worker's script answers in the order of messages. */
  last = Promise.resolve();

  constructor() {
    workers.push(this);
  }

  run() {
    this.onmessage({ data: null });
  }

  fail() {
    this.onerror({ preventDefault() {} });
  }

  /** @param {{ bytes: Uint8Array<ArrayBuffer>, place: unknown }} asked @param {ArrayBuffer[]} transfer */
  postMessage({ bytes, place }, transfer) {
    this.asked += 1;
    const own = structuredClone(bytes, { transfer });
    if (!this.answers) return;
    this.last = this.last.then(async () => this.onmessage({ data: { digest: await sha256(own), bytes: own, written: place !== null } }));
  }

  terminate() {
    this.terminated = true;
  }
}

let copies = 0;

/** Loads the module as a page of Chromium, or of another browser. @param {import("node:test").TestContext} context */
async function loaded(context, navigator = { userAgentData: {} }) {
  const before = { Worker: globalThis.Worker, navigator: globalThis.navigator };
  workers = [];
  const set = (/** @type {object} */ values) => {
    for (const [name, value] of Object.entries(values)) Object.defineProperty(globalThis, name, { value, configurable: true });
  };
  set({ Worker: FakeWorker, navigator });
  context.after(() => set(before));
  /** @type {typeof import("../../src/part-digests.js")} */
  const { digested, endDigesters } = await import(`../../src/part-digests.js?copy=${++copies}`);
  return Object.assign(digested, { endDigesters });
}

const some = (/** @type {number} */ seed) => Uint8Array.from({ length: 1000 }, (_, i) => i * seed);
const wanted = (/** @type {number} */ seed) => sha256(some(seed));

test("digests are computed by workers as soon as they run, and the bytes come back", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const digested = await loaded(context);
  const bytes = some(1);
  assert.deepEqual(await digested(bytes), { digest: await wanted(1), bytes: some(1), written: false });
  assert.equal(bytes.length, 1000, "nothing is given to workers that do not run");
  for (const worker of workers) worker.run();
  const all = [2, 3, 4, 5].map((seed) => ({ seed, given: some(seed) }));
  const place = { folder: /** @type {any} */ ({}), name: "part" };
  const answers = all.map(({ given }) => digested(given, place));
  for (const { given } of all) assert.equal(given.length, 0, "its memory is the worker's");
  for (const [at, { seed }] of all.entries()) {
    assert.deepEqual(await answers[at], { digest: await wanted(seed), bytes: some(seed), written: true });
  }
  assert.deepEqual(workers.map((worker) => worker.asked), [2, 2]);
  context.mock.timers.tick(10_000);
  assert.deepEqual(workers.map((worker) => worker.terminated), [true, true], "they end when nothing is asked of them");
  await digested(some(6));
  assert.equal(workers.length, 4, "and are started again");
});

test("other browsers have threads of their own for digests", async (context) => {
  const digested = await loaded(context, /** @type {any} */ ({}));
  assert.deepEqual(await digested(some(1)), { digest: await wanted(1), bytes: some(1), written: false });
  assert.equal(workers.length, 0);
});

test("where workers cannot be loaded the thread computes digests itself", async (context) => {
  const digested = await loaded(context);
  await digested(some(1));
  for (const worker of workers) worker.fail();
  assert.deepEqual(await digested(some(2)), { digest: await wanted(2), bytes: some(2), written: false });
  assert.equal(workers.length, 2, "nobody tries again");
});

test("a worker that ends fails what it was asked, and later digests are computed here", async (context) => {
  const digested = await loaded(context);
  await digested(some(1));
  for (const worker of workers) Object.assign(worker, { answers: false }).run();
  const lost = digested(some(2));
  for (const worker of workers) worker.fail();
  await assert.rejects(lost, /ended/);
  assert.deepEqual(await digested(some(3)), { digest: await wanted(3), bytes: some(3), written: false });
});

test("a folder that no worker can be given is written to by whoever asked", async (context) => {
  const digested = await loaded(context);
  await digested(some(1));
  for (const worker of workers) worker.run();
  for (const worker of workers) worker.postMessage = () => { throw new DOMException("no clone", "DataCloneError"); };
  const place = { folder: /** @type {any} */ ({}), name: "part" };
  assert.deepEqual(await digested(some(2), place), { digest: await wanted(2), bytes: some(2), written: false });
});

test("workers are ended some time before their parent may be", async (context) => {
  const digested = await loaded(context);
  context.mock.timers.enable({ apis: ["setTimeout"] });
  await digested.endDigesters();
  await digested(some(1));
  let isDone = false;
  const ending = digested.endDigesters().then(() => (isDone = true));
  assert.ok(workers.length === 2 && workers.every(({ terminated }) => terminated));
  context.mock.timers.tick(99);
  await null;
  assert.ok(!isDone, "they are being taken down");
  context.mock.timers.tick(1);
  await ending;
  await digested(some(2));
  assert.equal(workers.length, 4, "they are started anew when there is more to do");
});
