import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf } from "../../src/cache/entry.js";
import { CacheError, QuotaError } from "../../src/common/errors.js";
import { PART } from "../../src/cache/stored-parts.js";
import { AtomicRecords } from "../../src/opfs/atomic-records.js";
import { ModelStore } from "../../src/cache/model-store.js";
import { Disk, cacheStorage, closeAll, estimates, lockManager, opfs } from "../doubles/browser.js";
import { someBytes } from "../doubles/server.js";

const FACTS = { sha256: null, manifest: null, etag: '"1"', lastModified: null };
/** @type {string | null} */
const ETAG = '"1"';
/** Size of a file with more than two parts. */
const LONG = 2 * PART + 1000;
const long = someBytes(LONG);

/** @typedef {"worker" | "page" | "cache"} Kind */

/** @param {Kind} kind @param {Disk} [disk] @param {LockManager} [locks] */
function environment(kind, disk = new Disk(), locks = lockManager()) {
  const storage = kind === "cache" ? estimates(disk) : opfs(disk, kind);
  const env = { storage, locks, ...(kind === "cache" ? { caches: cacheStorage(disk) } : {}) };
  return { disk, locks, env, open: async () => /** @type {ModelStore} */ (await ModelStore.open(env)) };
}

/** @param {ModelStore} store @param {string} key @param {number} size */
function create(store, key, size, { maxBytes = Infinity, turn = true, etag = ETAG } = {}) {
  const version = { size, etag, lastModified: null, manifest: null };
  return store.create(key, version, { maxBytes, reserved: 0 }, turn);
}

/** @param {ModelStore} store @param {string} key @param {number} size */
async function keep(store, key, size, maxBytes = Infinity) {
  const recorder = await create(store, key, size, { maxBytes });
  const bytes = someBytes(size);
  await recorder.write(bytes.subarray(0, size >> 1));
  await recorder.write(bytes.subarray(size >> 1));
  await recorder.commit(FACTS);
}

/** Returns the contents of an entry. @param {import("../../src/cache/model-store.js").PinnedEntry | null} kept */
async function contents(kept) {
  assert.ok(kept);
  const bytes = new Uint8Array(kept.entry.size);
  await kept.parts.read(bytes, 0);
  return bytes;
}

/** @param {ModelStore} store @param {string} key */
const resumed = (store, key) => store.resumed(key, { maxBytes: Infinity, reserved: 0 });

/** @param {ModelStore} store */
const keys = async (store) => (await store.list()).map((entry) => entry.key);

const soon = () => new Promise((resolve) => setTimeout(resolve, 3));

for (const kind of /** @type {Kind[]} */ (["worker", "page", "cache"])) {
  test(`${kind}: what is committed is found, what is aborted leaves nothing`, async () => {
    const { disk, locks, open } = environment(kind);
    const store = await open();
    assert.equal(await store.get("http://a/m"), null);
    const recorder = await create(store, "http://a/m", 1000);
    await recorder.write(someBytes(1000).subarray(0, 600));
    assert.deepEqual(await keys(store), [], "not visible before it is whole");
    assert.deepEqual(await recorder.read(100, 50), someBytes(1000).subarray(100, 150));
    await recorder.abort();
    assert.equal(disk.files.size, 0);
    await keep(store, "http://a/m", 1000);
    const kept = await store.get("http://a/m");
    assert.deepEqual(await contents(kept), someBytes(1000));
    assert.equal(kept?.entry.etag, '"1"');
    kept?.release();
    await soon();
    assert.equal(/** @type {any} */ (locks).size, 0, "no lock is held");
    assert.equal(disk.files.size, 3);
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
    assert.equal(disk.files.size, 3);
  });

  test(`${kind}: what a crash left is removed by the next to open`, async () => {
    const { disk, env } = environment(kind);
    const crashed = /** @type {ModelStore} */ (await ModelStore.open({ ...env, locks: lockManager() }));
    await keep(crashed, "http://a/whole", 100);
    const recorder = await create(crashed, "http://a/half", LONG, { etag: null });
    await recorder.write(long.subarray(0, PART + 10));
    await recorder.written();
    disk.files.delete([...disk.files.keys()].find((name) => name.includes(".unfinished")) ?? "");
    // A tab that ended holds neither locks nor handles.
    closeAll();
    const before = disk.files.size;
    const store = await ModelStore.open(env);
    assert.deepEqual(await keys(/** @type {ModelStore} */ (store)), ["http://a/whole"]);
    assert.equal(disk.files.size, 2);
    assert.ok(before > 2);
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
    disk.quota = disk.used + 10;
    await keep(store, "http://e/", 1900);
    assert.deepEqual(await keys(store), ["http://e/", "http://d/"]);
    await assert.rejects(create(store, "http://f/", 10_000, { maxBytes: 9_999 }), QuotaError);
  });
}

