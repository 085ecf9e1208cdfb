/**
 * Timeouts that do not count time in which nothing could happen. A page in the back-forward cache, a frozen tab or a
 * sleeping device has its timers fire at once when it comes back, before anything could arrive.
 */

/** Interval between two looks at the clock, as a part of the timeout. */
const TICK = 1 / 4;
/** Most that one interval counts, as a part of the timeout: however long a thread was frozen, it has time left then. */
const MOST = 1 / 2;

/**
 * Calls a function after this thread was awake for a time.
 *
 * @param {number} ms
 * @param {() => void} act
 * @returns {() => void} Ends the waiting.
 */
export function afterAwake(ms, act) {
  let left = ms;
  let last = performance.now();
  const look = () => {
    const now = performance.now();
    left -= Math.min(now - last, ms * MOST);
    last = now;
    // Timers may fire a little early.
    if (left < 1) act();
    else timer = setTimeout(look, Math.min(left, ms * TICK));
  };
  let timer = setTimeout(look, ms * TICK);
  return () => clearTimeout(timer);
}

/**
 * Waits for a promise, and rejects with an error after the thread was awake for a time.
 *
 * @template T
 * @param {number} ms
 * @param {Promise<T>} promise
 * @param {() => Error} late
 * @returns {Promise<T>}
 */
export function within(ms, promise, late) {
  return new Promise((resolve, reject) => {
    const end = afterAwake(ms, () => reject(late()));
    promise.then(resolve, reject).finally(end);
  });
}
