/** Opens one file on a server: from the cache, or from the network and into the cache. */

import { CachedSource } from "../cache/cached-source.js";
import { mayResume } from "../cache/entry-writer.js";
import { keyOf } from "../cache/entry.js";
import { ModelStore } from "../cache/model-store.js";
import { CacheError, ChecksumError, NetworkError } from "../common/errors.js";
import { ExpectedDigests } from "./expected-digests.js";
import { manifestOf } from "./manifest.js";
import { refetching } from "./refetch.js";
import { Changed, RemoteFile, isSame, networkOf } from "./remote-file.js";
import { RemoteStream, spool } from "./remote-stream.js";
import { BlobSource, UrlSource } from "./source.js";
import { VerifiedStream } from "./verified-stream.js";
import { check } from "./verify.js";

/** @import { CacheState } from "../../index.d.ts" */
/** @import { EntryWriter } from "../cache/entry-writer.js" */
/** @import { PinnedEntry } from "../cache/model-store.js" */
/** @import { OpenOptions, Opened, Surroundings } from "./open-file.js" */
/** @import { RemoteOptions, Version } from "./remote-file.js" */
/** @import { Stream } from "./source.js" */

/** One attempt to open a file. */
export class UrlOpener {
  /** @type {CacheState} */
  _cache = { state: "off" };
  /** @type {ModelStore | null} */
  _store = null;
  /**
   * Ends this tab's turn to download the file.
   *
   * @type {(() => void) | null}
   */
  _turn = null;
  _expected;
  _remote;
  _key;
  /** @type {RemoteOptions} */
  _network;
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
    this._network = networkOf(url, options, around.signal);
    this._remote = new RemoteFile(this._key, this._network);
    const manifest = new RemoteFile(manifestOf(this._key), this._network);
    this._expected = new ExpectedDigests(options, manifest, around);
  }

  /** @returns {Promise<Opened>} */
  async open() {
    try {
      return await this._open();
    } catch (error) {
      this._endTurn();
      throw error;
    }
  }

  async _open() {
    if (this._options.cache === false) this._cache.reason = "cache is false";
    else await this._openStore();
    let cached = await this._usable();
    if (cached !== null && !this._options.revalidate) return this._fromCache(cached);
    if (cached === null && (await this._takeTurn())) {
      // Another tab may have downloaded it meanwhile.
      cached = await this._usable();
      if (cached !== null) {
        this._around.progress.download(cached.entry.size, cached.entry.size);
        return this._fromCache(cached);
      }
    }
    return cached === null ? this._download() : this._revalidate(cached);
  }

  async _openStore() {
    this._store = await ModelStore.open(this._around.environment);
    if (this._store !== null) return;
    const message = "this browser or page has no storage that models can be kept in; load with cache: true";
    this._cannotKeep(new CacheError(message));
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

  /** Notes that the file is kept after all, if something failed before. */
  _keeps() {
    this._cache.state = "stored";
    delete this._cache.reason;
  }

  /**
   * Runs an action with the store, if there is one.
   *
   * @template T
   * @param {(store: ModelStore) => Promise<T | null>} action
   * @returns {Promise<T | null>} Null if it failed, too, and the caller can do without.
   */
  async _stored(action) {
    if (this._store === null) return null;
    try {
      return await action(this._store);
    } catch (error) {
      if (!(error instanceof CacheError)) throw error;
      this._cannotKeep(error);
      return null;
    }
  }

  /** Returns the cached file, if it matches its digests. @returns {Promise<PinnedEntry | null>} */
  _usable() {
    return this._stored(async (store) => {
      const cached = await store.get(this._key);
      if (cached === null) return null;
      cached.parts.refetch = this._refetch(store, cached.entry);
      try {
        if (await this._expected.matches(store, cached)) return cached;
      } catch (error) {
        cached.release();
        throw error;
      }
      // The caller wants another version; the server may have it.
      cached.release();
      await store.delete(this._key);
      return null;
    });
  }

  /**
   * @param {ModelStore} store
   * @param {Version} version
   */
  _refetch(store, version) {
    return refetching(() => new RemoteFile(this._key, this._network), version, () => store.delete(this._key));
  }

  /**
   * @param {PinnedEntry} cached
   * @returns {Opened}
   */
  _fromCache({ entry, parts, release }) {
    this._cache.state = "hit";
    const end = () => {
      release();
      this._endTurn();
    };
    return { source: new CachedSource(parts, entry.size), cache: this._cache, release: end };
  }

  /** Asks the server whether the cached file is still the same. @param {PinnedEntry} cached */
  async _revalidate(cached) {
    /** @type {RemoteStream} */
    let stream;
    try {
      stream = await RemoteStream.open(this._remote);
    } catch (error) {
      if (!(error instanceof NetworkError)) {
        cached.release();
        throw error;
      }
      this._cache.reason = `not revalidated: ${error.message}`;
      return this._fromCache(cached);
    }
    if (isSame(this._remote, cached.entry)) {
      stream.close();
      return this._fromCache(cached);
    }
    cached.release();
    return this._closingOnError(stream, async () => {
      await this._takeTurn();
      await this._expected.read();
      return this._read(this._verified(stream), null);
    });
  }

  /** Waits for this tab's turn to download the file. @returns {Promise<boolean>} Whether another tab had it before. */
  async _takeTurn() {
    const { signal, waits, progress } = this._around;
    const taken = await this._stored((store) =>
      store.turn(this._key, {
        signal,
        patience: this._remote.stallTimeout,
        waits: waits && !this._options.revalidate,
        onProgress: (stored, size) => progress.download(stored, size),
      }),
    );
    this._turn = taken?.release ?? null;
    return taken?.waited ?? false;
  }

  _endTurn() {
    this._turn?.();
    this._turn = null;
  }

  /** @returns {Promise<Opened>} */
  async _download() {
    await this._expected.read();
    const writer = await this._resumed();
    if (writer !== null) {
      this._remote.expect(writer.version);
      writer.mend(this._refetch(/** @type {ModelStore} */ (this._store), writer.version));
      /** @type {Stream | null} */
      let stream = null;
      try {
        stream = this._newStream(writer.position, await writer.last());
        await stream.connect();
        return await this._read(stream, writer);
      } catch (error) {
        stream?.close();
        await writer.abort(mayResume(error));
        if (!(error instanceof Changed || error instanceof CacheError)) throw error;
        // Starts again from the beginning.
        this._remote = new RemoteFile(this._key, this._network);
      }
    }
    const stream = await RemoteStream.open(this._remote);
    return this._closingOnError(stream, () => this._read(this._verified(stream), null));
  }

  /**
   * @template T
   * @param {Stream} stream
   * @param {() => Promise<T>} action
   */
  async _closingOnError(stream, action) {
    try {
      return await action();
    } catch (error) {
      stream.close();
      throw error;
    }
  }

  /**
   * Returns a stream from the beginning, checked against the digests if there are any.
   *
   * @param {RemoteStream} stream
   * @returns {Stream}
   */
  _verified(stream) {
    if (this._expected.digests === null) return stream;
    if (this._remote.size === null) this._remote.size = this._expected.digests.size;
    return new VerifiedStream(this._remote, 0, this._expected.digests, this._around.newDigest, stream);
  }

  /**
   * @param {number} position
   * @param {Uint8Array} [before]
   * @returns {Stream}
   */
  _newStream(position, before) {
    if (this._expected.digests === null) return new RemoteStream(this._remote, position, before);
    return new VerifiedStream(this._remote, position, this._expected.digests, this._around.newDigest);
  }

  /** Returns the part that an earlier attempt left, if it can be continued. @returns {Promise<EntryWriter | null>} */
  async _resumed() {
    if (this._turn === null) return null;
    const writer = await this._stored((store) => store.resumed(this._key, this._room()));
    if (writer === null || writer.manifest === this._expected.manifest) return writer;
    await writer.abort();
    return null;
  }

  /**
   * @param {Stream} stream From where the entry is, if there is an unfinished one, or from the beginning.
   * @param {EntryWriter | null} resumed
   * @returns {Promise<Opened>}
   */
  async _read(stream, resumed) {
    const { progress } = this._around;
    const release = () => this._endTurn();
    const { size } = this._remote;
    const expected = this._expected.digests?.size ?? size;
    if (size !== expected) {
      const message = `${this._key} has ${size} bytes, but its digests are those of ${expected}`;
      throw new ChecksumError(`${message}; correct the URL or the digests`);
    }
    if (size === null) return { source: await this._readWhole(stream), cache: this._cache, release };
    const writer = resumed ?? (await this._newWriter(size));
    if (writer !== null) this._keeps();
    try {
      const digest = await this._expected.digestAfter(resumed);
      progress.download(stream.position, size);
      const source = new UrlSource(this._remote, stream, size, {
        recorder: writer,
        onRecorderFailure: (error) => this._cannotKeep(error),
        digest,
        sha256: this._options.sha256 ?? null,
        manifest: this._expected.manifest,
        newStream: (position) => this._newStream(position),
        onBytes: (loaded) => progress.download(loaded, size),
      });
      return { source, cache: this._cache, release };
    } catch (error) {
      if (resumed === null) await writer?.abort();
      throw error;
    }
  }

  /**
   * Downloads a whole file before it is read, for servers that do not tell its size.
   *
   * @param {Stream} stream
   * @returns {Promise<BlobSource>}
   */
  async _readWhole(stream) {
    const { progress, newDigest, signal } = this._around;
    const { sha256: wanted } = this._options;
    let loaded = 0;
    const blob = await spool(stream, (bytes) => progress.download((loaded += bytes), 0));
    progress.download(blob.size, blob.size);
    const source = new BlobSource(blob);
    await check(source, { sha256: wanted }, newDigest, signal);
    const writer = await this._newWriter(blob.size);
    if (writer === null) return source;
    this._keeps();
    const { etag, lastModified } = this._remote;
    try {
      await source.pieces(signal, (bytes) => writer.write(bytes));
      await writer.commit({ sha256: wanted ?? null, manifest: this._expected.manifest, etag, lastModified });
    } catch (error) {
      await writer.abort();
      if (!(error instanceof CacheError)) throw error;
      this._cannotKeep(error);
    }
    return source;
  }

  /** @param {number} size */
  _newWriter(size) {
    const { etag, lastModified } = this._remote;
    const version = { size, etag, lastModified, manifest: this._expected.manifest };
    return this._stored((store) => store.create(this._key, version, this._room(), this._turn !== null));
  }

  _room() {
    return { maxBytes: this._options.maxCacheBytes ?? Infinity, reserved: this._around.reserved };
  }
}
