import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, test } from "node:test";
import { FileError, NetworkError, OptionsError } from "../../src/common/errors.js";
import { FilesSource, siblings } from "../../src/download/model-files.js";
import { keyOf } from "../../src/cache/entry.js";
import { AnyGpu } from "../../src/index.js";
import { loadOptions } from "../../src/engine/options.js";
import { RemoteFile } from "../../src/download/remote-file.js";
import { BlobSource, UrlSource } from "../../src/download/source.js";
import { RemoteStream } from "../../src/download/remote-stream.js";
import { pieces, script, seen } from "../doubles/bindings.js";
import { Disk, lockManager, opfs } from "../doubles/browser.js";
import { connection, reset } from "../doubles/engine.js";
import { serveFile, serveMade, someBytes } from "../doubles/server.js";

const SIZES = [40_000, 900_000, 700_001];
const all = someBytes(SIZES.reduce((a, b) => a + b));
const starts = SIZES.map((_, i) => SIZES.slice(0, i).reduce((a, b) => a + b, 0));
const files = SIZES.map((size, i) => all.slice(starts[i], starts[i] + size));
const path = (/** @type {number} */ number) => `/a%20b/m-0000${number}-of-00003.gguf?download=true`;
const sha256 = files.map((file) => createHash("sha256").update(file).digest("hex"));

/** Reads of the engine: a header of each file, then each to its end. @type {[number, number][]} */
const READS = [
  ...starts.map((start) => /** @type {[number, number]} */ ([start, 30_000])),
  ...SIZES.map((size, i) => /** @type {[number, number]} */ ([starts[i] + 20_000, size - 20_000])),
];

/** @type {(() => unknown)[]} */
const cleanups = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
  reset();
});

/** @param {import("../doubles/server.js").Behaviour} [behaviour] */
async function served(behaviour) {
  const here = Object.fromEntries(files.map((file, i) => [path(i + 1), file]));
  const server = await serveFile(all, { files: here, ...behaviour });
  cleanups.push(server.close);
  return { ...server, first: new URL(path(1), server.url).href };
}

function site() {
  const disk = new Disk();
  return { disk, environment: { storage: opfs(disk, "worker"), locks: lockManager() } };
}

/** @param {any} environment @param {any} what @param {any} [options] @param {any} [call] */
async function load(environment, what, options = {}, call = {}) {
  script.reads = READS;
  const opened = connection(environment);
  cleanups.push(() => opened.close().catch(() => {}));
  return opened.client.call("load", { what, options, engine: {} }, call);
}

function assertRead() {
  assert.deepEqual(seen.files, SIZES);
  for (const [i, [offset, length]] of READS.entries()) {
    assert.deepEqual(pieces[i], all.subarray(offset, offset + length), `piece ${i}`);
  }
}

test("the addresses of all files follow from one of them", () => {
  const at = (/** @type {string} */ name) => `https://me:secret@a.org/x/${name}`;
  const three = [1, 2, 3].map((n) => at(`m-0000${n}-of-00003.gguf?download=true#x`));
  for (const one of three) assert.deepEqual(siblings(one), three);
  assert.deepEqual(siblings(at("m-00001-of-00001.gguf")), [at("m-00001-of-00001.gguf")]);
  for (const other of ["m.gguf", "m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-1-of-3.gguf", "m.gguf?f=m-00001-of-00003.gguf"]) {
    assert.deepEqual(siblings(at(other)), [at(other)]);
  }
  assert.deepEqual(siblings("data:,x"), ["data:,x"]);
});

test("files that were dropped are read as one, in the order in which they are given", async () => {
  const facts = await load({}, files.map((file) => new Blob([file])));
  assertRead();
  assert.equal(facts.info.cache.state, "off");
  await load({}, files.map((file) => new Blob([file])), { sha256 });
  const wrong = [sha256[0], sha256[2], sha256[1]];
  await assert.rejects(load({}, files.map((file) => new Blob([file])), { sha256: wrong }), { name: "ChecksumError", actual: sha256[1] });
});

