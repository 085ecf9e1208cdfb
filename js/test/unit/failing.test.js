// Makes everything fail that can, once, at each place of a whole load and generation. Each must soon end with the right
// model or with an error of the package, and afterwards the cache must have the right file or none.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { AnyGpuError } from "../../src/common/errors.js";
import { AnyGpu } from "../../src/index.js";
import { PART } from "../../src/cache/stored-parts.js";
import { pieces, script } from "../doubles/bindings.js";
import { Disk, cacheStorage, closeAll, estimates, lockManager, opfs } from "../doubles/browser.js";
import { connection, reset } from "../doubles/engine.js";
import { Faults, KINDS, SILENT } from "../doubles/faults.js";
import { someBytes } from "../doubles/server.js";

const file = someBytes(PART + 700_000);
const URL = "https://example.org/model.gguf";
/** Limit for a load and a generation, in milliseconds. */
const LIMIT = 5000;
const STEP = 1 << 20;
/** Calls that change storage, or read something that comes only once. */
const CHANGES = ["write", "truncate", "close", "removeEntry", "put", "delete", "read"];

const { fetch } = globalThis;
afterEach(() => {
  globalThis.fetch = fetch;
  reset();
});

/** Lets a server answer from now on; the wasm module is not affected. @param {typeof globalThis.fetch} server */
function asked(server) {
  globalThis.fetch = (what, init) => (String(what).startsWith("data:") ? fetch(what) : server(what, init));
}

/** A server in memory. @type {typeof globalThis.fetch} */
const serve = async (_, init) => {
  const from = Number(/^bytes=(\d+)-$/.exec(new Headers(init?.headers).get("Range") ?? "")?.[1] ?? 0);
  let at = from;
  const body = new ReadableStream({
    pull(controller) {
      if (at === file.length) return controller.close();
      controller.enqueue(file.slice(at, (at = Math.min(at + STEP, file.length))));
    },
  });
  const headers = { ETag: '"1"', "Content-Length": String(file.length - from) };
  const range = { "Content-Range": `bytes ${from}-${file.length - 1}/${file.length}` };
  return new Response(body, { status: from > 0 ? 206 : 200, headers: { ...headers, ...(from > 0 ? range : {}) } });
};
const offline = async () => Promise.reject(new TypeError("offline"));

/** @typedef {"worker" | "page" | "cache"} Kind */

/** @param {Kind} kind */
function site(kind) {
  const disk = new Disk();
  const locks = lockManager();
  const storage = kind === "cache" ? estimates(disk) : opfs(disk, kind);
  return { disk, locks, environment: { storage, locks, ...(kind === "cache" ? { caches: cacheStorage(disk) } : {}) } };
}

/**
 * Loads and generates. Returns the cache state or the error.
 *
 * @param {any} environment
 * @param {import("../doubles/engine.js").Ends} [ends]
 */
async function whole(environment, ends) {
  script.reads = [[0, 1000], [0, STEP], [STEP, PART - STEP + 1000], [PART, 700_000]];
  const link = connection(environment, undefined, ends);
  const network = { retries: 1, stallTimeout: 1000 };
  const running = async () => {
    const facts = await link.client.call("load", { what: URL, options: { network }, engine: {} });
    const engine = new AnyGpu({ connection: link, facts }, null);
    const { choices } = await engine.completions.create({ prompt: "a", max_tokens: 3 });
    assert.equal(choices[0].text, "abc");
    const [head, first, second, rest] = pieces;
    assert.deepEqual(head, file.subarray(0, 1000));
    assert.deepEqual(first, file.subarray(0, STEP));
    assert.deepEqual(second, file.subarray(STEP, PART + 1000));
    assert.deepEqual(rest, file.subarray(PART, PART + 700_000));
    return facts.info.cache.state;
  };
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("it hangs")), LIMIT)));
  try {
    return await Promise.race([running(), late]);
  } catch (error) {
    if (error instanceof AnyGpuError) return error;
    throw error;
  } finally {
    clearTimeout(timer);
    await link.close().catch(() => {});
  }
}

/** Returns the contents of a disk that has the file. @param {Kind} kind */
async function copy(kind) {
  const { disk, environment } = site(kind);
  asked(serve);
  assert.equal(await whole(environment), "stored");
  return [...disk.files];
}

/** @typedef {{ environment: any, ends?: import("../doubles/engine.js").Ends }} Armed */

/**
 * Makes each call fail, and checks what is left.
 *
 * @param {Kind} kind
 * @param {boolean} warm Whether the file is kept already.
 * @param {(faults: Faults, environment: any) => Armed} arm
 * @param {readonly import("../doubles/faults.js").Kind[]} kinds
 * @param {(name: string) => Error} [error]
 */
