/** Locks between the tabs of a site, and turns to download a file that several tabs want. */

import { throwIfAborted } from "../common/errors.js";
import { afterAwake } from "../common/timeout.js";

/** Interval between two looks at another tab's progress, in milliseconds. */
const LOOK = 500;

/**
 * Takes a lock.
 *
 * @param {LockManager} locks
 * @param {string} name
 * @param {LockOptions} options
 * @returns {Promise<(() => void) | null>} A function that releases it; null if it is taken and the options say not to wait.
 */
export function hold(locks, name, options) {
  return new Promise((resolve, reject) => {
    const held = (/** @type {Lock | null} */ lock) => {
      if (lock === null) return resolve(null);
      return new Promise((release) => resolve(() => release(undefined)));
    };
    locks.request(name, options, held).catch(reject);
  });
}

/**
 * @typedef {object} Waiting
 * @property {AbortSignal} signal
 * @property {number} patience How long nothing may arrive anywhere before the other is given up, in milliseconds.
 * @property {() => Promise<number>} look Counts what has arrived.
 */

/**
 * Waits until a lock is free, as long as its holders make progress.
 *
 * @param {LockManager} locks
 * @param {string} name
 * @param {Waiting} waiting
 * @returns {Promise<(() => void) | null>} A function that releases it; null if the holders make no progress.
 */
export async function holdAfter(locks, name, { signal, patience, look }) {
  const controller = new AbortController();
  const end = () => controller.abort();
  signal.addEventListener("abort", end);
  const watching = watch(controller.signal, patience, look).then(end);
  try {
    return await hold(locks, name, { signal: controller.signal });
  } catch (error) {
    throwIfAborted(signal);
    if (controller.signal.aborted) return null;
    throw error;
  } finally {
    signal.removeEventListener("abort", end);
    end();
    await watching;
  }
}

/**
 * Watches until there is no more progress, or the signal aborts.
 *
 * @param {AbortSignal} signal
 * @param {number} patience
 * @param {() => Promise<number>} look
 */
async function watch(signal, patience, look) {
  let seen = NaN;
  for (let idle = 0; idle < patience && !signal.aborted; ) {
    const step = Math.min(LOOK, patience);
    await new Promise((resolve) => {
      const stop = afterAwake(step, () => resolve(undefined));
      signal.addEventListener("abort", () => (stop(), resolve(undefined)), { once: true });
    });
    if (signal.aborted) return;
    const now = await look().catch(() => seen);
    idle = now === seen ? idle + step : 0;
    seen = now;
  }
}
