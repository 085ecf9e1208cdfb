/**
 * Digests of what is kept, computed by workers beside the engine, which write it as well: Chromium computes a digest on the
 * thread that asks for it, and both together take longer than all else that loading does there.
 */

import { within } from "./patience.js";
import { sha256 } from "./sha256.js";

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
/** @typedef {{ folder: FileSystemDirectoryHandle, name: string }} Place A file. */

/**
 * @typedef {object} Digested
 * @property {string} digest SHA-256, in hexadecimal digits.
 * @property {Bytes} bytes
 * @property {boolean} written Whether they are in their place.
 */

/** As many as parts that are under way. */
const COUNT = 2;
/** How long they stay when nothing is asked of them, in milliseconds. */
const IDLE = 5000;
/** How long a digest of some MiB may take, in milliseconds. */
const LIMIT = 20_000;

// Bundlers recognise exactly this form.
const start = () => new Worker(new URL("./digest-worker.js", import.meta.url), { type: "module", name: "anygpu-digest" });

/** A worker. It is asked once it has said that it runs, so that memory is never given to one that cannot be loaded. */
class Digester {
  _worker;
  /** @type {{ resolve: (digested: Digested) => void, reject: (error: Error) => void }[]} */
  _waiting = [];
  _isReady = false;
  _onEnd;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  _idle;

  /** @param {(failed: boolean) => void} onEnd */
  constructor(onEnd) {
    this._onEnd = onEnd;
    this._worker = start();
    this._worker.onmessage = ({ data }) => this._heard(data);
    this._worker.onerror = (event) => {
      // Where it cannot be loaded nothing is wrong: the thread computes digests itself.
      event.preventDefault();
      this.end(true);
    };
  }

  /** How many digests it has yet to compute; infinite as long as it does not run. */
  get load() {
    return this._isReady ? this._waiting.length : Infinity;
  }

  /** @param {Bytes} bytes @param {Place | null} place @returns {Promise<Digested>} */
  async digest(bytes, place) {
    clearTimeout(this._idle);
    try {
      this._worker.postMessage({ bytes, place }, [bytes.buffer]);
    } catch {
      // It cannot be given a folder of this kind.
      this.end(true);
      return here(bytes);
    }
    const answer = new Promise((resolve, reject) => this._waiting.push({ resolve, reject }));
    try {
      return await within(LIMIT, answer, () => new Error(`no digest for ${LIMIT} ms`));
    } catch (error) {
      this.end(true);
      throw error;
    }
  }

  /** @param {Digested | null} said Null when it runs. */
  _heard(said) {
    this._isReady = true;
    if (said !== null) this._waiting.shift()?.resolve(said);
    clearTimeout(this._idle);
    if (this._waiting.length === 0) this._idle = setTimeout(() => this.end(false), IDLE);
  }

  /** @param {boolean} failed */
  end(failed) {
    clearTimeout(this._idle);
    this._worker.terminate();
    for (const { reject } of this._waiting.splice(0)) reject(new Error("the worker that computes digests ended"));
    this._onEnd(failed);
  }
}

/** @type {Set<Digester>} */
const digesters = new Set();
/** Whether workers can be had here. */
let possible = true;

/** Whoever has least to do; nobody as long as none runs. */
function free() {
  // Other browsers and runtimes have threads of their own for it. Only Chromium's have this.
  const isChromium = "userAgentData" in (globalThis.navigator ?? {});
  if (!isChromium || typeof Worker !== "function") return null;
  while (possible && digesters.size < COUNT) {
    try {
      const digester = new Digester((failed) => {
        digesters.delete(digester);
        if (failed) possible = false;
      });
      digesters.add(digester);
    } catch {
      // A policy of the site forbids it.
      possible = false;
    }
  }
  const [first] = [...digesters].sort((a, b) => a.load - b.load);
  return first !== undefined && first.load < Infinity ? first : null;
}

/** @param {Bytes} bytes @returns {Promise<Digested>} */
async function here(bytes) {
  return { digest: await sha256(bytes), bytes, written: false };
}

/**
 * The digest of bytes. Where a worker computes it, it writes them as well if it can.
 *
 * @param {Bytes} bytes All of their memory. It is somebody else's meanwhile, and comes back with the digest.
 * @param {Place | null} [place] Where they are to be written.
 * @returns {Promise<Digested>}
 */
export async function digested(bytes, place = null) {
  const digester = free();
  return digester === null ? here(bytes) : digester.digest(bytes, place);
}
