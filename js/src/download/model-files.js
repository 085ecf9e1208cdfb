/**
 * A model in one or several files. They are opened one after the other, and read as one long file. Their contents are
 * not looked at here; the engine puts them in order.
 *
 * At most one of them has a connection: browsers have few for one server, and connections that are not read would
 * stall.
 */

import { mayResume } from "../cache/entry-writer.js";
import { FileError, OptionsError } from "../common/errors.js";
import { open } from "./open-file.js";

/** @import { CacheState, FileDigests } from "../../index.d.ts" */
/** @import { Progress } from "../engine/load-progress.js" */
/** @import { OpenOptions, Opened, Surroundings } from "./open-file.js" */

/** Ending of the name of a file of a split model. */
export const PARTS = /-(\d{5})-of-(\d{5})\.gguf$/;

/**
 * Returns the addresses of all files of a split model, given one of them. Any other address is returned alone.
 *
 * @param {string} url Absolute.
 * @returns {string[]}
 */
export function siblings(url) {
  const address = new URL(url);
  const path = address.pathname;
  const [end, file, count] = PARTS.exec(path) ?? ["", "0", "0"];
  if (Number(file) < 1 || Number(file) > Number(count)) return [url];
  return Array.from({ length: Number(count) }, (_, before) => {
    const number = String(before + 1).padStart(5, "0");
    address.pathname = `${path.slice(0, -end.length)}-${number}-of-${count}.gguf`;
    return address.href;
  });
}

/** Several sources read as one. */
export class FilesSource {
  _sources;
  /** The source that was read last; the others have no connection. */
  _current;

  /** @param {Opened["source"][]} sources At least one; all but the last are paused. */
  constructor(sources) {
    this._sources = sources;
    this._current = sources[sources.length - 1];
    /** Size of each file, in bytes. */
    this.files = sources.map((source) => source.size);
    this.size = sum(this.files);
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async readAt(offset, length) {
    let start = 0;
    for (const source of this._sources) {
      if (offset < start + source.size) return this._turnTo(source).readAt(offset - start, length);
      start += source.size;
    }
    throw new FileError(`byte ${offset} is wanted, but the files end at byte ${this.size}; load whole files again`);
  }

  /**
   * Reads ahead while the engine does something else. With several files it does nothing, since the first of them is
   * read next.
   */
  readOn() {
    if (this._sources.length === 1) this._current.readOn();
  }

  async finish() {
    for (const source of this._sources) await this._turnTo(source).finish();
  }

  /** @param {boolean} keep Whether a later attempt may use what arrived. */
  async abort(keep) {
    for (const source of this._sources) await source.abort(keep);
  }

  /** @param {Opened["source"]} source */
  _turnTo(source) {
    if (source !== this._current) this._current.pause();
    this._current = source;
    return source;
  }
}

/**
 * @typedef {Omit<OpenOptions, "sha256" | "digests"> & Digests} ModelOptions
 */

/**
 * @typedef {object} Digests Digests of one file, or of all files of a split model.
 * @property {string | string[]} [sha256]
 * @property {true | FileDigests | FileDigests[]} [digests] True: they lie beside the files.
 */

/**
 * @typedef {object} OpenedModel
 * @property {FilesSource} source
 * @property {() => CacheState} cache Final once the source is finished.
 * @property {() => void} release To be called when the source is not read any more.
 */

/**
 * @param {Blob | string | (Blob | string)[]} what A file, an absolute URL, of which a split model needs one, or all files.
 * @param {ModelOptions} options
 * @param {Omit<Surroundings, "reserved" | "waits"> & { progress: Progress }} around
 * @returns {Promise<OpenedModel>}
 */
export async function openModel(what, options, around) {
  const files = Array.isArray(what) ? what : typeof what === "string" ? siblings(what) : [what];
  const sha256 = ofEach("sha256", options.sha256, files.length);
  const beside = options.digests === true;
  const digests = beside ? undefined : ofEach("digests", options.digests, files.length);
  const shares = new Shares(around.progress, files.length);
  /** @type {Opened[]} */
  const opened = [];
  const release = () => opened.forEach((one) => one.release());
  try {
    for (const [index, file] of files.entries()) {
      if (index > 0) opened[index - 1].source.pause();
      const reserved = sum(opened.filter(({ cache }) => cache.state === "stored").map(({ source }) => source.size));
      const waits = opened.every(({ cache }) => cache.state !== "stored");
      const here = { ...around, progress: shares.of(index), reserved, waits };
      const own = { sha256: sha256?.[index], digests: beside ? true : digests?.[index] };
      opened.push(await open(file, { ...options, ...own }, here));
      shares.settle(index);
    }
  } catch (error) {
    for (const { source } of opened) await source.abort(mayResume(error));
    release();
    throw error;
  }
  const source = new FilesSource(opened.map((one) => one.source));
  return { source, cache: () => together(opened.map((one) => one.cache)), release };
}

/**
 * Returns the values that were given for each file.
 *
 * @template T
 * @param {"sha256" | "digests"} name
 * @param {T | T[] | undefined} value
 * @param {number} count
 * @returns {T[] | undefined}
 */
function ofEach(name, value, count) {
  if (value === undefined) return undefined;
  const all = Array.isArray(value) ? value : [value];
  if (all.length === count) return all;
  const message = `the model has ${count} files, but ${name} is given for ${all.length}`;
  throw new OptionsError(`${message}; give an array with one for each`, { field: name });
}

/**
 * Combines the cache states of the files into that of the model.
 *
 * @param {CacheState[]} files
 * @returns {CacheState}
 */
function together(files) {
  const has = (/** @type {CacheState["state"]} */ state) => files.find((file) => file.state === state);
  return has("off") ?? has("stored") ?? files.find((file) => file.reason !== undefined) ?? files[0];
}

/** Combines the progress of several downloads into one. */
class Shares {
  _progress;
  /** @type {number[]} */
  _loaded;
  /** Total of each file; null while it is not known. @type {(number | null)[]} */
  _totals;

  /**
   * @param {Progress} progress
   * @param {number} count
   */
  constructor(progress, count) {
    this._progress = progress;
    this._loaded = new Array(count).fill(0);
    this._totals = new Array(count).fill(null);
  }

  /**
   * Returns the progress listener of one file.
   *
   * @param {number} index
   * @returns {Surroundings["progress"]}
   */
  of(index) {
    return {
      connect: () => {
        if (index === 0) this._progress.connect();
      },
      download: (loaded, total) => {
        this._loaded[index] = loaded;
        if (total > 0) this._totals[index] = total;
        const known = this._totals.every((total) => total !== null);
        this._progress.download(sum(this._loaded), known ? sum(this._totals) : 0);
      },
    };
  }

  /** Notes that a file is open. If its total is not known by now, nothing of it is downloaded. @param {number} index */
  settle(index) {
    if (this._totals[index] === null) this._totals[index] = 0;
  }
}

/** @param {(number | null)[]} numbers */
function sum(numbers) {
  return numbers.reduce((/** @type {number} */ all, one) => all + (one ?? 0), 0);
}
