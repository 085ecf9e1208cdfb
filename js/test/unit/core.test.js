import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, test } from "node:test";
import { Client } from "../../src/workers/client.js";
import * as errors from "../../src/common/errors.js";
import { chooseThread, mayCompile } from "../../src/module/gpu-features.js";
import { AnyGpu } from "../../src/index.js";
import { loadOptions } from "../../src/engine/options.js";
import { start } from "../../src/module/start-module.js";
import * as bindings from "../doubles/bindings.js";
import { pieces, script, seen } from "../doubles/bindings.js";
import { Disk, lockManager, opfs } from "../doubles/browser.js";
import { MODULE, connection, engine, reset, suite } from "../doubles/engine.js";
import { serveFile, someBytes } from "../doubles/server.js";

const file = someBytes(2_000_000);
const sha256 = createHash("sha256").update(file).digest("hex");

/** @type {(() => unknown)[]} */
const cleanups = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
  reset();
});

function link(environment = {}) {
  const opened = connection(environment);
  cleanups.push(() => opened.close().catch(() => {}));
  return opened;
}

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

/** @param {any} environment @param {Blob | string} what @param {any} [options] @param {any} [call] */
const load = (environment, what, options = {}, call = {}) =>
  link(environment).client.call("load", { what, options, engine: {} }, call);

const soon = () => new Promise((resolve) => setTimeout(resolve, 1));

const read = () => new Uint8Array(Buffer.concat(pieces));

test("a file loads from a blob, and the engine gets its options", async () => {
  const facts = await link().client.call("load", { what: new Blob([file]), options: {}, engine: { backend: "cpu", n_ctx: undefined } });
  assert.deepEqual(read(), file);
  assert.deepEqual(JSON.parse(seen.options[0]), { backend: "cpu" });
  assert.equal(facts.info.cache.state, "off");
});

test("an answer in a format has the page say which tokens come next, and an abort does not wait for that", async () => {
  const { client } = link();
  await client.call("load", { what: new Blob([file]), options: {}, engine: {} });
  const params = { prompt: { text: "a" }, generate: { held_to: "\"object\"", max_tokens: 2 } };
  /** @type {number[][]} */
  const answers = [];
  const onEvent = (/** @type {any} */ { mask }) => {
    if (mask === undefined) return;
    answers.push([...mask.answer]);
    // A mask for another answer is ignored.
    client.call("masked", { id: mask.id - 1, error: "late" });
    client.call("masked", { id: mask.id, mask: Uint32Array.of(120 + answers.length, 0) });
  };
  assert.deepEqual((await client.call("generate", params, { onEvent })).text, "yz");
  assert.deepEqual(answers, [[], [121]]);
  const failed = client.call("generate", params, { onEvent: ({ mask }) => mask && client.call("masked", { id: mask.id, error: "no way" }) });
  await assert.rejects(failed, /no way/);
  const controller = new AbortController();
  const aborted = client.call("generate", params, { signal: controller.signal, onEvent: () => controller.abort() });
  await assert.rejects(aborted, { name: "AbortError" });
  // The next answer is not affected either.
  assert.equal((await client.call("generate", { ...params, generate: { max_tokens: 1 } })).text, "a");
});

test("the first load downloads and keeps, the second needs no server", async () => {
  const { disk, environment } = site();
  const server = await served();
  /** @type {any[]} */
  const progress = [];
  const first = await load(environment, server.url, {}, { onEvent: (/** @type {any} */ p) => progress.push(p) });
  assert.deepEqual(first.info.cache, { state: "stored" });
  assert.deepEqual(progress.map((p) => p.phase).filter((p, i, all) => p !== all[i - 1]), ["connect", "download", "select", "download", "upload", "ready"]);
  assert.ok(progress.every((p, i) => i === 0 || p.fraction >= progress[i - 1].fraction));
  assert.deepEqual(progress.at(-1), { phase: "ready", loaded: file.length, total: file.length, fraction: 1 });
  // Every rung is reported, however soon they follow each other.
  assert.deepEqual(progress.filter((p) => p.rung).map(({ phase, rung }) => [phase, rung.outcome.kind]), [["select", "trying"], ["select", "chosen"]]);
  server.close();
  const second = await load(environment, server.url);
  assert.deepEqual(second.info.cache, { state: "hit" });
  assert.deepEqual(read(), file);
  assert.equal(server.requests.length, 1);
  assert.equal(disk.files.size, 3, "one part, and a record in two slots");
});

