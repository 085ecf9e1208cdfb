/**
 * Detects the end of a worker. Browsers do not report it, but they release its locks. So a worker holds a lock for as
 * long as it lives, and the page waits for it. Browsers without locks (Firefox before 96), and pages without a secure
 * context, do without this.
 */

import { within } from "../common/timeout.js";

/** How long taking the lock may take, in milliseconds: the start must not wait for it. */
const LIMIT = 1_000;

/** Returns a name that no other engine has. */
export function vitalName() {
  return `anygpu/alive/${performance.now()}/${Math.random()}`;
}

/**
 * Holds a lock for as long as this thread lives.
 *
 * @param {string | undefined} name
 * @param {LockManager | undefined} [locks]
 * @returns {Promise<boolean>} Whether it is held.
 */
export function live(name, locks = globalThis.navigator?.locks) {
  if (name === undefined || locks === undefined) return Promise.resolve(false);
  const held = new Promise((resolve, reject) => {
    locks.request(name, () => (resolve(true), new Promise(() => {}))).catch(reject);
  });
  return within(LIMIT, held, () => new Error("no lock")).catch(() => false);
}

/**
 * Calls a function once the lock is free.
 *
 * @param {string} name
 * @param {() => void} act
 * @param {LockManager | undefined} [locks]
 * @returns {() => void} Ends the waiting.
 */
export function onEnd(name, act, locks = globalThis.navigator?.locks) {
  const controller = new AbortController();
  locks?.request(name, { signal: controller.signal }, act).catch(() => {});
  return () => controller.abort();
}
