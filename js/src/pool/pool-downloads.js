/** Downloads of a pool's worker: the description of the pool, manifests, and ranges of models. */

import { NetworkError, throwIfAborted } from "../common/errors.js";
import { PoolError } from "../pool-error.js";

/** @import { Pool } from "../../pool.d.ts" */

/** Status codes after which another attempt may succeed. */
const TEMPORARY = [408, 425, 429, 500, 502, 503, 504];
/**
 * Number of attempts, and the pause after the first, in milliseconds; each pause is twice as long as the one before.
 */
const ATTEMPTS = 5;
const PAUSE = 250;
/** Most bytes that are downloaded to measure the rate. */
const MEASURED = 1 << 20;
/** The version of `pool.json`. */
const VERSION = 1;

/** Limits for `pool.json` and for a manifest, in bytes. */
const MOST_POOL = 64 << 10;
const MOST_MANIFEST = 8 << 20;

/**
 * Downloads a range of a file, or all of it if that is not too much.
 *
 * @typedef {{ offset: number, length: number } | { most: number }} Wanted
 * @param {string} url
 * @param {Wanted} wanted
 * @param {AbortSignal} signal
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
async function get(url, wanted, signal) {
  for (let attempt = 1; ; attempt += 1) {
    throwIfAborted(signal);
    try {
      return await ask(url, wanted, signal);
    } catch (error) {
      const again = error instanceof NetworkError && (error.status === null || TEMPORARY.includes(error.status));
      if (signal.aborted || !again || attempt === ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE * 2 ** (attempt - 1)));
    }
  }
}

/** @param {string} url @param {Wanted} wanted @param {AbortSignal} signal */
async function ask(url, wanted, signal) {
  const range = "length" in wanted ? wanted : null;
  const most = "length" in wanted ? wanted.length : wanted.most;
  const headers = range === null ? undefined : { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
  const failed = (/** @type {string} */ why, /** @type {{ status?: number, cause?: unknown }} */ details) =>
    new NetworkError(`${url} cannot be downloaded (${why}); make sure that it is served, and that this page may read it`, { url, ...details });
  let response, bytes;
  try {
    response = await fetch(url, { headers, signal });
    bytes = await upTo(most, response);
  } catch (cause) {
    throwIfAborted(signal);
    throw failed(cause instanceof Error ? cause.message : String(cause), { cause });
  }
  const { status, ok } = response;
  if (!ok) throw failed(`status ${status}`, { status });
  if (bytes === null) throw failed(`more than the ${most} bytes that it may have`, { status });
  if (range !== null && (status !== 206 || bytes.length !== most)) {
    throw failed(`${bytes.length} bytes came with status ${status} where a range of ${most} was asked for`, { status });
  }
  return bytes;
}

/**
 * Returns the bytes of a response; null if there are more than the limit.
 *
 * @param {number} most
 * @param {Response} response
 */
async function upTo(most, { body }) {
  const reader = body?.getReader();
  const bytes = new Uint8Array(most);
  for (let count = 0; ; ) {
    const { value } = (await reader?.read()) ?? {};
    if (value === undefined) return bytes.subarray(0, count);
    if (count + value.length > most) {
      await reader?.cancel();
      return null;
    }
    bytes.set(value, count);
    count += value.length;
  }
}

/**
 * Downloads the description of a pool from its coordinator.
 *
 * @param {string} coordinator Address of the coordinator.
 * @param {AbortSignal} signal
 * @returns {Promise<Pool & { websocket: string }>} A pool that pages can join.
 */
export async function describe(coordinator, signal) {
  const url = new URL("pool.json", coordinator.replace(/\/?$/, "/")).href;
  const bytes = await get(url, { most: MOST_POOL }, signal);
  let pool;
  try {
    pool = JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw new PoolError(`${url} is not JSON; check that it is the address of a pool coordinator`, { cause });
  }
  if (pool?.version !== VERSION) {
    throw new PoolError(`the coordinator speaks version ${pool?.version}, and this page ${VERSION}; update the older side`);
  }
  if (typeof pool.model?.address !== "string") throw new PoolError(`${url} does not name a model; check that it is the address of a pool coordinator`);
  if (typeof pool.websocket !== "string") {
    throw new PoolError("the pool's server has no WebSocket address, so that no page can join; give it a websocket listener");
  }
  return pool;
}

/**
 * Measures the download rate of a file, in bytes a second.
 *
 * @param {string} address
 * @param {number} size Size of the file, in bytes.
 * @param {AbortSignal} signal
 */
export async function rate(address, size, signal) {
  const begin = performance.now();
  const { length } = await get(address, { offset: 0, length: Math.max(1, Math.min(size, MEASURED)) }, signal);
  // Clocks of browsers are coarse.
  return (1000 * length) / Math.max(1, performance.now() - begin);
}

/**
 * Returns access to models' files, as the wasm module uses it.
 *
 * @param {AbortSignal} signal Ends what is under way.
 * @param {import("./chunk-cache.js").Chunks} chunks
 */
export const models = (signal, chunks) => ({
  ...chunks,
  manifest: (/** @type {string} */ address) => get(`${address}.manifest`, { most: MOST_MANIFEST }, signal),
  source: (/** @type {string} */ address, /** @type {number} */ size) => ({
    size,
    readAt: (/** @type {number} */ offset, /** @type {number} */ length) => get(address, { offset, length }, signal),
  }),
});