test("a full disk that nobody foresaw is a quota error, and nothing is left", async () => {
  for (const kind of /** @type {Kind[]} */ (["worker", "page", "cache"])) {
    const { disk, open } = environment(kind);
    disk.tells = false;
    const store = await open();
    disk.quota = 700;
    const recorder = await create(store, "http://a/m", 1000);
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
  disk.quota = 2200;
  await keep(store, "http://new/", 1400);
  assert.deepEqual(await keys(store), ["http://new/"]);
});

test("two tabs: neither removes what the other reads or writes", async () => {
  const { disk, locks, open } = environment("worker");
  const [one, two] = [await open(), /** @type {ModelStore} */ (await ModelStore.open({ storage: opfs(disk, "worker"), locks }))];
  const recorder = await create(one, "http://a/m", 1000);
  await recorder.write(someBytes(1000));
  await ModelStore.open({ storage: opfs(disk, "worker"), locks });
  const other = await create(two, "http://a/m", 1000, { turn: false });
  await other.write(someBytes(1000));
  await Promise.all([recorder.commit(FACTS), other.commit(FACTS)]);
  assert.deepEqual(await keys(one), ["http://a/m"]);
  await ModelStore.open({ storage: opfs(disk, "worker"), locks });
  assert.equal(disk.files.size, 3, "one version is left");

  const kept = await one.get("http://a/m");
  await keep(two, "http://a/m", 500);
  assert.deepEqual(await contents(kept), someBytes(1000));
  assert.equal(disk.files.size, 4, "the old version is there while it is read");
  kept?.release();
  await soon();
  await ModelStore.open({ storage: opfs(disk, "worker"), locks });
  assert.equal(disk.files.size, 3);
});

for (const kind of /** @type {Kind[]} */ (["worker", "page", "cache"])) {
  test(`${kind}: a later visit goes on where a tab ended, with what is not damaged`, async () => {
    const { disk, env } = environment(kind);
    const key = "http://a/m";
    const crashed = /** @type {ModelStore} */ (await ModelStore.open({ ...env, locks: lockManager() }));
    const recorder = await create(crashed, key, LONG);
    await recorder.write(long.subarray(0, PART + 10));
    await recorder.written();
    closeAll();
    const store = /** @type {ModelStore} */ (await ModelStore.open(env));
    assert.deepEqual((await store.list()).map(({ key, whole, parts }) => [key, whole, parts.length]), [[key, false, 1]]);
    assert.equal(await store.get(key), null, "it is not whole");
    const making = await resumed(store, key);
    assert.ok(making);
    assert.equal(await resumed(store, key), null, "one at a time");
    assert.deepEqual((await making.last()).slice(-10), long.subarray(PART - 10, PART));
    assert.equal(making.position, PART);
    await making.write(long.subarray(PART));
    await making.commit(FACTS);
    const kept = await store.get(key);
    assert.deepEqual(await contents(kept), long);
    kept?.release();
    assert.equal(await resumed(store, key), null);
    await soon();
    assert.equal(disk.files.size, 5, "three parts and two slots");
  });

  test(`${kind}: parts that are torn, damaged or gone are never read`, async () => {
    const { disk, open } = environment(kind);
    const store = await open();
    await keep(store, "http://a/m", LONG);
    const parts = [...disk.files.keys()].filter((name) => name.endsWith(".part")).sort();
    const kept = await store.get("http://a/m");
    assert.ok(kept);
    const spoil = [
      () => disk.files.delete(parts[1]),
      () => disk.files.set(parts[1], long.slice(PART, PART + 100)),
      () => disk.files.set(parts[1], long.slice(PART, 2 * PART).map((byte, at) => (at === 77 ? byte ^ 1 : byte))),
    ];
    for (const spoilt of spoil) {
      spoilt();
      const read = { ...kept, parts: /** @type {any} */ (await store.get("http://a/m"))?.parts };
      await assert.rejects(contents(read), /part 1 is damaged/);
      /** @type {[number, number][]} */
      const asked = [];
      read.parts.refetch = async (/** @type {number} */ offset, /** @type {number} */ length) => {
        asked.push([offset, length]);
        return long.subarray(offset, offset + length);
      };
      assert.deepEqual(await contents(read), long);
      assert.deepEqual(asked, [[PART, PART]]);
      assert.deepEqual(new Uint8Array(disk.files.get(parts[1]) ?? []), long.slice(PART, 2 * PART), "mended");
    }
  });
}

test("a download that was interrupted: given up, kept, or forgotten after a week", async (t) => {
  const { disk, open } = environment("worker");
  const key = "http://a/m";
  const begin = async (/** @type {any} */ more = {}) => {
    const making = await create(await open(), key, LONG, more);
    await making.write(long.subarray(0, PART + 10));
    return making;
  };
  await (await begin()).abort();
  assert.equal(disk.files.size, 0);
  await (await begin({ etag: null })).abort(true);
  assert.equal(disk.files.size, 0, "nobody could tell whether it is still the same file");
  await (await begin({ turn: false })).abort(true);
  assert.equal(disk.files.size, 0, "the record is that of the tab whose turn it is");
  await (await begin()).abort(true);
  const store = await open();
  assert.deepEqual((await store.list()).map(({ parts }) => parts.length), [1]);
  assert.ok(await store.delete(key));
  assert.equal(disk.files.size, 0);
  await (await begin()).abort(true);
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 8 * 24 * 3600 * 1000 });
  await open();
  assert.equal(disk.files.size, 0);
});

