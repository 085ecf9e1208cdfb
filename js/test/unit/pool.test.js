// Tests of a member of a pool: its messages, and its errors for something that is not a pool.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { CrashError, NetworkError } from "../../src/common/errors.js";
import { PoolError } from "../../src/pool-error.js";
import { joinPool } from "../../src/pool.js";
import { chunks } from "../../src/pool/chunk-cache.js";
import { models } from "../../src/pool/pool-downloads.js";
import { Disk, cacheStorage, opfs } from "../doubles/browser.js";
import { Broker, coordinator, member } from "../doubles/pool.js";
import { someBytes } from "../doubles/server.js";

const FILE = someBytes(100_000);
const POOL = { version: 1, tcp: "nats://a", websocket: "ws://a", model: { name: "a", address: "", digest: "00", blocks: 4, bytes: FILE.length } };

/** @type {(() => unknown)[]} */
const cleanups = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const soon = () => new Promise((resolve) => setTimeout(resolve, 20));

/**
 * Starts a coordinator with the model and a description of the pool.
 *
 * @param {object} [pool] @param {import("../doubles/pool.js").Files} [more]
 */
async function served(pool = POOL, more = {}) {
  /** @type {import("../doubles/pool.js").Files} */
  const files = { "/model.gguf": FILE, ...more };
  const server = await coordinator(files);
  cleanups.push(server.close);
  const model = { ...POOL.model, address: `${server.url}/model.gguf` };
  files["/pool.json"] = files["/pool.json"] ?? JSON.stringify({ ...pool, model });
  return server;
}

/** @param {Broker} broker @param {import("../doubles/pool.js").Deliver} [deliver] @param {object} [pool] */
async function join(broker, deliver, pool) {
  const { url } = await served(pool);
  const { client, close } = member(broker, deliver);
  cleanups.push(close, () => client.call("leave", {}).catch(() => {}));
  const joined = await client.call("join", { coordinator: url, backend: "cpu", memory: 1 });
  return { client, joined, worker: joined.state.worker };
}

test("it listens before it says who it is, by a name that nobody foresees", async () => {
  const broker = new Broker();
  const { worker, joined } = await join(broker);
  assert.match(worker, /^w[0-9a-f]{16}$/);
  assert.deepEqual(broker.said, [`listens to pool.w.${worker}.>`, `pool.hello: hello ${worker} server/1`]);
  assert.equal(joined.pool.model.name, "a");
  assert.deepEqual(joined.state.computes, { backend: "cpu", adapter: "a double", software: false });
  const other = await join(new Broker());
  assert.notEqual(other.worker, worker);
});

test("messages are done one after the other, and those that are requests are answered", async () => {
  const broker = new Broker();
  let running = 0;
  /** @type {string[]} */
  const done = [];
  const { worker } = await join(broker, async (subject, payload, send) => {
    assert.equal(++running, 1, "one at a time");
    await soon();
    send("pool.w.other.s.lease", new TextEncoder().encode(`of ${payload}`));
    running -= 1;
    done.push(`${subject}: ${payload}`);
    return subject.endsWith(".ctl") ? `answer to ${payload}` : undefined;
  });
  broker.said = [];
  broker.send("ctl", "a", "inbox.1");
  broker.send("s.lease", "b");
  broker.send("ctl", "c", "inbox.2");
  while (done.length < 3) await soon();
  await soon();
  assert.deepEqual(done, [`pool.w.${worker}.ctl: a`, `pool.w.${worker}.s.lease: b`, `pool.w.${worker}.ctl: c`]);
  const of = (/** @type {string} */ what) => `pool.w.other.s.lease: of ${what}`;
  assert.deepEqual(broker.said, [of("a"), "inbox.1: answer to a", of("b"), of("c"), "inbox.2: answer to c"]);
});

test("what it is asked at once is done when it has its welcome", async () => {
  const broker = new Broker();
  const { onHello } = broker;
  broker.onHello = (hello) => {
    broker.send("ctl", "a", "inbox.1");
    return onHello(hello);
  };
  const { client } = await join(broker, async (_, payload) => `answer to ${payload}`);
  const follows = client.call("follow", {});
  follows.catch(() => {});
  await soon();
  assert.ok(broker.said.includes("inbox.1: answer to a"), `${broker.said}`);
  await client.call("leave", {});
  await follows;
});

test("who is not known any more says hello again, by its name, or goes by the one that it gets", async () => {
  const broker = new Broker();
  const { worker } = await join(broker);
  broker.said = [];
  broker.send("hello", "");
  broker.send("hello", "");
  await soon();
  assert.deepEqual(broker.said, [`pool.hello: hello ${worker} server/1`], "once, however often it is asked meanwhile");
  broker.onHello = () => JSON.stringify({ worker: "ada", heartbeat_millis: 60_000 });
  broker.send("hello", "");
  await soon();
  assert.deepEqual([...broker.listeners.keys()], ["pool.w.ada.>"]);
});

test("a connection that is another one now is told of at once, and so is a page that is hidden", async () => {
  const broker = new Broker();
  const { client, worker } = await join(broker);
  /** @type {boolean[]} */
  const seen = [];
  client.call("follow", {}, { onEvent: ({ connected }) => seen.push(connected) });
  await soon();
  broker.said = [];
  broker.change(false);
  broker.connection = "server/2";
  broker.change(true);
  await client.call("seen", { visible: false });
  assert.deepEqual(broker.said, [`pool.up.${worker}.hb: beat server/2 true`, `pool.up.${worker}.hb: beat server/2 false`]);
  await soon();
  assert.ok(seen.includes(false) && seen[seen.length - 1] === true, `${seen}`);
});

