// Tests of stored sessions: tabs that end at any moment, storage that fails, limits, several tabs.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { AnyGpu } from "../../src/index.js";
import { SessionStore } from "../../src/sessions/session-store.js";
import { SessionLog } from "../../src/sessions/session-log.js";
import { script, seen } from "../doubles/bindings.js";
import { Disk, cacheStorage, closeAll, estimates, lockManager, opfs } from "../doubles/browser.js";
import { connection, engine, reset } from "../doubles/engine.js";
import { Faults, KINDS } from "../doubles/faults.js";
import { record, textOf } from "../doubles/records.js";

/** @typedef {"worker" | "page" | "cache"} Kind */

const KEEP = { keep: true, every: 100, maxBytes: 2 ** 20, maxCount: 8 };
const LIMITS = { maxBytes: 2 ** 20, maxCount: 8 };
const WHOLE = "abcdefghijkl";
const LOST = Object.assign(new Error("the device was lost (a test)"), { code: "lost" });
const request = { prompt: "Once upon", max_tokens: WHOLE.length };

afterEach(() => {
  closeAll();
  reset();
});

/** Returns a browser with a disk. @param {Disk} disk @param {Kind} kind */
function site(disk, kind = "worker") {
  const storage = kind === "cache" ? estimates(disk) : opfs(disk, kind);
  return { storage, locks: lockManager(), ...(kind === "cache" ? { caches: cacheStorage(disk) } : {}) };
}

/** Returns the text of a stream, up to a number of pieces. @param {AsyncIterable<any>} stream */
async function textFrom(stream, most = Infinity) {
  let [text, pieces] = ["", 0];
  for await (const chunk of stream) {
    text += chunk.choices[0].text;
    if (++pieces === most) break;
  }
  return text;
}

/** Copies the disk before each change of it. @param {Disk} disk */
function moments(disk) {
  /** @type {Map<string, Uint8Array>[]} */
  const all = [];
  const write = disk.write.bind(disk);
  disk.write = (name, bytes) => {
    all.push(new Map(disk.files));
    // A tab may end while it writes.
    all.push(new Map(disk.files).set(name, bytes.subarray(0, bytes.length >> 1)));
    write(name, bytes);
  };
  return all;
}

for (const kind of /** @type {Kind[]} */ (["worker", "page", "cache"])) {
  test(`${kind}: a tab that ends at any moment leaves an answer that goes on`, { timeout: 120_000 }, async () => {
    const disk = new Disk();
    const all = moments(disk);
    const first = await engine(site(disk, kind), KEEP);
    const answer = await first.completions.create(request, { session: "chat" });
    assert.equal(answer.choices[0].text, WHOLE);
    await first.dispose();
    all.push(new Map(disk.files));
    let [resumed, saved] = [0, 0];
    for (const files of all) {
      const later = new Disk();
      later.files = new Map(files);
      const other = await engine(site(later, kind), KEEP);
      const [info] = await other.sessions.list();
      seen.computed.length = 0;
      const ended = await textFrom(other.completions.resume("chat")).catch((error) => error);
      if (ended instanceof Error) {
        // Nothing was stored yet, and a begun session is no obstacle.
        assert.equal(/** @type {any} */ (ended).code, "options", ended.stack);
        assert.equal(resumed, 0, "an answer was lost that was kept before");
        assert.equal((await other.completions.create(request, { session: "chat" })).choices[0].text, WHOLE);
      } else {
        assert.equal(ended, WHOLE);
        resumed += 1;
        assert.equal(info?.name, "chat");
        saved = Math.max(saved, info?.tokens ?? 0);
        assert.deepEqual(seen.computed, [0]);
      }
      await other.dispose();
      closeAll();
    }
    assert.ok(resumed > 10, `${resumed} of ${all.length}`);
    assert.equal(saved, request.prompt.length + WHOLE.length);
  });
}

