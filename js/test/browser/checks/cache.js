// Checks of the cache: which models it stores, and which not.

import { AnyGpu, errors } from "../run.js";
import { FILE, assert, equal, load, nothingKept, rejection, requests, size, works } from "../expect.js";

const PATH = `/files/${FILE}`;

async function digest() {
  const bytes = await (await fetch(PATH)).arrayBuffer();
  return Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

export default {
  "a model is downloaded once": async () => {
    const first = await works(PATH, { cache: "require" });
    equal(first.cache.state, "stored", "what the cache did");
    const before = await requests(PATH);
    const second = await works(PATH, { cache: true });
    equal(second.cache.state, "hit", "what the cache did the second time");
    equal(await requests(PATH), before, "the number of requests after the second load");
    const bytes = await size();
    const [entry, ...others] = await AnyGpu.cache.list();
    equal(others.length, 0, "the number of other entries");
    equal(entry.size, bytes, "the size of the entry");
    equal((await AnyGpu.cache.usage()).bytes, bytes, "the bytes kept");
    assert(await AnyGpu.cache.delete(PATH), "the entry could not be removed");
    await nothingKept();
  },

  "the right SHA-256, and a wrong one": async () => {
    const sha256 = await digest();
    await works(PATH, { sha256, cache: true });
    await AnyGpu.cache.clear();
    const wrong = "0".repeat(64);
    const error = await rejection(load(PATH, { sha256: wrong, cache: true }), errors.ChecksumError);
    equal(error.actual, sha256, "the digest found");
    await nothingKept();
  },

  "no room for the model": async () => {
    const info = await works(PATH, { cache: true, maxCacheBytes: 1_000_000 });
    equal(info.cache.state, "off", "what the cache did");
    assert(info.cache.reason, "no reason was given");
    await rejection(load(PATH, { cache: "require", maxCacheBytes: 1_000_000 }), errors.CacheError);
    await nothingKept();
  },

  "room is made by removing what was not used for longest": async () => {
    await works(`${PATH}?first`, { cache: "require" });
    await works(`${PATH}?second`, { cache: "require", maxCacheBytes: 1.5 * (await size()) });
    const keys = (await AnyGpu.cache.list()).map(({ key }) => key);
    assert(keys.length === 1 && keys[0].endsWith("?second"), `these are kept: ${keys}`);
    await AnyGpu.cache.clear();
    await nothingKept();
  },
};
