/** Opens a source: a blob, the cache, or the network. */

import { NetworkError, OptionsError, throwIfAborted } from "../common/errors.js";
import { runtime } from "../common/runtime.js";
import { UrlOpener } from "./open-url.js";
import { BlobSource } from "./source.js";
import { check } from "./verify.js";

/** @import { CacheState, FileDigests } from "../../index.d.ts" */
/** @import { CachedSource } from "../cache/cached-source.js" */
/** @import { FileLike } from "../common/runtime.js" */
/** @import { Progress } from "../engine/load-progress.js" */
/** @import { Environment } from "../opfs/storage.js" */
/** @import { Digest, UrlSource } from "./source.js" */

/**
 * @typedef {object} OpenOptions
 * @property {boolean | "require"} [cache]
 * @property {number} [maxCacheBytes]
 * @property {boolean} [revalidate]
 * @property {string} [sha256]
 * @property {true | FileDigests} [digests]
 * @property {[string, string][]} [headers]
 * @property {RequestCredentials} [credentials]
 * @property {{ retries?: number, stallTimeout?: number }} [network]
 */

/**
 * @typedef {object} Surroundings
 * @property {AbortSignal} signal
 * @property {Pick<Progress, "connect" | "download">} progress
 * @property {() => Promise<Digest>} newDigest
 * @property {Environment} environment
 * @property {number} reserved Bytes that other files of the same model will take of the cache.
 * @property {boolean} waits Whether to wait for another tab that downloads the file. A tab that others wait for must not.
 */

/**
 * @typedef {object} Opened
 * @property {BlobSource | CachedSource | UrlSource} source
 * @property {CacheState} cache Final once the source is finished.
 * @property {() => void} release To be called when the source is not read any more.
 */

/**
 * @param {Blob | string} what A file, or an absolute URL.
 * @param {OpenOptions} options
 * @param {Surroundings} around
 * @returns {Promise<Opened>}
 */
export async function open(what, options, around) {
  around.progress.connect();
  if (typeof what !== "string") return openBlob(what, options, around);
  const url = new URL(what);
  if (url.protocol === "file:" && runtime.openFile !== null) return openBlob(await runtime.openFile(url), options, around);
  if (!["http:", "https:"].includes(url.protocol)) return openBlob(await fetchBlob(url, around.signal), options, around);
  return new UrlOpener(url, options, around).open();
}

/**
 * @param {FileLike} blob
 * @param {OpenOptions} options
 * @param {Surroundings} around
 * @returns {Promise<Opened>}
 */
async function openBlob(blob, { sha256, digests }, { signal, newDigest }) {
  if (digests === true) {
    throw new OptionsError("digests must be the digests themselves for a file without a server", { field: "digests" });
  }
  const source = new BlobSource(blob);
  await check(source, { sha256, digests }, newDigest, signal);
  return { source, cache: { state: "off", reason: "only files from a server are kept" }, release: () => {} };
}

/**
 * Reads a URL of the page itself: `blob:` or `data:`.
 *
 * @param {URL} url
 * @param {AbortSignal} signal
 */
async function fetchBlob(url, signal) {
  try {
    return await (await fetch(url, { signal })).blob();
  } catch (cause) {
    throwIfAborted(signal);
    const message = `cannot read ${url.protocol} URLs; use http, https, or the file itself`;
    throw new NetworkError(message, { url: url.href.slice(0, 200), cause });
  }
}