test("a split model by the address of one file: downloaded in order, kept, and not asked for again", async () => {
  const { disk, environment } = site();
  const server = await served();
  /** @type {any[]} */
  const progress = [];
  const first = await load(environment, new URL(path(2), server.url).href, {}, { onEvent: (/** @type {any} */ p) => progress.push(p) });
  assertRead();
  assert.deepEqual(first.info.cache, { state: "stored" });
  assert.equal(disk.files.size, 6);
  assert.deepEqual(server.requests.slice(0, 3).map((r) => [r.path, r.range]), [1, 2, 3].map((n) => [path(n), undefined]));
  assert.ok(server.requests.length <= 9, `${server.requests.length} requests`);
  const phases = progress.map((p) => p.phase).filter((p, i, all) => p !== all[i - 1]);
  assert.deepEqual(phases, ["connect", "download", "select", "download", "upload", "ready"]);
  assert.ok(progress.every((p, i) => i === 0 || p.fraction >= progress[i - 1].fraction));
  const downloads = progress.filter((p) => p.phase === "download");
  assert.deepEqual([...new Set(downloads.map((p) => p.total))], [0, all.length]);
  assert.deepEqual(downloads[downloads.length - 1].loaded, all.length);
  assert.deepEqual(progress[progress.length - 1], { phase: "ready", loaded: all.length, total: all.length, fraction: 1 });

  const before = server.requests.length;
  assert.deepEqual((await load(environment, server.first)).info.cache, { state: "hit" });
  assertRead();
  assert.equal(server.requests.length, before);

  const { ModelStore } = await import("../../src/cache/model-store.js");
  await (await ModelStore.open(environment))?.delete(keyOf(new URL(path(3), server.url)));
  assert.deepEqual((await load(environment, server.first)).info.cache, { state: "stored" });
  assertRead();
  assert.ok(server.requests.slice(before).every((r) => r.path === path(3)), "only what is not here");
});

test("one connection at a time, with ranges and without", async () => {
  const { fetch } = globalThis;
  cleanups.push(() => (globalThis.fetch = fetch));
  /** @type {AbortSignal[]} */
  const connections = [];
  globalThis.fetch = (url, init) => {
    // The wasm module is not one of the files.
    if (String(url).startsWith("data:")) return fetch(url);
    assert.ok(connections.every((signal) => signal.aborted), `${url} beside another`);
    connections.push(/** @type {AbortSignal} */ (init?.signal));
    return fetch(url, init);
  };
  for (const behaviour of [{}, { ignoreRange: true }]) {
    const server = await served(behaviour);
    await load({}, server.first, { cache: false });
    assertRead();
  }
  assert.ok(connections.length >= 6);
});

test("servers that do not say how long the files are", async () => {
  const { environment } = site();
  const server = await served({ noLength: true });
  assert.deepEqual((await load(environment, server.first)).info.cache, { state: "stored" });
  assertRead();
  server.close();
  assert.equal((await load(environment, server.first)).info.cache.state, "hit");
});

test("a file that is missing is named, and nothing is left behind", async () => {
  const { disk, environment } = site();
  const server = await served();
  delete server.behaviour.files?.[path(3)];
  await assert.rejects(load(environment, server.first), (error) => {
    assert.ok(error instanceof NetworkError);
    assert.equal(error.status, 404);
    return error.message.includes("m-00003-of-00003.gguf");
  });
  assert.equal(disk.files.size, 0);
});

test("a digest for each file; files that are right are kept when another is not", async () => {
  const { disk, environment } = site();
  const server = await served();
  await assert.rejects(load(environment, server.first, { sha256: sha256[0] }), (error) => {
    assert.ok(error instanceof OptionsError);
    return error.field === "sha256" && /3 files.*given for 1;/.test(error.message);
  });
  const wrong = [sha256[0], "0".repeat(64), sha256[2]];
  await assert.rejects(load(environment, server.first, { sha256: wrong }), { name: "ChecksumError", actual: sha256[1] });
  assert.equal(disk.files.size, 2, "the first one");
  assert.equal((await load(environment, server.first, { sha256 })).info.cache.state, "stored");
  assertRead();
});