test("an answer goes on after an abort, and in the next turn nothing is computed again", async () => {
  const disk = new Disk();
  const one = await engine(site(disk), KEEP);
  assert.equal(await textFrom(one.completions.create({ ...request, stream: true }, { session: "chat" }), 4), "abcd");
  // Leaving early is an abort, which the engine notices later.
  assert.equal(await textFrom(one.completions.resume("chat")), WHOLE);
  const [{ name, finish, stored }] = await one.sessions.list();
  assert.deepEqual([name, finish], ["chat", "length"]);
  assert.ok(stored > 0);
  await one.dispose();
  const other = await engine(site(disk), KEEP);
  const tokens = await other.tokens({ session: "chat" });
  assert.equal(String.fromCharCode(...tokens), request.prompt + WHOLE);
  seen.computed.length = 0;
  await other.completions.create({ prompt: [...tokens, 33], max_tokens: 1 }, { session: "chat" });
  assert.deepEqual(seen.computed, [1]);
  const exported = new Uint8Array(await (await other.export({ session: "chat" })).arrayBuffer());
  assert.equal(textOf(exported).tokens.length, tokens.length + 2);
  await assert.rejects(other.export({ session: "none" }), { code: "options" });
  await assert.rejects(textFrom(other.completions.resume("none")), { code: "options", field: "session" });
  assert.deepEqual(await other.tokens({ session: "none" }), new Uint32Array(0));
  assert.equal((await other.sessions.list()).length, 1, "asking for a session does not make one");
  assert.equal(await other.sessions.remove("chat"), true);
  assert.equal(await other.sessions.remove("chat"), false);
  assert.deepEqual(await other.sessions.list(), []);
  assert.deepEqual([...disk.files.keys()], []);
  await other.dispose();
});

/** Calls that change storage. */
const CHANGES = ["write", "truncate", "close", "removeEntry", "put", "delete"];
const full = () => new DOMException("full", "QuotaExceededError");

/** @type {[Kind, (typeof KINDS)[number], ((name: string) => Error) | undefined][]} */
const FAILURES = [
  ["worker", "before", undefined], ["worker", "after", undefined], ["worker", "torn", undefined],
  ["page", "before", full], ["cache", "before", undefined], ["cache", "torn", undefined],
];

for (const [kind, how, error] of FAILURES) {
  const title = `${kind}: each call of storage fails once ${how} being done, and no answer does`;
  test(title, { timeout: 120_000 }, async () => {
    const short = { ...request, max_tokens: 2 };
    for (let at = 1; ; at += 1) {
      const disk = new Disk();
      const faults = new Faults(at, how, error);
      const whole = site(disk, kind);
      const { storage, caches } = /** @type {any} */ (whole);
      const armed = { ...whole, storage: faults.in(storage), ...(caches ? { caches: faults.in(caches) } : {}) };
      const one = await engine(armed, KEEP);
      /** @type {any[]} */
      const told = [];
      one.on("unkept", (event) => told.push(event));
      const asked = async (/** @type {string} */ session) => {
        const { choices } = await one.completions.create(short, { session });
        return choices[0].text;
      };
      const answers = [await asked("chat"), await asked("other"), await asked("chat")];
      const where = `call ${at}: ${faults.failed}`;
      assert.deepEqual(answers, ["ab", "ab", "ab"], where);
      assert.ok(told.length <= 2 && told.every(({ reason }) => reason.length > 3), where);
      await one.dispose();
      closeAll();
      if (faults.failed === null) return assert.ok(at > 20, `${at} calls`);
      if (how !== "before" && !CHANGES.includes(faults.failed)) continue;
      // The stored session is right, or missing.
      const other = await engine(site(disk, kind), KEEP);
      const text = await textFrom(other.completions.resume("chat")).catch((failure) => failure);
      assert.ok(text === "ab" || text.code === "options", `${where}: ${text.stack ?? text}`);
      const { choices } = await other.completions.create(short, { session: "chat" });
      assert.equal(choices[0].text, "ab", where);
      await other.dispose();
    }
  });
}

test("a full disk costs the keeping, not the answer, and is told once", async () => {
  const disk = new Disk();
  disk.quota = 900;
  const one = await engine(site(disk), KEEP);
  /** @type {any[]} */
  const told = [];
  one.on("unkept", (event) => told.push(event));
  for (let turn = 0; turn < 3; turn += 1) {
    assert.equal((await one.completions.create(request, { session: "chat" })).choices[0].text, WHOLE);
  }
  assert.equal(told.length, 1);
  assert.equal(told[0].session, "chat");
  assert.match(told[0].reason, /room|full/);
  await one.dispose();
});

test("private windows keep nothing, and say nothing of it", async () => {
  const one = await engine({ locks: lockManager() }, KEEP);
  one.on("unkept", () => assert.fail("told"));
  assert.equal((await one.completions.create(request, { session: "chat" })).choices[0].text, WHOLE);
  assert.equal(await textFrom(one.completions.resume("chat")), WHOLE);
  const [{ name, stored }] = await one.sessions.list();
  assert.deepEqual([name, stored], ["chat", 0]);
  await one.sessions.clear();
  assert.deepEqual(await one.sessions.list(), []);
  await one.dispose();
});

