// Tests of whole loads, with everything that can go wrong between a server, the cache and the engine.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, test } from "node:test";
import * as errors from "../../src/common/errors.js";
import { loadOptions } from "../../src/engine/options.js";
import { PART } from "../../src/cache/stored-parts.js";
import { ModelStore } from "../../src/cache/model-store.js";
import { pieces, script } from "../doubles/bindings.js";
import { Disk, lockManager, opfs } from "../doubles/browser.js";
import { connection, reset } from "../doubles/engine.js";
import { serveFile, someBytes } from "../doubles/server.js";

const file = someBytes(2 * PART + 1_500_000);
const CHUNK = 1 << 20;
const hash = (/** @type {Uint8Array} */ bytes) => createHash("sha256").update(bytes).digest("hex");
const sha256 = hash(file);

/** @param {Uint8Array} of */
const digestsOf = (of) => ({
  size: of.length,
  chunk: CHUNK,
  chunks: Array.from({ length: Math.ceil(of.length / CHUNK) }, (_, i) => hash(of.subarray(i * CHUNK, (i + 1) * CHUNK))),
});
const digests = digestsOf(file);

/** @type {(() => unknown)[]} */
const cleanups = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
  reset();
});

/** @param {import("../doubles/server.js").Behaviour} [behaviour] */
async function served(behaviour) {
  const server = await serveFile(file, behaviour);
  cleanups.push(server.close);
  return server;
}

function site() {
  const disk = new Disk();
  return { disk, environment: { storage: opfs(disk, "worker"), locks: lockManager() } };
}

/** @param {any} environment @param {any} what @param {any} [options] @param {any} [call] */
function load(environment, what, options = {}, call = {}) {
  const opened = connection(environment);
  cleanups.push(() => opened.close().catch(() => {}));
  // Reads in pieces, like the engine.
  script.reads = Array.from({ length: Math.ceil(file.length / 1_000_000) }, (_, i) => {
    const offset = i * 1_000_000;
    return [offset, Math.min(1_000_000, file.length - offset)];
  });
  return opened.client.call("load", { what, options, engine: {} }, call);
}

const read = () => new Uint8Array(Buffer.concat(pieces));
const parts = (/** @type {Disk} */ disk) => [...disk.files.keys()].filter((name) => name.endsWith(".part")).sort();
const ranges = (/** @type {any} */ server) => server.requests.map((/** @type {any} */ request) => request.range);

/**
 * Returns an attempt that ended after one and a half parts. It stalls, since a cut would lose the bytes that were not
 * read yet.
 */
async function interrupted(/** @type {any} */ environment, /** @type {any} */ server, options = {}) {
  Object.assign(server.behaviour, { stallAfter: 1.5 * PART, stalls: 1 });
  const network = { retries: 0, stallTimeout: 300 };
  await assert.rejects(load(environment, server.url, { network, ...options }), errors.NetworkError);
  server.requests.length = 0;
}

test("a download that broke off goes on where it was, at the next visit", async () => {
  const { disk, environment } = site();
  const server = await served();
  await interrupted(environment, server);
  assert.equal(parts(disk).length, 1);
  /** @type {any[]} */
  const progress = [];
  const onEvent = (/** @type {any} */ event) => progress.push(event);
  const facts = await load(environment, server.url, {}, { onEvent });
  assert.deepEqual(facts.info.cache, { state: "stored" });
  assert.deepEqual(read(), file);
  assert.deepEqual(ranges(server), [`bytes=${PART - 4096}-`]);
  assert.equal(progress.find(({ phase }) => phase === "download").loaded, PART);
  server.close();
  assert.equal((await load(environment, server.url)).info.cache.state, "hit");
  assert.deepEqual(read(), file);
});

test("what a download that broke off left is of no use for another version, and is mended", async () => {
  for (const spoil of /** @type {const} */ (["version", "size", "damage", "digests"])) {
    const { disk, environment } = site();
    const server = await served();
    await interrupted(environment, server);
    /** @type {any} */
    let options = {};
    if (spoil === "version") server.behaviour.etag = () => '"v2"';
    if (spoil === "size") server.behaviour.files = { "/model.gguf": file.subarray(0, file.length - 1) };
    if (spoil === "damage") disk.files.get(parts(disk)[0])?.fill(0);
    if (spoil === "digests") options = { digests };
    const loading = load(environment, server.url, options);
    if (spoil === "size") {
      await assert.rejects(loading, errors.FileError, "the double reads to the end of the longer file");
      continue;
    }
    assert.equal((await loading).info.cache.state, "stored", spoil);
    assert.deepEqual(read(), file, spoil);
    const expected = spoil === "damage" ? [undefined, "bytes=4190208-"] : [undefined];
    assert.deepEqual(ranges(server).slice(-expected.length), expected, spoil);
    assert.equal((await load(environment, server.url)).info.cache.state, "hit");
    assert.deepEqual(read(), file);
    assert.equal(parts(disk).length, 3);
  }
});

