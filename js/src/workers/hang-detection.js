/**
 * Detects a worker that hangs. A worker in an endless loop answers nothing, and browsers do not report it. So a worker
 * that is silent during a call is pinged: one that waits for a slow device answers at once, and so does one that
 * computes, between two steps. Without calls nothing is sent.
 */

import { CrashError } from "../common/errors.js";
import { afterAwake, within } from "../common/timeout.js";

/** @import { Client } from "./client.js" */

/** Default of how long a worker may be silent, in milliseconds. */
const SILENCE = 60_000;
/** Most that this may grow to, in milliseconds. */
const MOST = 3_600_000;
/** An answer that takes longer than this part of the limit comes from a slow worker. */
const LATE = 1 / 8;

/**
 * @typedef {object} Patience How long a worker may be silent. A slow worker gets twice as long the next time, and so
 * does the successor of a worker that was given up, which may only have been slow.
 * @property {number} limit In milliseconds.
 */

/** @param {number} [limit] @returns {Patience} */
export const patient = (limit = SILENCE) => ({ limit });

/**
 * Rejects the calls of a worker that hangs.
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
    // Any message is a sign of life. Without calls in progress there is nothing to reject.
    if (client.waiting === 0) return;
    longer();
    if (client.heard !== heard) return;
    const remedy = "load the model again, with a larger workerTimeout if this device is slow";
    client.fail(new CrashError(`the engine's worker gave no sign of life for ${limit} ms; ${remedy}`));
  }
}