test("a session that another tab uses is left to it, and who used it last has it", { timeout: 20_000 }, async () => {
  const disk = new Disk();
  const shared = site(disk);
  const [one, other] = [await engine(shared, KEEP), await engine(shared, KEEP)];
  let goOn = () => {};
  script.holdsUp = new Promise((resolve) => (goOn = resolve));
  const stream = one.completions.create({ ...request, stream: true }, { session: "chat" });
  await stream.next();
  /** @type {any[]} */
  const told = [];
  other.on("unkept", (event) => told.push(event));
  await assert.rejects(other.sessions.remove("chat"), { code: "cache" });
  await other.sessions.clear();
  assert.equal((await other.sessions.list()).length, 1, "what is in use stays");
  goOn();
  await textFrom(stream);
  const another = { ...request, prompt: "Another" };
  for (const [tab, prompt] of [[other, "Another"], [one, "Once upon"], [other, "Another"]]) {
    await /** @type {any} */ (tab).completions.create({ ...another, prompt }, { session: "chat" });
    const later = await engine(site(disk), KEEP);
    assert.equal(String.fromCharCode(...(await later.tokens({ session: "chat" }))), prompt + WHOLE);
    await later.dispose();
  }
  assert.deepEqual(told, []);
  await one.dispose();
  await other.dispose();
});

test("a session that is kept comes back with the engine that was lost", async () => {
  const disk = new Disk();
  const environment = site(disk);
  let opened = 0;
  const open = async () => {
    opened += 1;
    script.generateThrows = null;
    const link = connection(environment);
    const facts = await link.client.call("load", { what: new Blob(["model"]), options: {}, engine: {}, sessions: KEEP });
    return { connection: link, facts };
  };
  const one = new AnyGpu(await open(), open);
  one.on("unkept", ({ reason }) => assert.fail(reason));
  await one.completions.create(request, { session: "other" });
  let [text, pieces] = ["", 0];
  for await (const chunk of one.completions.create({ ...request, stream: true }, { session: "chat" })) {
    text += chunk.choices[0]?.text ?? "";
    if (++pieces === 4) script.generateThrows = LOST;
  }
  assert.deepEqual([text, opened], [WHOLE, 2]);
  // Lost again while stored pieces are returned.
  await one.dispose();
  const again = new AnyGpu(await open(), open);
  text = "";
  for await (const chunk of again.completions.resume("chat")) {
    if (text === "") script.generateThrows = LOST;
    text += chunk.choices[0]?.text ?? "";
  }
  assert.equal(text, WHOLE);
  assert.deepEqual((await again.sessions.list()).map(({ name }) => name).sort(), ["chat", "other"]);
  await again.dispose();
});

test("names are checked", async () => {
  const one = await engine();
  for (const session of ["", "x".repeat(65), 5]) {
    await assert.rejects(one.completions.create(request, /** @type {any} */ ({ session })), { field: "session" });
    assert.throws(() => one.completions.resume(/** @type {any} */ (session)), { field: "session" });
    await assert.rejects(one.sessions.remove(/** @type {any} */ (session)), { code: "options" });
  }
  assert.throws(() => one.on(/** @type {any} */ ("toString"), () => {}), { code: "options" });
  await one.dispose();
});

/** Opens a store of sessions. @param {Disk} disk */
async function openStore(disk, limits = LIMITS, model = "m") {
  return /** @type {SessionStore} */ (await SessionStore.open(/** @type {any} */ (site(disk)), limits, model));
}

/** Uses a session once. @param {SessionStore} store @param {string} name @param {number[]} tokens */
async function add(store, name, tokens) {
  const log = await store.use(name);
  await store.note(name, log);
  await store.append(log, record(text(tokens), 0), 0);
  await store.tidy(log);
  store.letGo(log);
}

/** @param {number[]} tokens */
const text = (tokens) => ({ tokens, prompt: 1, generate: {}, finish: null });

test("a session that cannot be read is not kept from other tabs", { timeout: 20_000 }, async () => {
  const disk = new Disk();
  const shared = site(disk);
  const [one, other] = await Promise.all(["m", "m"].map((model) => SessionStore.open(/** @type {any} */ (shared), LIMITS, model)));
  await add(/** @type {SessionStore} */ (one), "a", [1, 2, 3]);
  const files = /** @type {any} */ (one)._files;
  const names = files.names;
  files.names = () => Promise.reject(new Error("the disk fails"));
  await assert.rejects(/** @type {SessionStore} */ (one).use("a"), /the disk fails/);
  files.names = names;
  const log = await /** @type {SessionStore} */ (other).use("a");
  assert.equal((await log.read()).length, 1);
  other?.letGo(log);

  // The same where its records cannot be read.
  const [first, second] = [await engine(shared, KEEP), await engine(shared, KEEP)];
  await first.completions.create(request, { session: "chat" });
  const read = SessionLog.prototype.read;
  SessionLog.prototype.read = () => Promise.reject(new Error("the disk fails"));
  /** @type {any[]} */
  const told = [];
  const third = await engine(shared, KEEP);
  third.on("unkept", (event) => told.push(event));
  await third.completions.create(request, { session: "chat" }).finally(() => (SessionLog.prototype.read = read));
  assert.equal(told.length, 1);
  assert.equal((await second.completions.create(request, { session: "chat" })).choices[0].text, WHOLE);
  assert.equal(await second.sessions.remove("chat"), true);
  for (const one of [first, second, third]) await one.dispose();
});

