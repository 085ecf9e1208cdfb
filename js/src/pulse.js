/**
 * Whether a worker that lives still gets on. One in an endless loop answers nothing, and no browser tells. So one that is
 * silent while something is asked of it is asked for a sign of life: whoever waits for a slow device gives one at once,
 * and so does whoever computes, between two steps. Nothing is sent while nothing is asked.
 */

import { CrashError } from "./errors.js";
import { afterAwake, within } from "./patience.js";

/** @import { Client } from "./client.js" */

/** How long a worker may be silent unless it is told, in milliseconds. */
const SILENCE = 60_000;
/** What a worker may become to be allowed, in milliseconds. */
const MOST = 3_600_000;
/** An answer that takes longer than this part of the limit comes from a worker that is slow. */
const LATE = 1 / 8;

/**
 * @typedef {object} Patience How long a worker may be silent. One that is slow gets twice as long the next time, and so
 * does the one that takes the place of one that was given up: it may have been slow.
 * @property {number} limit In milliseconds.
 */

/** @param {number} [limit] @returns {Patience} */
export const patient = (limit = SILENCE) => ({ limit });

/**
 * Makes the calls of a worker reject that does not get on.
 *
 * @param {Client} client
 * @param {Patience} patience
 * @returns {() => void} Ends it.
 */
export function watch(client, patience) {
  /** @type {(() => void) | null} */
  let stop = null;
  const look = () => {
    if (stop !== null || client.waiting === 0) return;
    const { heard } = client;
    stop = afterAwake(patience.limit / 2, async () => {
      if (client.heard === heard && client.waiting > 0) await ask(client, patience);
      stop = null;
      look();
    });
  };
  client.onCall = look;
  return () => {
    client.onCall = () => {};
    stop?.();
  };
}

/**
 * @param {Client} client
 * @param {Patience} patience
 */
async function ask(client, patience) {
  const { heard } = client;
  const { limit } = patience;
  const begin = performance.now();
  const longer = () => (patience.limit = Math.min(2 * limit, MOST));
  try {
    await within(limit / 2, client.call("features", { backend: "cpu" }), () => new Error("no answer"));
    if (performance.now() - begin > limit * LATE) longer();
  } catch {
    // Whatever was heard is a sign of life. What waits for nobody failed otherwise.
    if (client.waiting === 0) return;
    longer();
    if (client.heard !== heard) return;
    const remedy = "load the model again, with a larger workerTimeout if this device is slow";
    client.fail(new CrashError(`the engine's worker gave no sign of life for ${limit} ms; ${remedy}`));
  }
}