test("a download that goes on is held to the digest of the whole", async () => {
  const { environment } = site();
  const server = await served();
  await interrupted(environment, server, { sha256 });
  assert.equal((await load(environment, server.url, { sha256 })).info.cache.state, "stored");
  assert.equal(server.requests.length, 1);
  const other = site();
  await interrupted(other.environment, server);
  const wrong = load(other.environment, server.url, { sha256: "0".repeat(64) });
  await assert.rejects(wrong, { name: "ChecksumError", actual: sha256 });
  assert.equal(other.disk.files.size, 0);
});

test("parts that are damaged in the cache come again from the server, in the middle of loading", async () => {
  const { disk, environment } = site();
  const server = await served();
  await load(environment, server.url);
  disk.files.get(parts(disk)[1])?.fill(7);
  disk.files.delete(parts(disk)[2]);
  server.requests.length = 0;
  assert.equal((await load(environment, server.url)).info.cache.state, "hit");
  assert.deepEqual(read(), file);
  assert.deepEqual(ranges(server), [`bytes=${PART}-`, `bytes=${2 * PART}-`]);
  server.requests.length = 0;
  await load(environment, server.url);
  assert.equal(server.requests.length, 0, "they were mended");
});

test("a damaged entry whose file the server has no more is an error that says so, and goes", async () => {
  const { disk, environment } = site();
  const server = await served();
  await load(environment, server.url);
  disk.files.get(parts(disk)[1])?.fill(7);
  server.behaviour.statuses = [500, 500];
  await assert.rejects(load(environment, server.url, { network: { retries: 0 } }), (error) => {
    assert.ok(error instanceof errors.NetworkError);
    return error.status === 500 && /is damaged, and cannot be downloaded again/.test(error.message);
  });
  assert.equal(parts(disk).length, 3, "it may be mended later");
  server.behaviour.statuses = [];
  server.behaviour.etag = () => '"v2"';
  await assert.rejects(load(environment, server.url), /is damaged, and the server has another version/);
  assert.deepEqual(await (await ModelStore.open(environment))?.list(), []);
  assert.equal(disk.files.size, 0);
  assert.equal((await load(environment, server.url)).info.cache.state, "stored");
});

test("two tabs download a file once", async () => {
  const { disk, environment } = site();
  const server = await served({ trickle: 400_000 });
  const states = await Promise.all([load(environment, server.url), load(environment, server.url)]);
  assert.deepEqual(states.map(({ info }) => info.cache.state).sort(), ["hit", "stored"]);
  assert.equal(server.requests.length, 1);
  assert.equal(parts(disk).length, 3);
  assert.equal(/** @type {any} */ (environment.locks).size, 0);
});

test("a tab whose download fails is followed by the one that waits", async () => {
  const { environment } = site();
  const server = await served({ trickle: 400_000, stallAfter: 1.5 * PART, stalls: 1, statuses: [200, 404] });
  const network = { stallTimeout: 500 };
  const first = assert.rejects(load(environment, server.url, { network }), { name: "NetworkError", status: 404 });
  await new Promise((resolve) => setTimeout(resolve, 20));
  const second = load(environment, server.url);
  await first;
  assert.equal((await second).info.cache.state, "stored");
  assert.deepEqual(read(), file);
  assert.equal(ranges(server).at(-1), `bytes=${PART - 4096}-`);
});

test("a tab that does not get on is waited for no longer than a server", async () => {
  const { environment } = site();
  const store = await ModelStore.open(environment);
  const server = await served();
  const forever = { signal: new AbortController().signal, patience: 1, waits: false, onProgress: () => {} };
  const turn = await store?.turn(server.url, forever);
  assert.ok(turn?.release);
  const facts = await load(environment, server.url, { network: { stallTimeout: 300 } });
  assert.equal(facts.info.cache.state, "stored");
  assert.deepEqual(read(), file);
  turn.release();
});

