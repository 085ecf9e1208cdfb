/** From what the caller names to a source: a blob, the cache, or the network. */

import { CacheError, NetworkError } from "./errors.js";
import { Remote, spool } from "./remote.js";
import { BlobSource, UrlSource, checksumError } from "./source.js";
import { Store, keyOf } from "./store.js";

/** @import { CacheState } from "../index.d.ts" */
/** @import { Progress } from "./progress.js" */
/** @import { Digest } from "./source.js" */
/** @import { Environment, Kept } from "./store.js" */

/**
 * @typedef {object} OpenOptions
 * @property {boolean | "require"} [cache]
 * @property {number} [maxCacheBytes]
 * @property {boolean} [revalidate]
 * @property {string} [sha256]
 * @property {[string, string][]} [headers]
 * @property {RequestCredentials} [credentials]
 * @property {{ retries?: number, stallTimeout?: number }} [network]
 */

/**
 * @typedef {object} Surroundings
 * @property {AbortSignal} signal
 * @property {Progress} progress
 * @property {() => Promise<Digest>} newDigest
 * @property {Environment} environment
 */

/**
 * @typedef {object} Opened
 * @property {BlobSource | UrlSource} source
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
  if (!["http:", "https:"].includes(url.protocol)) return openBlob(await fetchBlob(url, around.signal), options, around);
  return new Opening(url, options, around).open();
}

/**
 * @param {Blob} blob
 * @param {OpenOptions} options
 * @param {Surroundings} around
 * @returns {Promise<Opened>}
 */
async function openBlob(blob, { sha256 }, { signal, newDigest }) {
  const source = new BlobSource(blob);
  if (sha256 !== undefined) await checkBlob(source, sha256, await newDigest(), signal);
  return { source, cache: { state: "off", reason: "only what comes from a server is kept" }, release: () => {} };
}

/**
 * What lies in the page: `blob:` and `data:`.
 *
 * @param {URL} url
 * @param {AbortSignal} signal
 */
async function fetchBlob(url, signal) {
  try {
    return await (await fetch(url, { signal })).blob();
  } catch (cause) {
    signal.throwIfAborted();
    const message = `cannot read ${url.protocol} addresses like this one; use http, https, or the file itself`;
    throw new NetworkError(message, { url: url.href.slice(0, 200), cause });
  }
}

/**
 * @param {BlobSource} source
 * @param {string} sha256
 * @param {Digest} digest
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
async function checkBlob(source, sha256, digest, signal) {
  const actual = await source.digest(digest, signal);
  if (actual !== sha256) throw checksumError(sha256, actual);
}

/** One opening of a file on a server. */
class Opening {
  /** @type {CacheState} */
  #cache = { state: "off" };
  /** @type {Store | null} */
  #store = null;
  #remote;
  #key;
  #options;
  #around;

