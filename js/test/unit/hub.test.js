// Tests of names of models, and of the errors for servers that do not provide them.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { FileError, NetworkError, OptionsError } from "../../src/common/errors.js";
import { chosen, located } from "../../src/download/hub.js";
import { loadOptions } from "../../src/engine/options.js";
import { RemoteFile } from "../../src/download/remote-file.js";
import { RemoteStream } from "../../src/download/remote-stream.js";
import { serveFile } from "../doubles/server.js";

/** @type {(() => void)[]} */
const cleanups = [];
afterEach(() => cleanups.splice(0).forEach((cleanup) => cleanup()));

/** @param {import("../doubles/server.js").Behaviour} behaviour */
async function served(behaviour) {
  const server = await serveFile(new Uint8Array(0), behaviour);
  cleanups.push(server.close);
  return { ...server, origin: new URL(server.url).origin };
}

const json = (/** @type {string[]} */ names) =>
  new TextEncoder().encode(JSON.stringify({ siblings: names.map((rfilename) => ({ rfilename })) }));

/** @param {string[]} names */
const hub = (names) => served({ files: { "/api/models/some/model": json(names) } });

const NAMES = ["README.md", "m-Q4_K_M.gguf", "m-q8_0.gguf", "m-Q4_K_S.gguf", "m-Q6_K-00001-of-00002.gguf", "m-Q6_K-00002-of-00002.gguf"];

test("a name becomes the address of the file that it means", async () => {
  const { origin, requests } = await hub(NAMES);
  const address = (/** @type {string} */ name) => located(name, { hub: origin });
  const file = (/** @type {string} */ name) => `${origin}/some/model/resolve/main/${name}`;
  assert.equal(await address("hf:some/model"), file("m-Q4_K_M.gguf"));
  assert.equal(await address("hf:some/model:Q8_0"), file("m-q8_0.gguf"), "whatever the case");
  assert.equal(await address("hf:some/model:q6_k"), file("m-Q6_K-00001-of-00002.gguf"), "the first of its parts");
  requests.length = 0;
  assert.equal(await address("hf:some/model:in a folder/m.gguf"), file("in%20a%20folder/m.gguf"));
  assert.equal(requests.length, 0, "a file's name needs no list");
});

test("the hub's page about a file stands for the file, and no other address changes", async () => {
  const own = { hub: "https://hub.example" };
  assert.equal(await located("https://hub.example/a/b/blob/main/m.gguf?x=/blob/", own), "https://hub.example/a/b/resolve/main/m.gguf?x=/blob/");
  for (const other of ["https://hub.example/a/b/resolve/main/m.gguf", "https://code.example/a/b/blob/main/m.gguf", "https://hub.example.org/a/b/blob/m"]) {
    assert.equal(await located(other, own), other);
  }
  assert.match(await located("https://huggingface.co/a/b/blob/main/m.gguf", {}), /\/a\/b\/resolve\/main\/m\.gguf$/);
});

test("without a quantisation the usual ones are taken in their order, or the only file", () => {
  assert.equal(chosen(["a-Q8_0.gguf", "a-Q4_0.gguf"], undefined, "o/r"), "a-Q4_0.gguf");
  assert.equal(chosen(["a-f16.gguf", "a-Q8_0.gguf", "mmproj-a-Q8_0.gguf"], undefined, "o/r"), "a-Q8_0.gguf");
  assert.equal(chosen(["a-f16-00002-of-00002.gguf", "a-f16-00001-of-00002.gguf", "x.txt"], undefined, "o/r"), "a-f16-00001-of-00002.gguf");
  assert.equal(chosen(["a-Q4_K.gguf", "a-Q4_K_M.gguf"], "q4_k", "o/r"), "a-Q4_K.gguf");
});