test("a log that is torn at any length holds what came before", async () => {
  const disk = new Disk();
  const one = await openStore(disk);
  const log = await one.use("a");
  const parts = [[1, 2, 3], [1, 2, 3, 4], [1, 2, 9, 9, 9]];
  const [first, second, third] = parts.map(text);
  await one.append(log, record(/** @type {any} */ (first), 0), 0);
  await one.append(log, record(/** @type {any} */ (second), 3), 3);
  await one.append(log, record(/** @type {any} */ (third), 2), 2);
  one.close();
  const names = [...disk.files.keys()].filter((name) => name.endsWith(".session"));
  assert.equal(names.length, 3);
  const files = new Map(disk.files);
  for (const [at, name] of names.entries()) {
    const bytes = /** @type {Uint8Array} */ (files.get(name));
    for (let length = 0; length < bytes.length; length += 1) {
      const other = new Disk();
      other.files = new Map(files).set(name, bytes.subarray(0, length));
      const found = await (await (await openStore(other)).use("a")).read();
      assert.equal(found.length, at, `file ${at} of ${length} bytes`);
      if (at > 0) assert.deepEqual(textOf(Buffer.concat(found)).tokens, parts[at - 1]);
      assert.equal([...other.files.keys()].filter((file) => file.endsWith(".session")).length, at, "what is left");
    }
    const flipped = bytes.slice();
    flipped[bytes.length - (at === 0 ? 40 : 1)] ^= 1;
    const other = new Disk();
    other.files = new Map(files).set(name, flipped);
    assert.equal((await (await (await openStore(other)).use("a")).read()).length, at);
  }
});

test("sessions are bounded in number and bytes, and the oldest go", async (t) => {
  t.mock.timers.enable({ apis: ["Date"] });
  const disk = new Disk();
  const one = await openStore(disk, { maxBytes: 5000, maxCount: 3 });
  const long = Array.from({ length: 300 }, (_, index) => index);
  for (const name of ["a", "b", "c", "d"]) {
    t.mock.timers.tick(10);
    await add(one, name, [1, 2, 3]);
  }
  const names = async () => (await one.list()).map(({ name }) => name);
  assert.deepEqual(await names(), ["d", "c", "b"]);
  t.mock.timers.tick(10);
  await add(one, "b", long);
  assert.deepEqual(await names(), ["b", "d", "c"]);
  for (const name of ["e", "f", "g"]) {
    t.mock.timers.tick(10);
    await add(one, name, long);
    const sum = (await one.list()).reduce((total, { bytes }) => total + bytes, 0);
    assert.ok(sum <= 5000, `${sum} bytes`);
  }
  assert.deepEqual(await names(), ["g", "f", "e"]);
  const [log, huge] = [await one.use("g"), record(text([...long, ...long, ...long, ...long, ...long]), 0)];
  await assert.rejects(one.append(log, huge, 0), { code: "quota" });
  assert.equal(textOf(Buffer.concat(await log.read())).tokens.length, 300);
  one.letGo(log);
  // Sessions of another model stay, but are not listed.
  const other = await SessionStore.open(/** @type {any} */ (site(disk)), LIMITS, "other");
  assert.deepEqual(await other?.list(), []);
  await other?.clear();
  assert.deepEqual([...disk.files.keys()], []);
});

test("a log that grows long is asked to become one record", async () => {
  const disk = new Disk();
  const one = await openStore(disk);
  const log = await one.use("a");
  assert.ok(log.isLong);
  await one.append(log, record(text([1]), 0), 0);
  const tokens = [1];
  for (let count = 1; !log.isLong; count += 1) {
    tokens.push(count);
    await one.append(log, record(text(tokens), count), count);
    assert.ok(count < 128, "it grows without end");
  }
  await one.append(log, record(text(tokens), 0), 0);
  assert.equal([...disk.files.keys()].filter((name) => name.endsWith(".session")).length, 1);
  assert.ok(!log.isLong);
  assert.deepEqual(textOf(Buffer.concat(await log.read())).tokens, tokens);
  // A record that continues a missing one is refused.
  await assert.rejects(new SessionLog(/** @type {any} */ (null), log.id, []).append(record(text(tokens), 1), 1));
});
