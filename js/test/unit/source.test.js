import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { afterEach, test } from "node:test";
import { ChecksumError, FileError, NetworkError } from "../../src/common/errors.js";
import { RemoteFile } from "../../src/download/remote-file.js";
import { BlobSource, UrlSource } from "../../src/download/source.js";
import { RemoteStream, spool } from "../../src/download/remote-stream.js";
import { serveFile, someBytes } from "../doubles/server.js";

const SIZE = 3_000_000;
const file = someBytes(SIZE);
const RETRIES = 3;
/** Number of bytes that a resuming stream asks for again. */
const OVERLAP = 4096;

/** @type {(() => void)[]} */
const cleanups = [];
afterEach(() => cleanups.splice(0).forEach((cleanup) => cleanup()));

/** @param {import("../doubles/server.js").Behaviour} [behaviour] */
async function served(behaviour) {
  const server = await serveFile(file, behaviour);
  cleanups.push(server.close);
  return server;
}

function recorder({ failsAt = Infinity } = {}) {
  /** @type {Uint8Array[]} */
  const parts = [];
  const whole = () => new Uint8Array(Buffer.concat(parts));
  const state = { aborted: false, /** @type {any} */ committed: null, whole };
  return {
    ...state,
    state,
    async write(/** @type {Uint8Array} */ bytes) {
      if (whole().length + bytes.length > failsAt) throw new Error("full");
      parts.push(bytes.slice());
    },
    get position() {
      return whole().length;
    },
    async read(/** @type {number} */ offset, /** @type {number} */ length) {
      return whole().slice(offset, offset + length);
    },
    async commit(/** @type {any} */ facts) {
      state.committed = facts;
    },
    async abort() {
      state.aborted = true;
    },
  };
}

/** @param {string} url @param {any} [options] */
async function urlSource(url, { controller = new AbortController(), stallTimeout = 20_000, ...options } = {}) {
  const remote = new RemoteFile(url, { retries: RETRIES, stallTimeout, signal: controller.signal });
  const stream = await RemoteStream.open(remote);
  /** @type {unknown[]} */
  const failures = [];
  const loaded = { bytes: 0 };
  const source = new UrlSource(remote, stream, remote.size ?? 0, {
    recorder: null,
    digest: null,
    sha256: null,
    manifest: null,
    newStream: (/** @type {number} */ position) => new RemoteStream(remote, position),
    onRecorderFailure: (/** @type {unknown} */ error) => failures.push(error),
    onBytes: (/** @type {number} */ bytes) => (loaded.bytes = bytes),
    ...options,
  });
  cleanups.push(() => source.abort());
  return { source, remote, failures, loaded };
}

/** @param {{ readAt(o: number, l: number): Promise<Uint8Array> }} source @param {number} [step] */
async function readAll(source, step = 700_001) {
  for (let at = 0; at < SIZE; at += step) {
    const length = Math.min(step, SIZE - at);
    assert.deepEqual(await source.readAt(at, length), file.subarray(at, at + length), `bytes at ${at}`);
  }
}

test("a file is read in order with one request, without a header that other origins must allow", async () => {
  const server = await served();
  const { source, loaded } = await urlSource(server.url);
  assert.equal(source.size, SIZE);
  await readAll(source);
  await source.finish();
  assert.equal(server.requests.length, 1);
  assert.equal(server.requests[0].range, undefined);
  assert.equal(server.requests[0].headers["if-range"], undefined);
  assert.equal(loaded.bytes, SIZE);
});

test("a dropped connection goes on from where it was", async () => {
  const server = await served({ cutAfter: 900_000 });
  const record = recorder();
  const { source } = await urlSource(server.url, { recorder: record });
  await readAll(source);
  await source.finish();
  assert.deepEqual(server.requests.map((r) => r.range), [
    undefined,
    ...[1, 2, 3].map((times) => `bytes=${times * (900_000 - OVERLAP)}-`),
  ], "the last bytes are asked for again");
  assert.deepEqual(record.state.whole(), file);
});