test("revalidation downloads what changed, keeps what did not, and makes do offline", async () => {
  const { environment } = site();
  const server = await served();
  await load(environment, server.url);
  const same = await load(environment, server.url, { revalidate: true });
  assert.equal(same.info.cache.state, "hit");
  server.behaviour.etag = () => '"v2"';
  const changed = await load(environment, server.url, { revalidate: true });
  assert.equal(changed.info.cache.state, "stored");
  server.close();
  const offline = await load(environment, server.url, { revalidate: true, network: { retries: 0 } });
  assert.equal(offline.info.cache.state, "hit");
  assert.match(offline.info.cache.reason, /not revalidated/);
});

test("nothing is kept of what fails, is aborted, or is not what its digest says", async () => {
  const { disk, environment } = site();
  const server = await served();
  await assert.rejects(load(environment, server.url, { sha256: "0".repeat(64) }), { name: "ChecksumError", actual: sha256 });
  assert.equal(disk.files.size, 0);
  assert.equal(seen.freed, 1, "the engine is not handed out");
  script.loadThrows = Object.assign(new Error("no GGUF file"), { code: "file" });
  await assert.rejects(load(environment, server.url), errors.FileError);
  script.loadThrows = null;
  script.reads = [[0, 100], [1_900_000, 100_001]];
  await assert.rejects(load(environment, server.url), errors.FileError);
  script.reads = null;
  const flaky = await served({ cutAfter: 1_000_000, statuses: [200, 403] });
  await assert.rejects(load(environment, flaky.url), { name: "NetworkError", status: 403 });
  const stalled = await served({ stallAfter: 500_000, stalls: 9 });
  const controller = new AbortController();
  const { client } = link(environment);
  const what = { what: stalled.url, options: {}, engine: {} };
  const loading = client.call("load", what, { signal: controller.signal });
  setTimeout(() => controller.abort(new Error("changed my mind")), 100);
  await assert.rejects(loading, /changed my mind/);
  await client.close(new errors.DisposedError("done"));
  assert.equal(disk.files.size, 0);
});

test("a digest is checked whatever the way", async () => {
  const { disk, environment } = site();
  const server = await served();
  await load(environment, server.url);
  await load(environment, server.url, { sha256 });
  assert.equal(server.requests.length, 1, "computed from the cache");
  await load(environment, server.url, { sha256 });
  const other = createHash("sha256").update("other").digest("hex");
  await assert.rejects(load(environment, server.url, { sha256: other }), errors.ChecksumError);
  assert.equal(server.requests.length, 2, "the server may have had that version");
  assert.equal(disk.files.size, 0);
  await load({}, new Blob([file]), { sha256 });
  await assert.rejects(load({}, new Blob([file.subarray(1)]), { sha256 }), errors.ChecksumError);
  const unsized = await served({ noLength: true });
  await load({}, unsized.url, { sha256 });
  await assert.rejects(load({}, unsized.url, { sha256: "0".repeat(64) }), errors.ChecksumError);
});

test("a server that does not say how long the file is: downloaded, kept, loaded", async () => {
  const { environment } = site();
  const server = await served({ noLength: true });
  const facts = await load(environment, server.url);
  assert.deepEqual(facts.info.cache, { state: "stored" });
  assert.deepEqual(read(), file);
  server.close();
  assert.equal((await load(environment, server.url)).info.cache.state, "hit");
});

test("a full disk stops nothing unless the caller says so", async () => {
  const { disk, environment } = site();
  disk.tells = false;
  disk.quota = 1_000_000;
  const server = await served();
  const facts = await load(environment, server.url);
  assert.equal(facts.info.cache.state, "off");
  assert.match(facts.info.cache.reason, /storage is full/);
  assert.deepEqual(read(), file);
  assert.equal(disk.files.size, 0);
  await assert.rejects(load(environment, server.url, { cache: "require" }), errors.QuotaError);
  disk.tells = true;
  await assert.rejects(load(environment, server.url, { cache: "require" }), errors.QuotaError);
  await assert.rejects(load(environment, server.url, { cache: "require", maxCacheBytes: 5 }), errors.QuotaError);
  await assert.rejects(load({}, server.url, { cache: "require" }), errors.CacheError);
  assert.equal(disk.files.size, 0);
});

