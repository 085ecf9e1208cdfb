/** The digests that a file on a server must have: that of the whole, and those of its pieces. */

import { CachedSource } from "../cache/cached-source.js";
import { PART } from "../cache/stored-parts.js";
import { ChecksumError } from "../common/errors.js";
import { download, fingerprint } from "./manifest.js";
import { check } from "./verify.js";

/** @import { FileDigests } from "../../index.d.ts" */
/** @import { EntryWriter } from "../cache/entry-writer.js" */
/** @import { PinnedEntry, ModelStore } from "../cache/model-store.js" */
/** @import { OpenOptions, Surroundings } from "./open-file.js" */
/** @import { RemoteFile } from "./remote-file.js" */
/** @import { Digest } from "./source.js" */

/** The expected digests of a file. */
export class ExpectedDigests {
  /** @type {FileDigests | null} */
  digests = null;
  /** Digest of the digests; null before they are read. @type {string | null} */
  manifest = null;
  _options;
  _beside;
  _around;

  /**
   * @param {Pick<OpenOptions, "sha256" | "digests">} options
   * @param {RemoteFile} beside Where the digests are if they lie beside the file.
   * @param {Pick<Surroundings, "newDigest" | "signal">} around
   */
  constructor(options, beside, around) {
    this._options = options;
    this._beside = beside;
    this._around = around;
  }

  /** Reads the digests of the pieces, if there are any. */
  async read() {
    const { digests } = this._options;
    if (digests === undefined || this.digests !== null) return;
    this.digests = digests === true ? await download(this._beside) : digests;
    this.manifest = await fingerprint(this.digests, this._around.newDigest);
  }

  /**
   * Whether a stored file has the expected digests.
   *
   * @param {ModelStore} store
   * @param {PinnedEntry} cached
   */
  async matches(store, { entry, parts }) {
    const { sha256: wanted } = this._options;
    const { newDigest, signal } = this._around;
    const source = new CachedSource(parts, entry.size);
    if (wanted !== undefined && entry.sha256 === null) {
      entry.sha256 = await source.digest(await newDigest(), signal);
      await store.update(entry);
    }
    if (wanted !== undefined && entry.sha256 !== wanted) return false;
    // A file that matched digests from the server is not compared with them again.
    if (this._options.digests === true && entry.manifest !== null) return true;
    await this.read();
    if (this.digests === null || entry.manifest === this.manifest) return true;
    try {
      await check(source, { digests: this.digests }, newDigest, signal);
    } catch (error) {
      if (error instanceof ChecksumError) return false;
      throw error;
    }
    entry.manifest = this.manifest;
    await store.update(entry);
    return true;
  }

  /**
   * Returns a digest of the part of the file that is there, if the caller wants one.
   *
   * @param {EntryWriter | null} writer
   * @returns {Promise<Digest | null>}
   */
  async digestAfter(writer) {
    if (this._options.sha256 === undefined) return null;
    const digest = await this._around.newDigest();
    const there = writer?.position ?? 0;
    for (let at = 0; writer !== null && at < there; at += PART) {
      digest.update(await writer.read(at, Math.min(PART, there - at)));
    }
    return digest;
  }
}