test("a dropped connection goes on even where the server has no ranges", async () => {
  const server = await served({ cutAfter: 2_000_000, ignoreRange: true });
  const { source } = await urlSource(server.url, { recorder: recorder() });
  await source.readAt(0, 1_500_000);
  server.behaviour.cutAfter = Infinity;
  assert.deepEqual(await source.readAt(1_500_000, 1_500_000), file.subarray(1_500_000));
});

test("attempts without progress are bounded", async () => {
  const server = await served({ cutAfter: 0 });
  const { source } = await urlSource(server.url);
  await assert.rejects(source.readAt(0, 10), (error) => {
    assert.ok(error instanceof NetworkError);
    assert.match(error.message, /in 4 attempts/);
    assert.equal(error.url, server.url);
    return true;
  });
  assert.equal(server.requests.length, 1 + RETRIES);
});

test("a stalled connection is made anew", async () => {
  const server = await served({ stallAfter: 1_000_000, stalls: 2 });
  const { source } = await urlSource(server.url, { stallTimeout: 400 });
  await readAll(source);
  assert.deepEqual(server.requests.map((r) => r.range), [
    undefined,
    ...[1, 2, 3].map((times) => `bytes=${times * (1_000_000 - OVERLAP)}-`),
  ].slice(0, 3));
});

for (const wrongly of /** @type {const} */ (["hidden", "whole", "shifted", "lying", "longer", "shorter", "ahead"])) {
  test(`a server whose parts are ${wrongly} gives the right file or none`, async () => {
    const server = await served({ cutAfter: 1_000_000, part: wrongly });
    const record = recorder();
    const { source } = await urlSource(server.url, { recorder: record });
    await source.readAt(0, 900_000);
    server.behaviour.cutAfter = Infinity;
    assert.deepEqual(await source.readAt(900_000, 1_500_000), file.subarray(900_000, 2_400_000));
    await source.finish();
    assert.deepEqual(record.state.whole(), file);
    const believed = wrongly === "hidden" || wrongly === "shorter";
    const asksForAll = server.requests.at(-1)?.range === undefined;
    assert.equal(asksForAll, !believed, "whole files are asked for where parts are wrong");
  });
}

test("a server that sends wrong parts and has no whole file any more", async () => {
  const server = await served({ cutAfter: 1_000_000, part: "shifted", statuses: [200, 200, 404] });
  const { source } = await urlSource(server.url, { recorder: recorder() });
  await assert.rejects(readAll(source), (error) => error instanceof NetworkError && error.status === 404);
});

test("a part of a file is no file", async () => {
  const server = await served({ always206: true });
  await assert.rejects(urlSource(server.url), (error) => error instanceof NetworkError && error.status === 206);
});

test("a file that changes under way without saying so", async () => {
  const server = await served({ cutAfter: 1_000_000, etag: () => undefined, ignoreRange: true });
  const { source } = await urlSource(server.url, { recorder: recorder() });
  await source.readAt(0, 900_000);
  server.behaviour.files = { "/model.gguf": file.map((byte) => byte ^ 1) };
  await assert.rejects(source.readAt(900_000, 1_500_000), /changed on the server/);
});

test("what a server compresses is bounded by what it sends", async () => {
  const noise = new Uint8Array(randomBytes(1_000_000));
  const honest = await serveFile(noise, { gzip: true });
  cleanups.push(honest.close);
  const { remote } = await urlSource(honest.url);
  assert.equal(remote.size, null);
  const blob = await spool(await RemoteStream.open(remote), () => {});
  assert.deepEqual(new Uint8Array(await blob.arrayBuffer()), noise);
  const bomb = await serveFile(new Uint8Array(64 << 20), { gzip: true });
  cleanups.push(bomb.close);
  const inflating = new RemoteFile(bomb.url, { retries: RETRIES, signal: new AbortController().signal });
  const stream = await RemoteStream.open(inflating);
  let bytes = 0;
  await assert.rejects(spool(stream, (more) => (bytes += more)), (error) => {
    assert.ok(error instanceof NetworkError);
    return /more than \d+ bytes/.test(error.message);
  });
  assert.ok(bytes < 2 << 20, `${bytes} bytes were read`);
});