test("pieces are held to their digests before they are used", async () => {
  const { disk, environment } = site();
  const server = await served();
  assert.equal((await load(environment, server.url, { digests })).info.cache.state, "stored");
  assert.deepEqual(read(), file);
  assert.equal(server.requests.length, 1);
  const again = await load(environment, server.url, { digests });
  assert.equal(again.info.cache.state, "hit");
  await load({}, server.url, { digests });
  await load({}, new Blob([file]), { digests });
  // A server that is wrong now and then.
  const flipped = file.map((byte, at) => (at === 3 * CHUNK + 5 ? byte ^ 1 : byte));
  const flaky = await serveFile(file, { bodies: [flipped, file] });
  cleanups.push(flaky.close);
  await load(site().environment, flaky.url, { digests });
  assert.deepEqual(read(), file);
  assert.deepEqual(ranges(flaky), [undefined, `bytes=${3 * CHUNK}-`]);
  // A server that is always wrong.
  const wrong = await serveFile(flipped);
  cleanups.push(wrong.close);
  const there = site();
  await assert.rejects(load(there.environment, wrong.url, { digests }), (error) => {
    assert.ok(error instanceof errors.ChecksumError);
    return error.expected === digests.chunks[3] && error.message.includes(`${3 * CHUNK}`);
  });
  assert.equal(there.disk.files.size, 0);
  assert.ok(Buffer.concat(pieces).length <= 3 * CHUNK, "nothing of it was used");
  await assert.rejects(load({}, new Blob([flipped]), { digests }), errors.ChecksumError);
  await assert.rejects(load({}, wrong.url, { digests: digestsOf(file.subarray(1)) }), errors.ChecksumError);
  // An entry that was stored without digests is checked, and removed if it does not match.
  const old = site();
  await load(old.environment, server.url);
  server.requests.length = 0;
  assert.equal((await load(old.environment, server.url, { digests })).info.cache.state, "hit");
  await assert.rejects(load(old.environment, server.url, { digests: digestsOf(flipped) }), errors.ChecksumError);
  assert.equal(old.disk.files.size, 0);
  assert.ok(disk.files.size > 0);
});

test("digests beside the file", async () => {
  const { environment } = site();
  const text = new TextEncoder().encode(JSON.stringify(digests));
  const files = { "/model.gguf?x=1": file, "/model.gguf.manifest.json?x=1": text };
  const server = await served({ files });
  const url = `${server.url}?x=1`;
  await load(environment, url, { digests: true });
  assert.deepEqual(read(), file);
  assert.equal(server.requests.length, 2);
  await load(environment, url, { digests: true });
  assert.equal(server.requests.length, 2, "what was held to them needs no server");
  const spoilt = [{ chunk: 1 }, { chunks: [] }].map((change) => JSON.stringify({ ...digests, ...change }));
  const texts = ["{", "null", "[]", '{"size":5}', ...spoilt];
  for (const bad of texts) {
    server.behaviour.files = { ...files, "/model.gguf.manifest.json?x=1": new TextEncoder().encode(bad) };
    await assert.rejects(load({}, url, { digests: true }), (error) => {
      assert.ok(error instanceof errors.FileError, `${error}`);
      return /model\.gguf\.manifest\.json/.test(error.message);
    });
  }
  delete server.behaviour.files?.["/model.gguf.manifest.json?x=1"];
  await assert.rejects(load({}, url, { digests: true }), { name: "NetworkError", status: 404 });
  await assert.rejects(load({}, new Blob([file]), { digests: true }), { name: "OptionsError", field: "digests" });
});

test("digests hold where the browser has none of its own, as on pages that came by http", async () => {
  const { crypto } = globalThis;
  cleanups.push(() => Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true }));
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  const server = await served();
  await load({}, server.url, { digests });
  assert.deepEqual(read(), file);
  const wrong = { ...digests, chunks: digests.chunks.map((_, i) => digests.chunks[i === 2 ? 1 : i]) };
  await assert.rejects(load({}, server.url, { digests: wrong }), errors.ChecksumError);
});

test("digests tell the size that the server does not", async () => {
  const server = await served({ noLength: true });
  const { environment } = site();
  assert.equal((await load(environment, server.url, { digests })).info.cache.state, "stored");
  assert.deepEqual(read(), file);
  assert.equal(server.requests.length, 1);
});

test("digests are checked, and the field is named", () => {
  const bad = [
    [5, "digests"],
    [{ ...digests, size: 0 }, "digests.size"],
    [{ ...digests, chunk: 1000 }, "digests.chunk"],
    [{ ...digests, chunks: ["x"] }, "digests.chunks"],
    [[digests, { ...digests, size: -1 }], "digests[1].size"],
  ];
  for (const [value, field] of bad) {
    assert.throws(() => loadOptions({ digests: value }), { name: "OptionsError", field });
  }
  const loud = { ...digests, chunks: digests.chunks.map((digest) => digest.toUpperCase()) };
  assert.deepEqual(loadOptions({ digests: loud }).digests, digests);
  assert.equal(loadOptions({ digests: true }).digests, true);
});