async function each(kind, warm, arm, kinds, error) {
  /** Names of the calls at each place. @type {string[]} */
  const names = [];
  const kept = warm ? await copy(kind) : [];
  for (const how of kinds) {
    for (let at = 1; ; at += 1) {
      // Calls that change nothing have no other way to fail.
      if (how !== "before" && names[at - 1] !== undefined && !CHANGES.includes(names[at - 1])) continue;
      const { disk, locks, environment } = site(kind);
      asked(serve);
      if (warm) for (const [name, bytes] of kept) disk.files.set(name, bytes);
      const faults = new Faults(at, how, error);
      const armed = arm(faults, environment);
      const where = () => `call ${at}, ${faults.failed}, fails ${how} being done`;
      try {
        await whole(armed.environment, armed.ends);
        assert.equal(/** @type {any} */ (locks).size, 0, "locks are held");
        // Handles that could not be closed end with the tab.
        closeAll();
        asked(serve);
        const state = await whole(environment);
        assert.ok(state === "stored" || state === "hit", `afterwards: ${state}`);
        asked(offline);
        assert.equal(await whole(environment), "hit", "what was kept is not there");
        assert.equal([...disk.files.keys()].filter((name) => name.endsWith(".part")).length, 2);
      } catch (failure) {
        throw new Error(`${where()}: ${failure instanceof Error ? failure.stack : failure}`);
      }
      if (faults.failed === null) break;
      names[at - 1] = faults.failed;
    }
  }
  return new Set(names);
}

for (const kind of /** @type {Kind[]} */ (["worker", "page", "cache"])) {
  for (const warm of [false, true]) {
    const what = `${kind}: each call of storage fails once${warm ? ", of a file that is kept" : ""}`;
    test(what, { timeout: 300_000 }, async () => {
      const storage = (/** @type {Faults} */ faults, /** @type {any} */ environment) => ({
        environment: {
          locks: environment.locks,
          storage: faults.in(environment.storage),
          ...(environment.caches ? { caches: faults.in(environment.caches) } : {}),
        },
      });
      const names = await each(kind, warm, storage, kind === "worker" ? KINDS : ["before", "torn"]);
      assert.ok(names.size > 2, [...names].join());
      const full = () => new DOMException("full", "QuotaExceededError");
      if (kind === "page") await each(kind, warm, storage, ["before"], full);
    });
  }
}

test("each call of storage never answers once", { timeout: 300_000 }, async () => {
  for (const [kind, warm] of /** @type {[Kind, boolean][]} */ ([["page", false], ["page", true], ["cache", true]])) {
    const silent = (/** @type {Faults} */ faults, /** @type {any} */ { locks, storage, caches }) => {
      const all = caches ? { locks, storage, caches: faults.in(caches) } : { locks, storage: faults.in(storage) };
      return { environment: { ...all, limit: 60 } };
    };
    const names = await each(kind, warm, silent, [SILENT]);
    assert.ok(names.size > 2, [...names].join());
  }
});

test("each call of the locks fails once", { timeout: 300_000 }, async () => {
  const locks = (/** @type {Faults} */ faults, /** @type {any} */ environment) => ({
    environment: {
      ...environment,
      locks: {
        request: async (/** @type {any[]} */ ...args) => {
          faults.count("request");
          return environment.locks.request(...args);
        },
      },
    },
  });
  for (const warm of [false, true]) await each("worker", warm, locks, ["before"]);
});

test("each request and each read of a body fails once", { timeout: 300_000 }, async () => {
  const network = (/** @type {Faults} */ faults, /** @type {any} */ environment) => {
    asked(async (...args) => faults.in(await faults.in({ fetch: serve }).fetch(...args)));
    return { environment };
  };
  const names = await each("worker", false, network, ["before", "after"], () => new TypeError("network error"));
  assert.deepEqual([...names].sort(), ["fetch", "read"]);
});

test("each message to the engine, and each from it, fails once", { timeout: 300_000 }, async () => {
  for (const side of /** @type {const} */ (["page", "engine"])) {
    await each("worker", false, (faults, environment) => {
      const failing = (/** @type {MessagePort} */ port) => {
        const post = port.postMessage.bind(port);
        port.postMessage = (/** @type {any} */ message) => {
          faults.count("postMessage");
          post(message);
        };
      };
      return { environment, ends: { [side]: failing } };
    }, ["before"], () => new DOMException("it cannot be cloned", "DataCloneError"));
  }
});