test("temporary server errors are tried again, others are not", async () => {
  const server = await served({ statuses: [503, 429, 200] });
  const { source } = await urlSource(server.url);
  await source.readAt(0, 10);
  assert.equal(server.requests.length, 3);
  const missing = await served({ statuses: [404] });
  await assert.rejects(urlSource(missing.url), (error) => error instanceof NetworkError && error.status === 404);
  assert.equal(missing.requests.length, 1);
});

test("requests and bodies that never settle, whatever becomes of their signal, are given up", async () => {
  const { fetch } = globalThis;
  cleanups.push(() => (globalThis.fetch = fetch));
  const bodies = [undefined, { getReader: () => ({ read: () => new Promise(() => {}) }) }];
  for (const body of bodies) {
    const answer = { status: 200, headers: new Headers({ "Content-Length": "10" }), body };
    globalThis.fetch = async () => (body ? /** @type {any} */ (answer) : new Promise(() => {}));
    const remote = new RemoteFile("http://a/m", { retries: 1, stallTimeout: 50, signal: new AbortController().signal });
    const reading = RemoteStream.open(remote).then((stream) => stream.next());
    await assert.rejects(reading, (error) => error instanceof NetworkError && /nothing arrived/.test(error.message));
  }
});

test("nobody listens: a network error that names the address", async () => {
  const server = await serveFile(file);
  server.close();
  await assert.rejects(urlSource(server.url), (error) => error instanceof NetworkError && error.url === server.url);
});

test("a file that changes under way is an error", async () => {
  const server = await served({ cutAfter: 1_000_000, etag: (request) => `"v${Math.min(request, 2)}"` });
  const { source } = await urlSource(server.url, { recorder: recorder() });
  await assert.rejects(readAll(source), /changed on the server/);
});

test("what was passed is read from the record, and the rest of the file is read at the end", async () => {
  const server = await served();
  const record = recorder();
  const { source } = await urlSource(server.url, { recorder: record });
  for (const [offset, length] of [[0, 1000], [2_000_000, 5000], [500, 2000], [1_000_000, 1_500_000]]) {
    assert.deepEqual(await source.readAt(offset, length), file.subarray(offset, offset + length));
  }
  assert.equal(record.state.committed, null);
  await source.finish();
  assert.equal(server.requests.length, 1);
  assert.deepEqual(record.state.whole(), file);
  assert.deepEqual(record.state.committed, { sha256: null, manifest: null, etag: '"v1"', lastModified: null });
});

test("without a record, what the digest needs is read in order and earlier bytes are asked for again", async () => {
  const server = await served();
  const hash = createHash("sha256");
  const digest = { update: (/** @type {Uint8Array} */ bytes) => void hash.update(bytes), hex: () => hash.digest("hex") };
  const sha256 = createHash("sha256").update(file).digest("hex");
  const { source } = await urlSource(server.url, { digest, sha256 });
  await source.readAt(2_000_000, 5000);
  for (const [offset, length] of [[500, 2000], [2500, 1000], [1_900_000, 300_000]]) {
    assert.deepEqual(await source.readAt(offset, length), file.subarray(offset, offset + length));
  }
  await source.finish();
  assert.deepEqual(server.requests.map((r) => r.range), [undefined, "bytes=500-", "bytes=1900000-"]);
});

test("without record and digest, long jumps are requests and short ones are read over", async () => {
  const server = await served();
  const { source } = await urlSource(server.url);
  for (const [offset, length] of [[0, 1000], [50_000, 10], [2_500_000, 5000], [1_000, 2000]]) {
    assert.deepEqual(await source.readAt(offset, length), file.subarray(offset, offset + length));
  }
  await source.finish();
  assert.deepEqual(server.requests.map((r) => r.range), [undefined, "bytes=2500000-", "bytes=1000-"]);
});