test("the cache holds no more than it may, and says why a model is not kept", async () => {
  const { disk, environment } = site();
  const server = await served();
  const facts = await load(environment, server.first, { maxCacheBytes: 1_000_000 });
  assertRead();
  assert.equal(facts.info.cache.state, "off");
  assert.match(facts.info.cache.reason, /1640001 bytes.*maxCacheBytes/);
  assert.ok(disk.used <= 1_001_000, `${disk.used}`);
});

test("options and sources are checked", async () => {
  assert.deepEqual(loadOptions({ sha256: [sha256[0].toUpperCase(), sha256[1]] }).sha256, sha256.slice(0, 2));
  assert.throws(() => loadOptions({ sha256: [sha256[0], "x"] }), /sha256\[1\]/);
  await assert.rejects(AnyGpu.load([]), (error) => error instanceof OptionsError && error.field === "source");
  await assert.rejects(AnyGpu.load(/** @type {any} */ ([new Blob([]), 5])), OptionsError);
});

const GIB = 2 ** 30;
const byteAt = (/** @type {number} */ offset) => (Math.floor(offset / GIB) * 16 + (offset % 13)) & 255;
const made = (/** @type {number} */ offset, /** @type {number} */ length) =>
  Uint8Array.from({ length }, (_, i) => byteAt(offset + i));

/** Returns a file of any size, whose bytes are computed when a slice is read. */
const sparse = (/** @type {number} */ size) =>
  /** @type {Blob} */ (
    /** @type {unknown} */ ({
      size,
      slice: (/** @type {number} */ from, /** @type {number} */ to) => ({
        arrayBuffer: async () => made(from, Math.min(to, size) - from).buffer,
      }),
    })
  );

test("files beyond four gibibytes", async () => {
  const one = new BlobSource(sparse(6 * GIB + 5));
  for (const offset of [4 * GIB - 3, 4 * GIB, 5 * GIB + 7, 6 * GIB]) {
    assert.deepEqual(await one.readAt(offset, 5), made(offset, 5), `${offset}`);
  }
  const sizes = [3 * GIB + 1, 5 * GIB, 10];
  const several = new FilesSource(sizes.map((size) => new BlobSource(sparse(size))));
  assert.deepEqual([several.size, several.files], [8 * GIB + 11, sizes]);
  assert.deepEqual(await several.readAt(2 * GIB, 5), made(2 * GIB, 5));
  assert.deepEqual(await several.readAt(3 * GIB + 1, 5), made(0, 5));
  assert.deepEqual(await several.readAt(7 * GIB + 2, 5), made(4 * GIB + 1, 5));
  assert.deepEqual(await several.readAt(8 * GIB + 1, 10), made(0, 10));
  await assert.rejects(several.readAt(8 * GIB + 11, 1), FileError);
});

test("ranges beyond four gibibytes", async () => {
  const server = await serveMade(6 * GIB, byteAt);
  cleanups.push(server.close);
  const remote = new RemoteFile(server.url, { retries: 1, signal: new AbortController().signal });
  const stream = await RemoteStream.open(remote);
  const nothing = {
    ...{ recorder: null, digest: null, sha256: null, manifest: null, onRecorderFailure: () => {}, onBytes: () => {} },
    newStream: (/** @type {number} */ position) => new RemoteStream(remote, position),
  };
  const source = new UrlSource(remote, stream, remote.size ?? 0, nothing);
  cleanups.push(() => source.abort());
  assert.equal(source.size, 6 * GIB);
  for (const offset of [0, 5 * GIB + 3, 4 * GIB - 3]) {
    assert.deepEqual(await source.readAt(offset, 1000), made(offset, 1000), `${offset}`);
    source.pause();
    assert.deepEqual(await source.readAt(offset + 1000, 200_000), made(offset + 1000, 200_000), `${offset} and on`);
  }
  assert.ok(server.ranges.includes(`bytes=${5 * GIB + 3}-`));
});