test("what cannot be told is an error that lists what there is", () => {
  const refused = (/** @type {string[]} */ names, /** @type {string | undefined} */ quant, /** @type {RegExp} */ message) =>
    assert.throws(() => chosen(names, quant, "o/r"), (error) => error instanceof OptionsError && error.field === "source" && message.test(error.message));
  refused(["a-f16.gguf", "a-Q2_K.gguf"], undefined, /several.*hf:o\/r:a-Q2_K\.gguf: a-Q2_K\.gguf, a-f16\.gguf/);
  refused(["a-f16.gguf"], "Q9", /no file with Q9.*: a-f16\.gguf/);
  refused(Array.from({ length: 30 }, (_, at) => `a-${at}.gguf`), "Q9", /and 10 others/);
  assert.throws(() => chosen(["model.safetensors"], undefined, "o/r"), FileError);
});

test("what is no name is refused", async () => {
  for (const source of ["hf:", "hf:model", "hf:a/b/c", "hf:a/b:"]) {
    await assert.rejects(located(source, { hub: "https://hub.example" }), OptionsError, source);
  }
  assert.throws(() => loadOptions({ hub: 5 }), OptionsError);
});

test("a hub that is none is told from a model that is not there", async () => {
  const { origin } = await served({ files: { "/api/models/a/b": new TextEncoder().encode("[]") } });
  await assert.rejects(located("hf:a/b", { hub: origin }), (error) => error instanceof FileError && /did not return a list of files/.test(error.message));
  await assert.rejects(located("hf:a/c", { hub: origin }), (error) => error instanceof NetworkError && error.status === 404 && /no such file/.test(error.message));
});

/** @param {string} url */
const opened = (url, retries = 0) => RemoteStream.open(new RemoteFile(url, { retries, signal: new AbortController().signal }));

test("statuses and pages are told apart", async () => {
  /** @type {[import("../doubles/server.js").Behaviour, RegExp][]} */
  const cases = [
    [{ statuses: [401] }, /not open to everybody.*token/],
    [{ statuses: [403] }, /not open to everybody/],
    [{ statuses: [404] }, /no such file/],
    [{ statuses: [418] }, /answered 418.*check the URL/],
    [{ type: "text/html; charset=utf-8" }, /is a web page/],
  ];
  for (const [behaviour, message] of cases) {
    const { url } = await served(behaviour);
    await assert.rejects(opened(url), (error) => error instanceof NetworkError && message.test(error.message) && error.url === url);
  }
});

/**
 * Returns a browser at another origin, which can reach servers that it may not read.
 *
 * @param {(mode: string | undefined) => unknown} answer
 */
function inBrowser(answer, onLine = true) {
  const { fetch, location } = globalThis;
  /** @type {(string | undefined)[]} */
  const modes = [];
  const double = async (/** @type {unknown} */ _, /** @type {RequestInit} */ { mode } = {}) => {
    modes.push(mode);
    return answer(mode);
  };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { onLine }, configurable: true });
  Object.assign(globalThis, { fetch: double, location: { origin: "https://page.example" } });
  cleanups.push(() => {
    Object.assign(globalThis, { fetch, location });
    if (before !== undefined) Object.defineProperty(globalThis, "navigator", before);
  });
  return modes;
}

const failed = () => {
  throw new TypeError("Failed to fetch");
};

test("a server that lets no other origin read it is told from one out of reach, and at once", async () => {
  const modes = inBrowser((mode) => (mode === "no-cors" ? { type: "opaque" } : failed()));
  await assert.rejects(opened("https://files.example/m.gguf", 5), (error) => error instanceof NetworkError && /files\.example does not let.*CORS/.test(error.message));
  assert.deepEqual(modes, [undefined, undefined, "no-cors"]);
});

test("a server that is out of reach is asked again, and being offline is said", async () => {
  const modes = inBrowser(failed, false);
  await assert.rejects(opened("https://files.example/m.gguf", 1), (error) => error instanceof NetworkError && /offline/.test(error.message));
  assert.deepEqual(modes, [undefined, undefined, "no-cors"]);
  await assert.rejects(opened("https://page.example/m.gguf", 0), NetworkError);
  assert.equal(modes.length, 4, "of its own origin there is nothing to ask");
});