test("reading back and forth from a server without ranges downloads the file once more, not each time", async () => {
  const server = await served({ ignoreRange: true });
  const { source } = await urlSource(server.url);
  for (const [offset, length] of [[1_000_000, 1000], [10, 1000], [2_500_000, 5000], [1_000, 2000], [0, 5]]) {
    assert.deepEqual(await source.readAt(offset, length), file.subarray(offset, offset + length));
  }
  assert.ok(server.requests.length <= 3, `${server.requests.length} requests`);
});

test("a download that the browser does not hold is no file that the user changed", async (t) => {
  const { url } = await served({ ignoreRange: true });
  const { source } = await urlSource(url);
  t.mock.method(Blob.prototype, "arrayBuffer", async () => {
    throw new DOMException("not readable", "NotReadableError");
  });
  await assert.rejects(source.readAt(2_000_000, 8), (error) => {
    return error instanceof FileError && /did not hold the whole download; use a server that/.test(error.message);
  });
});

test("a record that fails is given up, and loading goes on", async () => {
  const server = await served();
  const record = recorder({ failsAt: 1_500_000 });
  const { source, failures } = await urlSource(server.url, { recorder: record });
  await readAll(source);
  assert.deepEqual(await source.readAt(10, 20), file.subarray(10, 30));
  await source.finish();
  assert.equal(failures.length, 1);
  assert.equal(record.state.aborted, true);
  assert.equal(record.state.committed, null);
});

test("a record that fails ends loading if the caller says so", async () => {
  const server = await served();
  const record = recorder({ failsAt: 10 });
  const onRecorderFailure = (/** @type {unknown} */ error) => {
    throw error;
  };
  const { source } = await urlSource(server.url, { recorder: record, onRecorderFailure });
  await assert.rejects(source.readAt(0, 1000), /full/);
  assert.equal(record.state.aborted, true);
});

test("the digest is of the whole file in its order", async () => {
  const server = await served();
  const sha256 = createHash("sha256").update(file).digest("hex");
  const digest = () => {
    const hash = createHash("sha256");
    return { update: (/** @type {Uint8Array} */ b) => void hash.update(b), hex: () => hash.digest("hex") };
  };
  const right = recorder();
  const good = await urlSource(server.url, { recorder: right, digest: digest(), sha256 });
  await good.source.readAt(2_000_000, 100);
  await good.source.readAt(0, 100);
  await good.source.finish();
  assert.equal(right.state.committed.sha256, sha256);
  const wrong = recorder();
  const bad = await urlSource(server.url, { recorder: wrong, digest: digest(), sha256: "0".repeat(64) });
  await assert.rejects(bad.source.finish(), (error) => {
    assert.ok(error instanceof ChecksumError);
    return error.actual === sha256 && error.expected === "0".repeat(64);
  });
  assert.equal(wrong.state.committed, null);
  assert.equal(wrong.state.aborted, true);
});

test("an abort ends waiting with its reason", async () => {
  const server = await served({ stallAfter: 1000, stalls: 9 });
  const controller = new AbortController();
  const record = recorder();
  const { source } = await urlSource(server.url, { controller, recorder: record });
  const reading = source.readAt(0, 5000);
  setTimeout(() => controller.abort(new Error("enough")), 30);
  await assert.rejects(reading, /enough/);
  await source.abort();
  assert.equal(record.state.aborted, true);
});

test("reading waits for whoever reads: little is in memory", async () => {
  const big = new Uint8Array(64 << 20);
  const server = await serveFile(big);
  cleanups.push(server.close);
  const { source, loaded } = await urlSource(server.url, { recorder: recorder() });
  await source.readAt(0, 1000);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(loaded.bytes, 1000);
});

test("a blob is read by slices, and one that vanished is a file error", async () => {
  const source = new BlobSource(new Blob([file]));
  await readAll(source);
  const gone = { size: 10, slice: () => ({ arrayBuffer: () => Promise.reject(new DOMException("x", "NotReadableError")) }) };
  await assert.rejects(new BlobSource(/** @type {any} */ (gone)).readAt(0, 5), FileError);
});
