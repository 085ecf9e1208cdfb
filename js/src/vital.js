/**
 * Whether a worker still lives. Browsers tell nobody that one has ended: but they release its locks then. So it holds one
 * for as long as it lives, for which the page waits. Browsers without locks (Firefox before 96), and pages of servers
 * that are not trustworthy, do without.
 */

import { within } from "./patience.js";

/** How long the lock may take to be had, in milliseconds: no start shall wait for it. */
const LIMIT = 1_000;

/** A name that no other engine has. */
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
 * Calls a function once nobody holds the lock any more.
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
