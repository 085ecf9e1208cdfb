import assert from "node:assert/strict";
import { test } from "node:test";
import { CacheError, QuotaError } from "../../src/errors.js";
import { Store, keyOf } from "../../src/store.js";
import { Disk, cacheStorage, closeAll, estimates, lockManager, opfs } from "../doubles/browser.js";
import { someBytes } from "../doubles/server.js";

const FACTS = { sha256: null, etag: '"1"', lastModified: null };

/** @typedef {"worker" | "page" | "cache"} Kind */

/** @param {Kind} kind @param {Disk} [disk] @param {LockManager} [locks] */
function environment(kind, disk = new Disk(), locks = lockManager()) {
  const storage = kind === "cache" ? estimates(disk) : opfs(disk, kind);
  const env = { storage, locks, ...(kind === "cache" ? { caches: cacheStorage(disk) } : {}) };
  return { disk, locks, env, open: async () => /** @type {Store} */ (await Store.open(env)) };
}

/** @param {Store} store @param {string} key @param {number} size */
async function keep(store, key, size, maxBytes = Infinity) {
  const recorder = await store.create(key, size, maxBytes);
  const bytes = someBytes(size);
  await recorder.write(bytes.subarray(0, size >> 1));
  await recorder.write(bytes.subarray(size >> 1));
  await recorder.commit(FACTS);
}

/** @param {Store} store */
const keys = async (store) => (await store.list()).map((entry) => entry.key);

const soon = () => new Promise((resolve) => setTimeout(resolve, 3));

for (const kind of /** @type {Kind[]} */ (["worker", "page", "cache"])) {
  test(`${kind}: what is committed is found, what is aborted leaves nothing`, async () => {
    const { disk, locks, open } = environment(kind);
    const store = await open();
    assert.equal(await store.get("http://a/m"), null);
    const recorder = await store.create("http://a/m", 1000, Infinity);
    await recorder.write(someBytes(1000).subarray(0, 600));
    assert.deepEqual(await keys(store), [], "not visible before it is whole");
    if (recorder.read) assert.deepEqual(await recorder.read(100, 50), someBytes(1000).subarray(100, 150));
    else assert.notEqual(kind, "worker");
    await recorder.abort();
    assert.equal(disk.files.size, 0);
    await keep(store, "http://a/m", 1000);
    const kept = await store.get("http://a/m");
    assert.deepEqual(new Uint8Array(await /** @type {any} */ (kept).blob.arrayBuffer()), someBytes(1000));
    assert.equal(kept?.entry.etag, '"1"');
    kept?.release();
    await soon();
    assert.equal(/** @type {any} */ (locks).size, 0, "no lock is held");
    assert.equal(disk.files.size, 2);
    assert.equal(await store.delete("http://a/m"), true);
    assert.equal(await store.delete("http://a/m"), false);
    assert.equal(disk.files.size, 0);
  });

  test(`${kind}: a new version replaces the old one`, async () => {
    const { disk, open } = environment(kind);
    const store = await open();
    await keep(store, "http://a/m", 1000);
    await keep(store, "http://a/m", 2000);
    assert.deepEqual((await store.list()).map((entry) => entry.size), [2000]);
    assert.equal(disk.files.size, 2);
  });

  test(`${kind}: what a crash left is removed by the next to open`, async () => {
    const { disk, env } = environment(kind);
    const crashed = /** @type {Store} */ (await Store.open({ ...env, locks: lockManager() }));
    await keep(crashed, "http://a/whole", 100);
    const recorder = await crashed.create("http://a/half", 1000, Infinity);
    await recorder.write(new Uint8Array(10));
    // A tab that ended holds neither locks nor handles.
    closeAll();
    const before = disk.files.size;
    const store = await Store.open(env);
    assert.deepEqual(await keys(/** @type {Store} */ (store)), ["http://a/whole"]);
    assert.equal(disk.files.size, 2);
    assert.ok(before >= 2);
  });

  test(`${kind}: the entry not used for longest makes room`, async () => {
    const { disk, open } = environment(kind);
    const store = await open();
    for (const name of ["a", "b", "c"]) {
      await keep(store, `http://${name}/`, 1000, 3000);
      await soon();
    }
    (await store.get("http://a/"))?.release();
    await soon();
    await keep(store, "http://d/", 1000, 3000);
    assert.deepEqual(await keys(store), ["http://d/", "http://a/", "http://c/"]);
    await soon();
    disk.quota = disk.used + 100;
    await keep(store, "http://e/", 1500);
    assert.deepEqual(await keys(store), ["http://e/", "http://d/"]);
    await assert.rejects(store.create("http://f/", 10_000, 9_999), QuotaError);
  });
}

