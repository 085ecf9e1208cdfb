/** From what the caller names to a source: a blob, the cache, or the network. */

import { throwIfAborted } from "./abort.js";
import { CacheError, NetworkError } from "./errors.js";
import { Remote } from "./remote.js";
import { BlobSource, UrlSource, checksumError } from "./source.js";
import { RemoteStream, spool } from "./stream.js";
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
 * @property {Pick<Progress, "connect" | "download">} progress
 * @property {() => Promise<Digest>} newDigest
 * @property {Environment} environment
 * @property {number} reserved Bytes that other files of the same model will take of the cache.
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
  return { source, cache: { state: "off", reason: "only files from a server are kept" }, release: () => {} };
}

/**
 * URLs of the page itself: `blob:` and `data:`.
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
  _cache = { state: "off" };
  /** @type {Store | null} */
  _store = null;
  _remote;
  _key;
  _options;
  _around;

  /**
   * @param {URL} url
   * @param {OpenOptions} options
   * @param {Surroundings} around
   */
  constructor(url, options, around) {
    this._options = options;
    this._around = around;
    this._key = keyOf(url);
    const headers = Object.fromEntries(options.headers ?? []);
    // fetch refuses URLs with credentials in them; this is what they mean.
    if (url.username !== "" || url.password !== "") {
      const login = btoa(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`);
      headers.authorization = headers.authorization ?? `Basic ${login}`;
    }
    const { credentials, network } = options;
    this._remote = new Remote(this._key, { headers, credentials, ...network, signal: around.signal });
  }

  /** @returns {Promise<Opened>} */
  async open() {
    if (this._options.cache === false) this._cache.reason = "cache is false";
    else await this._openStore();
    const kept = await this._usable();
    if (kept !== null && !this._options.revalidate) return this._fromCache(kept);
    /** @type {import("./stream.js").RemoteStream} */
    let stream;
    try {
      stream = await RemoteStream.open(this._remote);
    } catch (error) {
      if (kept === null || !(error instanceof NetworkError)) {
        kept?.release();
        throw error;
      }
      this._cache.reason = `not revalidated: ${error.message}`;
      return this._fromCache(kept);
    }
    if (kept !== null && this._isSame(kept)) {
      stream.close();
      return this._fromCache(kept);
    }
    kept?.release();
    return this._download(stream);
  }

  async _openStore() {
    this._store = await Store.open(this._around.environment);
    if (this._store !== null) return;
    this._cannotKeep(new CacheError("this browser or page has no storage that models can be kept in; load with cache: true"));
  }

  /**
   * Continues without the cache, unless the caller requires it.
   *
   * @param {unknown} error
   */
  _cannotKeep(error) {
    if (this._options.cache === "require") throw error;
    this._cache.state = "off";
    this._cache.reason = error instanceof Error ? error.message : String(error);
  }

  /**
   * What the cache has, if it matches its digest.
   *
   * @returns {Promise<Kept | null>}
   */
  async _usable() {
    const store = this._store;
    if (store === null) return null;
    const { sha256 } = this._options;
    try {
      const kept = await store.get(this._key);
      if (kept === null || sha256 === undefined) return kept;
      try {
        if (kept.entry.sha256 === null) {
          const digest = await this._around.newDigest();
          kept.entry.sha256 = await new BlobSource(kept.blob).digest(digest, this._around.signal);
          await store.update(kept.entry);
        }
      } catch (error) {
        kept.release();
        throw error;
      }
      if (kept.entry.sha256 === sha256) return kept;
      // Damaged, or the caller wants another version: the server may have the right one.
      kept.release();
      await store.delete(this._key);
      return null;
    } catch (error) {
      if (!(error instanceof CacheError)) throw error;
      this._cannotKeep(error);
      return null;
    }
  }

  /** @param {Kept} kept */
  _isSame({ entry }) {
    const { size, etag, lastModified } = this._remote;
    const agrees = (/** @type {unknown} */ a, /** @type {unknown} */ b) => a === null || b === null || a === b;
    const known = (etag !== null && entry.etag !== null) || (lastModified !== null && entry.lastModified !== null);
    return known && agrees(entry.size, size) && agrees(entry.etag, etag) && agrees(entry.lastModified, lastModified);
  }

  /**
   * @param {Kept} kept
   * @returns {Opened}
   */
  _fromCache({ blob, release }) {
    this._cache.state = "hit";
    return { source: new BlobSource(blob), cache: this._cache, release };
  }

  /**
   * @param {import("./stream.js").RemoteStream} stream From the beginning.
   * @returns {Promise<Opened>}
   */
  async _download(stream) {
    const { progress, newDigest } = this._around;
    const { sha256 } = this._options;
    const release = () => {};
    try {
      const { size } = this._remote;
      if (size === null) return { source: await this._downloadWhole(stream), cache: this._cache, release };
      const digest = sha256 === undefined ? null : await newDigest();
      const recorder = await this._newRecorder(size);
      progress.download(0, size);
      const source = new UrlSource(this._remote, stream, size, {
        recorder,
        onRecorderFailure: (error) => this._cannotKeep(error),
        digest,
        sha256: sha256 ?? null,
        onBytes: (loaded) => progress.download(loaded, size),
      });
      return { source, cache: this._cache, release };
    } catch (error) {
      stream.close();
      throw error;
    }
  }

  /**
   * Where the server does not say how long the file is, it is downloaded before it is read.
   *
   * @param {import("./stream.js").RemoteStream} stream
   * @returns {Promise<BlobSource>}
   */
  async _downloadWhole(stream) {
    const { progress, newDigest, signal } = this._around;
    const { sha256 } = this._options;
    let loaded = 0;
    const blob = await spool(stream, (bytes) => progress.download((loaded += bytes), 0));
    progress.download(blob.size, blob.size);
    const source = new BlobSource(blob);
    if (sha256 !== undefined) await checkBlob(source, sha256, await newDigest(), signal);
    const recorder = await this._newRecorder(blob.size);
    if (recorder === null) return source;
    const { etag, lastModified } = this._remote;
    try {
      await source.pieces(signal, (bytes) => recorder.write(bytes));
      await recorder.commit({ sha256: sha256 ?? null, etag, lastModified });
    } catch (error) {
      await recorder.abort();
      if (!(error instanceof CacheError)) throw error;
      this._cannotKeep(error);
    }
    return source;
  }

  /** @param {number} size */
  async _newRecorder(size) {
    if (this._store === null) return null;
    try {
      const recorder = await this._store.create(
        this._key,
        size,
        this._options.maxCacheBytes ?? Infinity,
        this._around.reserved,
      );
      this._cache.state = "stored";
      return recorder;
    } catch (error) {
      this._cannotKeep(error);
      return null;
    }
  }
}