  /**
   * @param {URL} url
   * @param {OpenOptions} options
   * @param {Surroundings} around
   */
  constructor(url, options, around) {
    this.#options = options;
    this.#around = around;
    this.#key = keyOf(url);
    const headers = Object.fromEntries(options.headers ?? []);
    // fetch refuses addresses with credentials in them; this is what they mean.
    if (url.username !== "" || url.password !== "") {
      headers.authorization ??= `Basic ${btoa(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`)}`;
    }
    const { credentials, network } = options;
    this.#remote = new Remote(this.#key, { headers, credentials, ...network, signal: around.signal });
  }

  /** @returns {Promise<Opened>} */
  async open() {
    if (this.#options.cache === false) this.#cache.reason = "cache is false";
    else await this.#openStore();
    const kept = await this.#usable();
    if (kept !== null && !this.#options.revalidate) return this.#fromCache(kept);
    /** @type {import("./remote.js").RemoteStream} */
    let stream;
    try {
      stream = await this.#remote.connect();
    } catch (error) {
      if (kept === null || !(error instanceof NetworkError)) {
        kept?.release();
        throw error;
      }
      this.#cache.reason = `not revalidated: ${error.message}`;
      return this.#fromCache(kept);
    }
    if (kept !== null && this.#isSame(kept)) {
      stream.close();
      return this.#fromCache(kept);
    }
    kept?.release();
    return this.#download(stream);
  }

  async #openStore() {
    this.#store = await Store.open(this.#around.environment);
    if (this.#store !== null) return;
    this.#cannotKeep(new CacheError("this browser or page has no storage that models can be kept in; load with cache: true"));
  }

  /**
   * Goes on without the cache, unless the caller wants none of that.
   *
   * @param {unknown} error
   */
  #cannotKeep(error) {
    if (this.#options.cache === "require") throw error;
    this.#cache.state = "off";
    this.#cache.reason = error instanceof Error ? error.message : String(error);
  }

  /**
   * What the cache has, if it is what its digest says.
   *
   * @returns {Promise<Kept | null>}
   */
  async #usable() {
    const store = this.#store;
    if (store === null) return null;
    const { sha256 } = this.#options;
    try {
      const kept = await store.get(this.#key);
      if (kept === null || sha256 === undefined) return kept;
      try {
        if (kept.entry.sha256 === null) {
          const digest = await this.#around.newDigest();
          kept.entry.sha256 = await new BlobSource(kept.blob).digest(digest, this.#around.signal);
          await store.update(kept.entry);
        }
      } catch (error) {
        kept.release();
        throw error;
      }
      if (kept.entry.sha256 === sha256) return kept;
      // Damaged, or the caller wants another version: the server may have the right one.
      kept.release();
      await store.delete(this.#key);
      return null;
    } catch (error) {
      if (!(error instanceof CacheError)) throw error;
      this.#cannotKeep(error);
      return null;
    }
  }

  /** @param {Kept} kept */
  #isSame({ entry }) {
    const { size, etag, lastModified } = this.#remote;
    const agrees = (/** @type {unknown} */ a, /** @type {unknown} */ b) => a === null || b === null || a === b;
    const known = (etag !== null && entry.etag !== null) || (lastModified !== null && entry.lastModified !== null);
    return known && agrees(entry.size, size) && agrees(entry.etag, etag) && agrees(entry.lastModified, lastModified);
  }

  /**
   * @param {Kept} kept
   * @returns {Opened}
   */
  #fromCache({ blob, release }) {
    this.#cache.state = "hit";
    return { source: new BlobSource(blob), cache: this.#cache, release };
  }

  /**
   * @param {import("./remote.js").RemoteStream} stream From the beginning.
   * @returns {Promise<Opened>}
   */
  async #download(stream) {
    const { progress, newDigest } = this.#around;
    const { sha256 } = this.#options;
    const release = () => {};
    try {
      const { size } = this.#remote;
      if (size === null) return { source: await this.#downloadWhole(stream), cache: this.#cache, release };
      const digest = sha256 === undefined ? null : await newDigest();
      const recorder = await this.#newRecorder(size);
      progress.download(0, size);
      const source = new UrlSource(this.#remote, stream, size, {
        recorder,
        onRecorderFailure: (error) => this.#cannotKeep(error),
        digest,
        sha256: sha256 ?? null,
        onBytes: (loaded) => progress.download(loaded, size),
      });
      return { source, cache: this.#cache, release };
    } catch (error) {
      stream.close();
      throw error;
    }
  }

  /**
   * Where the server does not say how long the file is, it is downloaded before it is read.
   *
   * @param {import("./remote.js").RemoteStream} stream
   * @returns {Promise<BlobSource>}
   */
  async #downloadWhole(stream) {
    const { progress, newDigest, signal } = this.#around;
    const { sha256 } = this.#options;
    let loaded = 0;
    const blob = await spool(stream, (bytes) => progress.download((loaded += bytes), 0));
    progress.download(blob.size, blob.size);
    const source = new BlobSource(blob);
    if (sha256 !== undefined) await checkBlob(source, sha256, await newDigest(), signal);
    const recorder = await this.#newRecorder(blob.size);
    if (recorder === null) return source;
    const { etag, lastModified } = this.#remote;
    try {
      await source.pieces(signal, (bytes) => recorder.write(bytes));
      await recorder.commit({ sha256: sha256 ?? null, etag, lastModified });
    } catch (error) {
      await recorder.abort();
      if (!(error instanceof CacheError)) throw error;
      this.#cannotKeep(error);
    }
    return source;
  }

  /** @param {number} size */
  async #newRecorder(size) {
    if (this.#store === null) return null;
    try {
      const recorder = await this.#store.create(this.#key, size, this.#options.maxCacheBytes ?? Infinity);
      this.#cache.state = "stored";
      return recorder;
    } catch (error) {
      this.#cannotKeep(error);
      return null;
    }
  }
}