test("who leaves says so, and does nothing any more", async () => {
  const broker = new Broker();
  let delivered = 0;
  const { client, worker } = await join(broker, async () => void (delivered += 1));
  const follows = client.call("follow", {});
  broker.said = [];
  await client.call("leave", {});
  await follows;
  assert.deepEqual(broker.said, [`pool.up.${worker}.at: leaving`]);
  assert.ok(broker.closed);
  broker.send("s.lease", "late");
  broker.change(true);
  await soon();
  assert.equal(delivered, 0);
});

test("a module that stops in the middle ends it, and others are told", async () => {
  const broker = new Broker();
  const { client, worker } = await join(broker, async () => {
    throw new WebAssembly.RuntimeError("unreachable");
  });
  const follows = client.call("follow", {});
  follows.catch(() => {});
  broker.said = [];
  broker.send("s.lease", "a");
  await assert.rejects(follows, CrashError);
  assert.deepEqual(broker.said, [`pool.up.${worker}.at: leaving`]);
});

test("a pool that takes no pages, is of another version, does not answer or is none is told of", async () => {
  const refused = (/** @type {RegExp} */ message) => (/** @type {unknown} */ error) =>
    error instanceof PoolError && error.code === "pool" && message.test(error.message);
  await assert.rejects(join(new Broker(), undefined, { ...POOL, websocket: null }), refused(/no WebSocket address/));
  await assert.rejects(join(new Broker(), undefined, { ...POOL, version: 2 }), refused(/version 2/));
  const silent = new Broker();
  silent.onHello = () => null;
  await assert.rejects(join(silent), refused(/does not answer/));
  assert.ok(silent.closed);
  const { url } = await served(POOL, { "/pool.json": "<html>" });
  const { client, close } = member(new Broker());
  cleanups.push(close);
  await assert.rejects(client.call("join", { coordinator: url, backend: "cpu", memory: 1 }), refused(/not JSON/));
  await assert.rejects(client.call("join", { coordinator: `${url}/nowhere`, backend: "cpu", memory: 1 }), NetworkError);
});

test("ranges come as they were asked for, after another attempt if need be, or not at all", async () => {
  let asked = 0;
  const { url } = await served(POOL, {
    "/busy": (_, response) => void response.writeHead(++asked < 3 ? 503 : 206).end("abcd"),
    "/short": (_, response) => void response.writeHead(206).end("abc"),
    "/whole": (_, response) => void response.writeHead(200).end("abcd"),
    "/long.manifest": new Uint8Array((8 << 20) + 1),
  });
  const files = models(new AbortController().signal, chunks({}, "00"));
  const read = (/** @type {string} */ path) => files.source(`${url}${path}`, 10).readAt(0, 4);
  assert.deepEqual(await files.source(`${url}/model.gguf`, FILE.length).readAt(50_000, 1000), FILE.slice(50_000, 51_000));
  assert.equal(new TextDecoder().decode(await read("/busy")), "abcd");
  assert.equal(asked, 3);
  await assert.rejects(read("/short"), (error) => error instanceof NetworkError && /3 bytes/.test(error.message));
  await assert.rejects(read("/whole"), (error) => error instanceof NetworkError && /status 200/.test(error.message));
  await assert.rejects(files.manifest(`${url}/long`), (error) => error instanceof NetworkError && /more than/.test(error.message));
});

test("chunks stay for the next time, but for those of other models and those that storage has no room for", async () => {
  for (const around of [(/** @type {Disk} */ disk) => ({ storage: opfs(disk, "worker") }), (/** @type {Disk} */ disk) => ({ caches: cacheStorage(disk) })]) {
    const disk = new Disk();
    const [model, other] = ["ab".repeat(32), "cd".repeat(32)];
    const [one, two] = [someBytes(1000), someBytes(2000)];
    const first = chunks(around(disk), model);
    assert.equal(await first.kept("one"), null);
    await first.keep("one", one);
    await first.keep("two", one);
    await first.keep("two", two);
    const again = chunks(around(disk), model);
    assert.deepEqual([await again.kept("one"), await again.kept("two")], [one, two]);
    disk.quota = disk.used + 100;
    await again.keep("three", two);
    assert.equal(await again.kept("three"), null);
    assert.equal(await chunks(around(disk), other).kept("one"), null);
    assert.equal(await chunks(around(disk), model).kept("one"), null, "there is one model at a time");
    assert.equal(disk.used, 0);
  }
  const without = chunks({}, "ab");
  await without.keep("one", FILE);
  assert.equal(await without.kept("one"), null);
});

test("options of joining are checked before anything is loaded", async () => {
  const field = (/** @type {string} */ name) => ({ name: "OptionsError", field: name });
  await assert.rejects(joinPool(/** @type {any} */ ({})), field("coordinator"));
  await assert.rejects(joinPool({ coordinator: "http://a", memory: -1 }), field("memory"));
  await assert.rejects(joinPool({ coordinator: "http://a", backend: /** @type {any} */ ("tpu") }), field("backend"));
  await assert.rejects(joinPool({ coordinator: "http://a", signal: AbortSignal.abort() }), { name: "AbortError" });
});
