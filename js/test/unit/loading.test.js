// Tests of loading at the speed of storage: what runs at the same time, and what is not done twice. They count, and do
// not measure time.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { ReadAhead } from "../../src/download/read-ahead.js";
import { PrefetchStream } from "../../src/download/prefetch-stream.js";
import { PART } from "../../src/cache/stored-parts.js";
import { BlobSource } from "../../src/download/source.js";
import { ModelStore } from "../../src/cache/model-store.js";
import { readFound } from "../../src/engine/tuning-store.js";
import { script, seen } from "../doubles/bindings.js";
import { Disk, lockManager, opfs } from "../doubles/browser.js";
import { connection, reset } from "../doubles/engine.js";
import { someBytes } from "../doubles/server.js";

afterEach(reset);

const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

test("pieces behind the one that is used are on their way, two at most, and none twice", async () => {
  /** @type {number[]} */
  const begun = [];
  const pieces = new ReadAhead((index) => (index < 5 ? (begun.push(index), Promise.resolve(index)) : null));
  for (let index = 0; index < 5; index += 1) {
    assert.equal(await pieces.piece(index), index);
    assert.equal(begun.length, Math.min(index + 3, 5));
  }
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
  assert.equal(await pieces.piece(1), 1);
  assert.deepEqual(begun.slice(5), [1], "out of order nothing else is begun");
});

test("a blob is read a part at a time, each once, whatever pieces are asked for", async () => {
  const bytes = someBytes(3 * PART + 1000);
  const blob = new Blob([bytes]);
  let slices = 0;
  const counted = /** @type {any} */ ({ size: blob.size, slice: (/** @type {number[]} */ ...ends) => (slices++, blob.slice(...ends)) });
  const source = new BlobSource(counted);
  for (let at = 0; at < bytes.length; at += 700_001) {
    const length = Math.min(700_001, bytes.length - at);
    assert.deepEqual(await source.readAt(at, length), bytes.subarray(at, at + length));
  }
  assert.equal(slices, 4);
});

/** Returns a stream in memory that counts its reads. @param {Uint8Array} bytes @param {number} step */
function streamOf(bytes, step) {
  return {
    position: 0,
    reads: 0,
    closed: 0,
    async connect() {},
    async next(most = Infinity) {
      this.reads += 1;
      if (this.position === bytes.length) return null;
      const some = bytes.subarray(this.position, this.position + Math.min(step, most));
      this.position += some.length;
      return some;
    },
    reaches: (/** @type {number} */ _) => false,
    close() {
      this.closed += 1;
    },
  };
}

test("a stream reads on while the engine chooses a backend, and no further than memory may hold", async () => {
  const bytes = someBytes(40 << 20);
  const inner = streamOf(bytes, 1 << 20);
  const stream = new PrefetchStream(inner);
  assert.equal((await stream.next(1000))?.length, 1000);
  stream.readOn();
  await soon();
  assert.equal(stream.position, 1000);
  assert.ok(inner.position >= 32 << 20 && inner.position < 34 << 20);
  let at = 1000;
  for (let some = await stream.next(900_000); some !== null; some = await stream.next(900_000)) {
    assert.deepEqual(some, bytes.subarray(at, (at += some.length)));
    assert.equal(stream.position, at);
  }
  assert.equal(at, bytes.length);
});

test("what fails while a stream reads on is told to whoever asks for those bytes, once", async () => {
  const bytes = someBytes(3000);
  const inner = streamOf(bytes, 1000);
  const next = inner.next.bind(inner);
  inner.next = async (most) => {
    if (inner.reads === 2) throw (inner.reads++, new Error("gone"));
    return next(most);
  };
  const stream = new PrefetchStream(inner);
  stream.readOn();
  await soon();
  assert.equal((await stream.next())?.length, 1000);
  assert.equal((await stream.next())?.length, 1000);
  await assert.rejects(stream.next(), /gone/);
  assert.equal((await stream.next())?.length, 1000);
  stream.close();
  assert.equal(inner.closed, 1);
});

test("parts are written while more arrives, two under way at most, and are all there in the end", async () => {
  const disk = new Disk();
  const environment = { storage: opfs(disk, "worker"), locks: lockManager() };
  const store = /** @type {ModelStore} */ (await ModelStore.open(environment));
  const bytes = someBytes(4 * PART + 10);
  const version = { size: bytes.length, etag: '"1"', lastModified: null, manifest: null };
  const making = await store.create("http://a/m", version, { maxBytes: Infinity, reserved: 0 }, true);
  let underWay = 0;
  let letGo = () => {};
  const gate = new Promise((resolve) => (letGo = () => resolve(undefined)));
  const write = store.files.write.bind(store.files);
  store.files.write = async (name, part) => {
    if (name.endsWith(".part")) await ((underWay += 1), gate);
    return write(name, part);
  };
  await making.write(bytes.subarray(0, 2 * PART));
  let isThird = false;
  const third = making.write(bytes.subarray(2 * PART, 4 * PART)).then(() => (isThird = true));
  await soon();
  assert.deepEqual([underWay, isThird], [1, false], "one is written, one is hashed, the third waits");
  letGo();
  await third;
  assert.deepEqual(await making.read(PART - 5, 10), bytes.subarray(PART - 5, PART + 5));
  await making.write(bytes.subarray(4 * PART));
  await making.commit({ sha256: null, manifest: null, etag: '"1"', lastModified: null });
  const kept = await store.get("http://a/m");
  const all = new Uint8Array(bytes.length);
  await kept?.parts.read(all, 0);
  assert.ok(Buffer.from(all.buffer).equals(bytes));
});

test("what selection proved is kept with the module that proved it, and told to the next load", async () => {
  const environment = { storage: opfs(new Disk(), "worker"), locks: lockManager() };
  const load = async (/** @type {object} */ more = {}) => {
    const link = connection(environment);
    const facts = await link.client.call("load", { what: new Blob([someBytes(10)]), options: {}, engine: {}, ...more });
    await soon();
    await link.close();
    return { facts, told: JSON.parse(seen.options[seen.options.length - 1]).proven };
  };
  script.proven = false;
  const first = await load();
  assert.equal(first.told, undefined);
  const { proven } = await readFound(environment);
  assert.deepEqual(proven, { module: first.facts.report.module_sha256, proofs: [{ rung: "cpu" }] });
  script.proven = true;
  assert.deepEqual((await load()).told, [{ rung: "cpu" }]);
  assert.equal((await load({ again: true })).told, undefined, "a device that was lost proves itself again");
});