test("without the cache nothing is kept", async () => {
  const { disk, environment } = site();
  const server = await served();
  const facts = await load(environment, server.url, { cache: false });
  assert.deepEqual(facts.info.cache, { state: "off", reason: "cache is false" });
  assert.equal(disk.files.size, 0);
});

test("credentials in an address are sent, and kept out of keys and messages", async () => {
  const { environment, disk } = site();
  const server = await served({ statuses: [200, 401] });
  const secret = server.url.replace("//", "//me:p%40ss@");
  await load(environment, secret);
  assert.equal(server.requests[0].headers.authorization, `Basic ${btoa("me:p@ss")}`);
  assert.ok([...disk.files.values()].every((bytes) => !new TextDecoder().decode(bytes.subarray(0, 1000)).includes("p%40ss")));
  await assert.rejects(load({}, secret), (error) => error instanceof errors.NetworkError && !/p%40ss/.test(error.message));
});

test("errors of the engine get their classes", async () => {
  const cases = /** @type {[string, any][]} */ ([
    ["file", errors.FileError],
    ["template", errors.FileError],
    ["not_a_number", errors.FileError],
    ["options", errors.OptionsError],
    ["context", errors.ContextError],
    ["absent", errors.BackendError],
    ["unsupported", errors.BackendError],
    ["limit", errors.BackendError],
    ["driver", errors.BackendError],
    ["memory", errors.OutOfMemoryError],
    ["lost", errors.DeviceLostError],
  ]);
  for (const [code, Class] of cases) {
    script.loadThrows = Object.assign(new Error(`it is ${code}`), { code });
    await assert.rejects(load({}, new Blob([file])), (error) => {
      assert.ok(error instanceof Class && error instanceof errors.AnyGpuError, code);
      assert.equal(error.constructor, Class);
      return error.code === code && error.message === `it is ${code}`;
    });
  }
  const report = { chosen: null, rungs: [] };
  script.loadThrows = Object.assign(new Error("nothing works"), { code: "no_backend", report: JSON.stringify(report) });
  await assert.rejects(load({}, new Blob([file])), { name: "BackendError", code: "no_backend", report });
  script.loadThrows = new RangeError("WebAssembly.Memory.grow(): Maximum memory size exceeded");
  await assert.rejects(load({}, new Blob([file])), { name: "OutOfMemoryError", code: "memory" });
});

test("after a trap the engine is dead and says so", async () => {
  const opened = await engine();
  cleanups.push(() => opened.dispose());
  script.generateThrows = new WebAssembly.RuntimeError("unreachable");
  const both = ["a", "b"].map((prompt) => assert.rejects(opened.completions.create({ prompt }), errors.CrashError));
  await Promise.all(both);
  assert.deepEqual(seen.generations, ["begin"], "what waits for its turn is not begun in a module that trapped");
  script.generateThrows = null;
  await assert.rejects(opened.completions.create({ prompt: "a" }), errors.CrashError);
  await assert.rejects(opened.stats(), errors.CrashError);
  await opened.dispose();
});

test("a trap in the middle of a promise of the module, which then never settles", async () => {
  /** @type {Map<string, (event: any) => void>} */
  const listeners = new Map();
  const global = /** @type {any} */ (globalThis);
  global.addEventListener = (/** @type {string} */ type, /** @type {any} */ listener) => listeners.set(type, listener);
  global.removeEventListener = (/** @type {string} */ type) => listeners.delete(type);
  cleanups.push(() => delete global.addEventListener && delete global.removeEventListener);
  const opened = await engine();
  cleanups.push(() => opened.dispose());
  script.hangs = true;
  const waiting = assert.rejects(opened.completions.create({ prompt: "a" }), errors.CrashError);
  while (seen.generations.length === 0) await soon();
  let prevented = 0;
  const preventDefault = () => prevented++;
  listeners.get("error")?.({ error: new TypeError("the page's own"), preventDefault });
  listeners.get("error")?.({ error: new WebAssembly.RuntimeError("unreachable"), preventDefault });
  await waiting;
  assert.equal(prevented, 1, "errors of others are left to others");
  await assert.rejects(opened.stats(), errors.CrashError);
  await opened.dispose();
  assert.equal(listeners.size, 0);
  assert.equal(seen.freed, 0, "nothing in the module is called after a trap");
});