test("what is not whole is the first to make room", async () => {
  const { open } = environment("worker");
  const store = await open();
  await keep(store, "http://a/", 1000);
  await soon();
  const making = await create(store, "http://b/", LONG);
  await making.write(long.subarray(0, PART));
  await making.written();
  await keep(store, "http://c/", 1000, PART + 1500);
  assert.deepEqual(await keys(store), ["http://c/", "http://b/"], "but not while it is written");
  await making.abort(true);
  await keep(store, "http://d/", 1000, PART + 1500);
  assert.deepEqual(await keys(store), ["http://d/", "http://c/"]);
});

test("a record outlives writes that end anywhere", async () => {
  const { disk, open } = environment("worker");
  const store = await open();
  await keep(store, "http://a/m", 1000);
  (await store.get("http://a/m"))?.release();
  const slots = () => [...disk.files].filter(([name]) => name.endsWith(".json"));
  const revision = (/** @type {Uint8Array} */ bytes) => JSON.parse(new TextDecoder().decode(bytes.subarray(65))).revision;
  assert.deepEqual(slots().map(([, bytes]) => revision(bytes)).sort(), [1, 2]);
  const [name, older] = slots().sort(([, a], [, b]) => revision(a) - revision(b))[0];
  // Every possible beginning of the next write.
  for (let length = 0; length < older.length; length += 7) {
    disk.files.set(name, older.slice(0, length));
    const kept = await (await open()).get("http://a/m");
    assert.ok(kept, `after ${length} bytes`);
    assert.deepEqual(await contents(kept), someBytes(1000));
    kept.release();
    assert.equal(slots().length, 2);
    disk.files.set(name, older);
  }
});

test("records that make no sense are no entries, and neither are those of earlier versions", async () => {
  const { disk, open } = environment("page");
  const store = await open();
  await keep(store, "http://a/m", 1000);
  const json = [...disk.files.keys()].find((name) => name.endsWith(".json")) ?? "";
  const [sound] = await store.list();
  const texts = ["", "{}", "x".repeat(100_000), new TextDecoder().decode(disk.files.get(json)).replace("1000", "1001")];
  for (const text of texts) {
    disk.files.set(json, new TextEncoder().encode(text));
    assert.deepEqual(await store.list(), []);
    await open();
    assert.equal(disk.files.size, 0);
  }
  const records = new AtomicRecords(store.files);
  const changes = [{ size: -1 }, { parts: [] }, { id: "../x" }, { key: "b" }];
  const nonsense = [null, {}, ...changes.map((change) => ({ ...sound, ...change }))];
  for (const value of nonsense) {
    await records.write(/** @type {string} */ (AtomicRecords.nameOf(json)), /** @type {any} */ (value));
    assert.deepEqual(await store.list(), []);
    await open();
    assert.equal(disk.files.size, 0);
  }
  disk.files.set("0123.bytes", new Uint8Array(9)).set("0123.json", new Uint8Array(9)).set("probe", new Uint8Array(0));
  await open();
  assert.deepEqual([...disk.files.keys()], [], "the probe is that of opening");
});

