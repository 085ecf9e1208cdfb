/**
 * Digests of stored parts, computed by workers, which write the parts as well. Chromium computes a digest on the
 * calling thread; digest and write together would take longer there than the rest of loading.
 */

import { sha256 } from "./common/sha256.js";
import { within } from "./common/timeout.js";

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
/** @typedef {{ folder: FileSystemDirectoryHandle, name: string }} Place A file. */

/**
 * @typedef {object} Digested
 * @property {string} digest SHA-256, in hexadecimal digits.
 * @property {Bytes} bytes
 * @property {boolean} written Whether they are in their place.
 */

/** Number of workers: one for each part that is under way. */
const COUNT = 2;
/** How long an idle worker stays, in milliseconds. */
const IDLE = 5000;
/** How long a digest of some MiB may take, in milliseconds. */
const LIMIT = 20_000;
/**
 * How long Chromium needs to take down nested workers, in milliseconds. If their parent is terminated meanwhile, threads
 * and memory of a third of them stay as long as the page (1.5 MiB each); no event tells when it is done.
 */
const GRACE = 100;

// Bundlers recognise exactly this form.
const start = () => new Worker(new URL("./digest-worker.js", import.meta.url), { type: "module", name: "anygpu-digest" });

/**
 * A worker that computes digests. It gets work only after it has said that it runs, so that memory is never handed to a
 * worker that cannot be loaded.
 */
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
      // A worker that cannot be loaded is not an error: this thread computes the digests then.
      event.preventDefault();
      this.end(true);
    };
  }

  /** Number of digests that it has yet to compute; infinite until it runs. */
  get load() {
    return this._isReady ? this._waiting.length : Infinity;
  }

  /** @param {Bytes} bytes @param {Place | null} place @returns {Promise<Digested>} */
  async digest(bytes, place) {
    clearTimeout(this._idle);
    try {
      this._worker.postMessage({ bytes, place }, [bytes.buffer]);
    } catch {
      // This kind of folder cannot be sent to a worker.
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
/** Whether workers can be started here. */
let possible = true;

/** Returns the running worker with the least to do; null if none runs. */
function free() {
  // Other browsers and runtimes compute digests on a thread of their own. Only Chromium has `userAgentData`.
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
      // A policy of the site forbids workers.
      possible = false;
    }
  }
  const [first] = [...digesters].sort((a, b) => a.load - b.load);
  return first !== undefined && first.load < Infinity ? first : null;
}

/**
 * Ends the workers, before the one that started them ends. Chromium keeps its thread for good otherwise: see `GRACE`.
 */
export async function endDigesters() {
  if (digesters.size === 0) return;
  for (const digester of [...digesters]) digester.end(false);
  await new Promise((resolve) => setTimeout(resolve, GRACE));
}

/** @param {Bytes} bytes @returns {Promise<Digested>} */
async function here(bytes) {
  return { digest: await sha256(bytes), bytes, written: false };
}

/**
 * Returns the digest of bytes. If a worker computes it, it also writes the bytes, if it can.
 *
 * @param {Bytes} bytes All of their memory. It is somebody else's meanwhile, and comes back with the digest.
 * @param {Place | null} [place] Where they are to be written.
 * @returns {Promise<Digested>}
 */
export async function digested(bytes, place = null) {
  const digester = free();
  return digester === null ? here(bytes) : digester.digest(bytes, place);
}