/** Errors for a full stack, as browsers word them. @type {(() => Error)[]} */
const OVERFLOWS = [
  () => new RangeError("Maximum call stack size exceeded"),
  () => new RangeError("Maximum call stack size exceeded."),
  () => Object.assign(new Error("too much recursion"), { name: "InternalError" }),
];

/** @template {Error} E @param {E} error */
const inWasm = (error) => Object.assign(error, { stack: `${error}\n    at a.wasm (https://a/a.wasm:wasm-function[7]:0x9)` });

test("a used up stack is no lack of memory, and ends the module", async () => {
  for (const overflow of OVERFLOWS) {
    const opened = await engine();
    script.generateThrows = overflow();
    await assert.rejects(opened.completions.create({ prompt: "a" }), { name: "CrashError", message: /stack|recursion/ });
    script.generateThrows = null;
    await assert.rejects(opened.completions.create({ prompt: "a" }), errors.CrashError);
    await opened.dispose();
    assert.equal(seen.freed, 0, "nothing in the module is called after a trap");
  }
});

test("what goes through the module ends it, whatever it is; what it returns does not", async () => {
  const opened = await engine();
  cleanups.push(() => opened.dispose());
  script.generateThrows = inWasm(Object.assign(new Error("no"), { code: "limit" }));
  await assert.rejects(opened.completions.create({ prompt: "a" }), errors.BackendError);
  script.generateThrows = inWasm(new RangeError("Array buffer allocation failed"));
  await assert.rejects(opened.completions.create({ prompt: "a" }), errors.OutOfMemoryError);
  script.generateThrows = null;
  await assert.rejects(opened.completions.create({ prompt: "a" }), errors.OutOfMemoryError);
});

test("a load on the page's thread settles when the stack is used up in a promise of the module", async () => {
  /** @type {Map<string, (event: any) => void>} */
  const listeners = new Map();
  const global = /** @type {any} */ (globalThis);
  global.addEventListener = (/** @type {string} */ type, /** @type {any} */ listener) => listeners.set(type, listener);
  global.removeEventListener = (/** @type {string} */ type) => listeners.delete(type);
  cleanups.push(() => delete global.addEventListener && delete global.removeEventListener);
  const { client } = link();
  script.hangs = true;
  const waiting = assert.rejects(client.call("load", params()), { name: "CrashError", message: /call stack/ });
  while (seen.options.length === 0) await soon();
  const preventDefault = () => {};
  listeners.get("error")?.({ error: OVERFLOWS[0]?.(), preventDefault: () => assert.fail("the page's own") });
  listeners.get("error")?.({ error: inWasm(/** @type {Error} */ (OVERFLOWS[0]?.())), preventDefault });
  await waiting;
});

const params = () => ({ what: new Blob([file]), options: {}, engine: {} });

test("a module that trapped starts anew, or is not used again", async () => {
  let started = 0;
  const modules = [{ ...bindings, __wbg_reset_state: () => started++ }, { ...bindings }];
  for (const [i, module] of modules.entries()) {
    const [first, neighbour] = [connection({}, module), connection({}, module)];
    script.loadThrows = new WebAssembly.RuntimeError("unreachable");
    await assert.rejects(first.client.call("load", params()), errors.CrashError);
    script.loadThrows = null;
    await assert.rejects(neighbour.client.call("load", params()), errors.CrashError, "they share the module");
    const second = connection({}, module);
    const loading = second.client.call("load", params());
    if (i === 0) assert.equal((await loading).info.architecture, "double");
    else await assert.rejects(loading, /reload the page/);
    await assert.rejects(first.client.call("load", params()), errors.CrashError, "what it held is gone");
    await Promise.all([first, neighbour, second].map((link) => link.close()));
  }
  assert.equal(started, 1);
});

test("dispose rejects what is under way and all that follows, once", async () => {
  const opened = await engine();
  cleanups.push(() => opened.dispose());
  const running = opened.completions.create({ prompt: "a", max_tokens: 100_000 });
  const rejected = assert.rejects(running, errors.DisposedError);
  const stream = opened.completions.create({ prompt: "a", max_tokens: 100_000, stream: true });
  const streamed = assert.rejects(stream.next(), errors.DisposedError);
  await Promise.all([opened.dispose(), opened.dispose(), rejected, streamed]);
  assert.equal(seen.freed, 1);
  await assert.rejects(opened.completions.create({ prompt: "a" }), errors.DisposedError);
  await assert.rejects(opened.encode("a"), errors.DisposedError);
  await opened.dispose();
  assert.equal(seen.freed, 1);
});