test("two tabs: one downloads, the other waits as long as that gets on", async () => {
  const { disk, locks, open } = environment("worker");
  const [one, two] = [await open(), /** @type {ModelStore} */ (await ModelStore.open({ storage: opfs(disk, "worker"), locks }))];
  const key = "http://a/m";
  /** @type {[number, number][]} */
  const told = [];
  let onLook = (/** @type {unknown} */ _) => {};
  const controller = new AbortController();
  const how = {
    signal: controller.signal,
    patience: 200,
    waits: true,
    onProgress: (/** @type {number} */ stored, /** @type {number} */ size) => {
      told.push([stored, size]);
      if (stored > 0) onLook(undefined);
    },
  };
  const first = await one.turn(key, how);
  assert.ok(first.release && !first.waited);
  assert.deepEqual(await two.turn(key, { ...how, waits: false }), { release: null, waited: false });
  assert.deepEqual(await two.turn(key, how), { release: null, waited: true }, "nothing arrives");
  const making = await create(one, key, LONG);
  const looked = new Promise((resolve) => (onLook = resolve));
  const second = two.turn(key, { ...how, patience: 60_000 });
  await making.write(long.subarray(0, PART));
  await looked;
  await making.write(long.subarray(PART));
  await making.commit(FACTS);
  first.release();
  const { release, waited } = await second;
  assert.ok(release && waited);
  assert.deepEqual(told[0], [PART, LONG]);
  const third = one.turn(key, { ...how, patience: 60_000 });
  setTimeout(() => controller.abort(new Error("enough")), 20);
  await assert.rejects(third, /enough/);
  release();
  await soon();
  assert.equal(/** @type {any} */ (locks).size, 0);
});

test("an entry that could not be finished leaves no record, even if that was written", async () => {
  const { disk, open } = environment("worker");
  const store = await open();
  const recorder = await create(store, "http://a/m", 1000);
  await recorder.write(someBytes(1000));
  const write = disk.write.bind(disk);
  disk.write = (name, bytes) => {
    write(name, bytes);
    if (name.endsWith(".json") && bytes.length > 0) throw new DOMException("it is said to have failed", "UnknownError");
  };
  await assert.rejects(recorder.commit(FACTS), CacheError);
  disk.write = write;
  await recorder.abort();
  assert.equal(disk.files.size, 0);
});

test("what another tab deleted or replaced does not come back", async () => {
  const { open } = environment("worker");
  const store = await open();
  await keep(store, "http://a/m", 1000);
  const kept = await store.get("http://a/m");
  assert.ok(kept);
  await keep(store, "http://a/m", 2000);
  await store.update(kept.entry);
  assert.deepEqual((await store.list()).map(({ size }) => size), [2000]);
  await store.delete("http://a/m");
  await store.update(kept.entry);
  assert.deepEqual(await store.list(), []);
  kept.release();
});

test("storage that fails is a cache error; no storage is no store", async () => {
  const { disk, open } = environment("page");
  const store = await open();
  disk.write = () => {
    throw new DOMException("the disk burns", "UnknownError");
  };
  const recorder = await create(store, "http://a/m", 10);
  await recorder.write(new Uint8Array(10));
  await assert.rejects(recorder.written(), (error) => {
    assert.ok(error instanceof CacheError && !(error instanceof QuotaError));
    return /the disk burns/.test(error.message);
  });
  const locks = lockManager();
  assert.equal(await ModelStore.open({ locks }), null);
  assert.equal(await ModelStore.open({ storage: opfs(new Disk(), "page") }), null, "no locks");
  const denied = /** @type {any} */ ({ getDirectory: async () => Promise.reject(new DOMException("no", "SecurityError")) });
  assert.equal(await ModelStore.open({ storage: denied, locks }), null);
  assert.ok(await ModelStore.open({ storage: denied, locks, caches: cacheStorage(new Disk()) }), "the Cache API instead");
});

test("the key of an address has neither credentials nor fragment", () => {
  assert.equal(keyOf("https://me:secret@example.org/m.gguf?v=1#part"), "https://example.org/m.gguf?v=1");
});
