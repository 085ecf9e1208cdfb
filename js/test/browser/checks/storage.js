// Checks of storage: tabs that end, several tabs at once, and changes from outside.

import { AnyGpu, errors, options, sleep } from "../run.js";
import { openFrame } from "../frame.js";
import { FILE, assert, equal, load, nothingKept, rejection, requests, size, works } from "../expect.js";

const PATH = `/files/${FILE}`;
/** Size of a stored part, in bytes. */
const PART = 4 << 20;

/** Opens another tab that loads something. */
const openTab = (url) => openFrame("/test/tab.html", { url, backend: options.backend, worker: String(options.worker) });

/** Returns the store's files with this ending, sorted by name; null where they cannot be changed. */
async function files(end) {
  const writable = "createWritable" in (globalThis.FileSystemFileHandle?.prototype ?? {});
  if (!writable || !navigator.storage?.getDirectory) return null;
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("anygpu");
  const found = [];
  for await (const [name, handle] of folder.entries()) if (name.endsWith(end)) found.push({ name, handle });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function write({ handle }, bytes) {
  const stream = await handle.createWritable();
  await stream.write(bytes);
  await stream.close();
}

const NO_FILES = "files of the store cannot be changed here";

/** Returns the digests of the file, in pieces of a mebibyte. */
async function digests() {
  const bytes = await (await fetch(PATH)).arrayBuffer();
  const chunk = 1 << 20;
  const chunks = [];
  for (let at = 0; at < bytes.byteLength; at += chunk) {
    const digest = await crypto.subtle.digest("SHA-256", bytes.slice(at, at + chunk));
    chunks.push(Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join(""));
  }
  return { size: bytes.byteLength, chunk, chunks };
}

export default {
  "a tab that ends while it downloads": async () => {
    const url = `/stall/${FILE}?after=9000000`;
    const tab = openTab(url);
    await tab.until(({ progress }) => progress?.phase === "download" && progress.loaded > 0);
    let entry;
    // The tab reports nothing more once the download stalls, but the record says how far it is.
    while (!(entry?.stored >= PART)) [entry] = await sleep(100).then(AnyGpu.cache.list);
    tab.close();
    assert(entry?.stored >= PART && entry.stored < entry.size, `${entry?.stored} bytes are kept of ${entry?.size}`);
    const seen = [];
    const onProgress = ({ phase, loaded }) => phase === "download" && seen.push(loaded);
    const info = await works(url, { cache: "require", network: { stallTimeout: 1000 }, onProgress });
    equal(info.cache.state, "stored", "what the cache did");
    assert(seen[0] >= PART, `the download began at byte ${seen[0]}`);
    equal((await works(url, { cache: "require" })).cache.state, "hit", "what the cache did then");
  },

  "two tabs download a file once": async () => {
    const before = await requests(PATH);
    const tab = openTab(`${PATH}?shared`);
    const done = tab.until(({ cache }) => cache);
    const [info, { cache }] = await Promise.all([works(`${PATH}?shared`, { cache: "require" }), done]);
    tab.close();
    const states = [info.cache.state, cache.state].sort().join();
    equal(states, "hit,stored", "what the cache did in both");
    equal(await requests(PATH), before + 1, "the number of requests");
  },

  "a part of the cache that is damaged": async () => {
    await works(PATH, { cache: "require" });
    const parts = await files(".part");
    if (parts === null) return NO_FILES;
    equal(parts.length, Math.ceil((await size()) / PART), "the number of parts");
    await write(parts[1], new Uint8Array(PART));
    await write(parts[2], new Uint8Array(5));
    const before = await requests(PATH);
    equal((await works(PATH, { cache: "require" })).cache.state, "hit", "what the cache did");
    equal(await requests(PATH), before + 2, "the number of requests");
    await works(PATH, { cache: "require" });
    equal(await requests(PATH), before + 2, "the number of requests once it is mended");
  },

  "a record of the cache that is torn": async () => {
    await works(PATH, { cache: "require" });
    await works(PATH, { cache: "require" });
    const slots = await files(".json");
    if (slots === null) return NO_FILES;
    equal(slots.length, 2, "the number of slots");
    for (const slot of slots) {
      const text = await (await slot.handle.getFile()).text();
      await write(slot, text.slice(0, text.length >> 1));
      equal((await works(PATH, { cache: "require" })).cache.state, "hit", "what the cache did");
    }
  },

  "a server that sends other parts than those asked for": async () => {
    const info = await works(`/wrong/${FILE}?after=9000000`, { cache: "require" });
    equal(info.cache.state, "stored", "what the cache did");
    equal((await works(`/wrong/${FILE}?after=9000000`, { cache: "require" })).cache.state, "hit", "what it did then");
  },

  "digests of the pieces, right and wrong": async () => {
    const right = await digests();
    await works(PATH, { digests: right, cache: "require" });
    await AnyGpu.cache.clear();
    const wrong = { ...right, chunks: right.chunks.map((digest, index) => (index === 2 ? right.chunks[1] : digest)) };
    await rejection(load(PATH, { digests: wrong, cache: true }), errors.ChecksumError);
    await nothingKept();
    await rejection(load(PATH, { digests: true }), errors.NetworkError);
  },
};