test("a worker that stops rejects everything", async () => {
  const client = new Client({ postMessage() {}, onmessage: null });
  const waiting = client.call("stats", {});
  client.fail(new errors.CrashError("gone"));
  await assert.rejects(waiting, errors.CrashError);
  await assert.rejects(client.call("stats", {}), errors.CrashError);
  await client.close(new errors.DisposedError("closed"));
});

test("the suite tells of each case and can be ended", async () => {
  const { client, close } = suite();
  cleanups.push(close);
  /** @type {any[]} */
  const cases = [];
  const report = await client.call("conformance", { options: { backend: "cpu" } }, { onEvent: (c) => cases.push(c) });
  assert.equal(report.passed, 5);
  assert.deepEqual(cases.map((c) => c.index), [0, 1, 2, 3, 4]);
  const controller = new AbortController();
  const options = { signal: controller.signal, onEvent: () => controller.abort() };
  await assert.rejects(client.call("conformance", { options: { backend: "cpu" } }, options), { name: "AbortError" });
  assert.equal((await client.call("conformance", { options: { backend: "cpu" } })).passed, 5);
  await assert.rejects(client.call("probe", { engine: {} }), errors.CrashError);
  await assert.rejects(link().client.call("conformance", { options: {} }), errors.CrashError, "the engine has no suite");
});

test("what tuning found is kept, and loading is told", async () => {
  const { disk, environment } = site();
  /** @type {any[]} */
  const events = [];
  const params = { what: new Blob([file]), options: {}, engine: {} };
  const call = { onEvent: (/** @type {any} */ event) => events.push(event) };
  const report = await link(environment).client.call("tune", params, call);
  assert.deepEqual([report.kept, report.text, report.tuned], [true, "tuned", undefined]);
  assert.ok(events.some((event) => event.trial === "defaults"));
  await load(environment, new Blob([file]));
  assert.deepEqual(JSON.parse(seen.options[0]).tuned, [{ rung: "cpu" }]);
  // A later run gets the first one's result. A damaged file, or a browser without files, counts as no result.
  await link(environment).client.call("tune", params);
  await load(environment, new Blob([file]));
  assert.equal(JSON.parse(seen.options[1]).tuned.length, 2);
  disk.files.set("anygpu-tuning/tuning.json", new TextEncoder().encode("{"));
  await load(environment, new Blob([file]));
  assert.equal(JSON.parse(seen.options[2]).tuned, undefined);
  assert.equal((await link().client.call("tune", params)).kept, false);
});

test("errors cross with class, fields and cause", () => {
  const cause = new TypeError("why");
  const sent = new errors.NetworkError("what", { url: "http://a/", status: 503, cause });
  const got = /** @type {any} */ (errors.fromWire(structuredClone(errors.toWire(sent))));
  assert.ok(got instanceof errors.NetworkError);
  assert.deepEqual([got.name, got.message, got.code, got.url, got.status], ["NetworkError", "what", "network", "http://a/", 503]);
  assert.equal(got.cause.message, "why");
  const full = errors.fromWire(structuredClone(errors.toWire(new errors.QuotaError("full"))));
  assert.ok(full instanceof errors.QuotaError && full instanceof errors.CacheError);
  const aborted = errors.fromWire(structuredClone(errors.toWire(new DOMException("no", "AbortError"))));
  assert.ok(aborted instanceof DOMException && aborted.name === "AbortError");
});

test("the thread is the worker unless only the page has the GPU interface", async () => {
  const page = (/** @type {boolean} */ webgl, webgpu = false) => async () => ({ webgl, webgpu });
  const none = { webgl: false, webgpu: false };
  const cases = /** @type {[any, any, any, string][]} */ ([
    ["cpu", none, page(true), "worker"],
    ["webgl", { webgl: true, webgpu: false }, page(true), "worker"],
    ["webgl", none, page(true), "main"],
    ["webgl", none, page(false), "worker"],
    ["webgpu", none, page(false, true), "main"],
    ["auto", { webgl: false, webgpu: true }, page(true, true), "worker"],
    ["auto", none, page(true), "main"],
    ["gpu", none, page(false), "worker"],
  ]);
  for (const [backend, worker, main, thread] of cases) {
    const chosen = await chooseThread(backend, worker, main);
    assert.equal(chosen.thread, thread, `${backend} ${JSON.stringify(worker)}`);
    assert.notEqual(chosen.reason, "");
  }
});