test("a full disk that nobody foresaw is a quota error, and nothing is left", async () => {
  for (const kind of /** @type {Kind[]} */ (["worker", "page", "cache"])) {
    const { disk, open } = environment(kind);
    disk.tells = false;
    const store = await open();
    disk.quota = 700;
    const recorder = await store.create("http://a/m", 1000, Infinity);
    const writing = async () => {
      await recorder.write(new Uint8Array(500));
      await recorder.write(new Uint8Array(500));
      await recorder.commit(FACTS);
    };
    await assert.rejects(writing(), QuotaError, kind);
    await recorder.abort();
    assert.equal(disk.files.size, 0, kind);
  }
});

test("a disk that becomes full under way makes others leave, if what was written can be kept", async () => {
  const { disk, open } = environment("worker");
  disk.tells = false;
  const store = await open();
  await keep(store, "http://old/", 1000);
  disk.quota = 1900;
  await keep(store, "http://new/", 1400);
  assert.deepEqual(await keys(store), ["http://new/"]);
});

test("two tabs: neither removes what the other reads or writes", async () => {
  const { disk, locks, open } = environment("worker");
  const [one, two] = [await open(), /** @type {Store} */ (await Store.open({ storage: opfs(disk, "worker"), locks }))];
  const recorder = await one.create("http://a/m", 1000, Infinity);
  await recorder.write(someBytes(1000));
  await Store.open({ storage: opfs(disk, "worker"), locks });
  const other = await two.create("http://a/m", 1000, Infinity);
  await other.write(someBytes(1000));
  await Promise.all([recorder.commit(FACTS), other.commit(FACTS)]);
  assert.deepEqual(await keys(one), ["http://a/m"]);
  await Store.open({ storage: opfs(disk, "worker"), locks });
  assert.equal(disk.files.size, 2, "one version is left");

  const kept = await one.get("http://a/m");
  await keep(two, "http://a/m", 500);
  assert.deepEqual(new Uint8Array(await /** @type {any} */ (kept).blob.arrayBuffer()), someBytes(1000));
  assert.equal(disk.files.size, 3, "the old version is there while it is read");
  kept?.release();
  await soon();
  await Store.open({ storage: opfs(disk, "worker"), locks });
  assert.equal(disk.files.size, 2);
});

test("entries that make no sense are no entries", async () => {
  const { disk, open } = environment("page");
  const store = await open();
  await keep(store, "http://a/m", 1000);
  const [json, bytes] = [...disk.files.keys()].sort((a) => (a.endsWith(".json") ? -1 : 1));
  disk.files.set(bytes, new Uint8Array(999));
  assert.equal(await store.get("http://a/m"), null, "cut short");
  assert.equal(disk.files.size, 0);
  for (const text of ["", "{}", "null", '{"key":"http://a/m","file":"../x","size":-1}', "x".repeat(100_000)]) {
    disk.files.set(json, new TextEncoder().encode(text));
    assert.deepEqual(await store.list(), []);
    await open();
    assert.equal(disk.files.size, 0);
  }
});

test("storage that fails is a cache error; no storage is no store", async () => {
  const { disk, open } = environment("page");
  const store = await open();
  disk.write = () => {
    throw new DOMException("the disk burns", "UnknownError");
  };
  await assert.rejects(store.create("http://a/m", 10, Infinity), (error) => {
    assert.ok(error instanceof CacheError && !(error instanceof QuotaError));
    return /the disk burns/.test(error.message);
  });
  const locks = lockManager();
  assert.equal(await Store.open({ locks }), null);
  assert.equal(await Store.open({ storage: opfs(new Disk(), "page") }), null, "no locks");
  const denied = /** @type {any} */ ({ getDirectory: async () => Promise.reject(new DOMException("no", "SecurityError")) });
  assert.equal(await Store.open({ storage: denied, locks }), null);
  assert.ok(await Store.open({ storage: denied, locks, caches: cacheStorage(new Disk()) }), "the Cache API instead");
});

test("the key of an address has neither credentials nor fragment", () => {
  assert.equal(keyOf("https://me:secret@example.org/m.gguf?v=1#part"), "https://example.org/m.gguf?v=1");
});
