import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { buildFor } from "../../src/module/build-choice.js";
import { AnyGpu, BrowserError } from "../../src/index.js";

/** Returns a browser that runs modules unless one of these is among their bytes. @param {number[][]} lacks */
function browser(...lacks) {
  const holds = (/** @type {Uint8Array} */ module, /** @type {number[]} */ part) =>
    module.some((_, at) => part.every((byte, index) => module[at + index] === byte));
  return {
    validate: (/** @type {any} */ module) => WebAssembly.validate(module) && !lacks.some((part) => holds(module, part)),
  };
}

test("the build for today needs all that it uses", () => {
  assert.equal(buildFor(browser()), "today");
  // Types of a v128, an externref and two results.
  for (const type of [[0x60, 0, 1, 0x7b], [0x60, 1, 0x6f, 0], [0x60, 0, 2]]) {
    assert.equal(buildFor(browser(type)), "older");
  }
});

test("a browser that is too old is told what it lacks", () => {
  const lack = (/** @type {any} */ wasm, /** @type {RegExp} */ message) =>
    assert.throws(() => buildFor(wasm), (error) => error instanceof BrowserError && error.code === "browser" && message.test(error.message));
  lack(undefined, /lacks WebAssembly;/);
  lack(browser([0xfc, 10]), /bulk memory/);
  lack(browser([0xc0]), /sign extension/);
  lack(browser([0xfc, 0]), /conversions/);
});

test("loading in such a browser is refused before anything is started", async () => {
  const { WebAssembly } = globalThis;
  Object.assign(globalThis, { WebAssembly: undefined });
  try {
    await assert.rejects(AnyGpu.load(new Blob()), BrowserError);
  } finally {
    Object.assign(globalThis, { WebAssembly });
  }
});

test("each worker's script has a name of its own, since webpack makes one file of those that share one", () => {
  const folder = new URL("../../src/", import.meta.url);
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"));
  const sources = names.map((name) => readFileSync(new URL(name, folder), "utf8"));
  const found = sources.flatMap((source) => [...source.matchAll(/new Worker\(new URL\("(.*?)", import\.meta\.url\), .*?name: "(.*?)"/g)]);
  const scripts = new Map(found.map(([, script, name]) => [`${name} of ${script}`, name]));
  assert.ok(scripts.size >= 10, [...scripts.keys()].join("\n"));
  // This script is only for other runtimes, which do not use a bundler; it replaces the engine's.
  scripts.delete("anygpu of ./with-node-worker.js");
  assert.equal(new Set(scripts.values()).size, scripts.size, [...scripts.keys()].join("\n"));
});