test("a page whose policy lets it run no wasm leaves the engine to the worker", async () => {
  const page = async () => ({ webgl: true, webgpu: false });
  const chosen = await chooseThread("auto", { webgl: false, webgpu: false }, page, () => false);
  assert.equal(chosen.thread, "worker");
  assert.match(chosen.reason, /Content-Security-Policy/);
  assert.equal(mayCompile(), true);
  const { Module } = WebAssembly;
  cleanups.push(() => (WebAssembly.Module = Module));
  WebAssembly.Module = /** @type {any} */ (
    function () {
      throw new WebAssembly.CompileError("refused by the policy");
    }
  );
  assert.equal(mayCompile(), false);
});

test("a report has the digest of the module that was loaded", async () => {
  const expected = createHash("sha256").update(MODULE).digest("hex");
  const facts = await link().client.call("load", { what: new Blob([file]), options: {}, engine: {} });
  assert.equal(facts.report.module_sha256, expected);
  const probed = await link().client.call("probe", { engine: {} });
  assert.equal(probed.module_sha256, expected);
});

test("the digest is of what was started, also without WebCrypto and for whoever comes second", async () => {
  const { crypto, fetch } = globalThis;
  cleanups.push(() => Object.assign(globalThis, { fetch }));
  cleanups.push(() => Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true }));
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  let asked = 0;
  // Each response is another module.
  globalThis.fetch = async () => new Response(Uint8Array.of(++asked));
  /** @type {number[]} */
  const compiled = [];
  const module = {
    Sha256: bindings.Sha256,
    /** @param {{ module_or_path: Promise<Response> }} start */
    default: async ({ module_or_path }) => {
      compiled.push(...new Uint8Array(await (await module_or_path).arrayBuffer()));
      if (asked === 1) throw new Error("the connection broke");
    },
  };
  const url = new URL("https://example.org/module.wasm");
  await assert.rejects(start(module, url).ready, /broke/);
  const [one, other] = [start(module, url), start(module, url)];
  await one.ready;
  assert.deepEqual(compiled, [1, 2]);
  const expected = createHash("sha256").update(Uint8Array.of(2)).digest("hex");
  assert.deepEqual([await one.digest, await other.digest], [expected, expected]);
});

test("options of loading are checked, and the field is named", async () => {
  /** @type {[any, string][]} */
  const cases = [
    [{ backend: "vulkan" }, "backend"],
    [{ nCtx: 0 }, "nCtx"],
    [{ kvCache: "f8" }, "kvCache"],
    [{ nctx: 5 }, "nctx"],
    [{ onProgress: 5 }, "onProgress"],
    [{ signal: 5 }, "signal"],
    [{ cache: "yes" }, "cache"],
    [{ maxCacheBytes: -1 }, "maxCacheBytes"],
    [{ sha256: "abc" }, "sha256"],
    [{ worker: 1 }, "worker"],
    [{ webgl: { layout: "fast" } }, "webgl.layout"],
    [{ webgl: { size: 1 } }, "webgl.size"],
    [{ webgpu: { maxBinding: "1" } }, "webgpu.maxBinding"],
    [{ webgpu: { products: "f16" } }, "webgpu.products"],
    [{ headers: { "bad name": "x" } }, "headers"],
    [{ credentials: "all" }, "credentials"],
    [{ network: { retries: -1 } }, "network.retries"],
  ];
  for (const [options, field] of cases) {
    await assert.rejects(AnyGpu.load("model.gguf", options), { name: "OptionsError", field });
  }
  await assert.rejects(AnyGpu.load("http://[", {}), { name: "OptionsError", field: "source" });
  await assert.rejects(AnyGpu.load(/** @type {any} */ (5)), { name: "OptionsError", field: "source" });
  await assert.rejects(AnyGpu.conformance(/** @type {any} */ ({})), { name: "OptionsError", field: "backend" });
  assert.equal(loadOptions({ sha256: "A".repeat(64) }).sha256, "a".repeat(64));
  assert.deepEqual(loadOptions({ headers: { "X-A": "1" } }).headers, [["x-a", "1"]]);
});
