/**
 * Pages that go away and come back: from the back-forward cache, or after the browser froze them.
 *
 * Nothing needs to be done when a page goes away: workers, timers and connections stop and continue with it. If they do
 * not come back, it shows: connections are made anew, and a lost device rejects what waits for it. Only a worker that
 * the browser ended meanwhile would stay silent forever.
 */

import { CrashError } from "../common/errors.js";
import { within } from "../common/timeout.js";

/** @import { Client } from "./client.js" */

/** How long a worker may be silent after the page came back, in milliseconds. */
const ANSWER_LIMIT = 30_000;

/** @typedef {Pick<EventTarget, "addEventListener" | "removeEventListener">} Target */

/**
 * Rejects the calls of a worker that does not come back with its page.
 *
 * @param {Client} client
 * @param {{ window?: Target, document?: Target }} [page]
 * @param {number} [limit] How long it may be silent, in milliseconds.
 * @returns {() => void} Ends it.
 */
export function comeBack(client, { window, document } = globalThis, limit = ANSWER_LIMIT) {
  const onShow = (/** @type {Event & { persisted?: boolean }} */ { persisted }) => persisted && check(client, limit);
  const onResume = () => check(client, limit);
  window?.addEventListener("pageshow", onShow);
  document?.addEventListener("resume", onResume);
  return () => {
    window?.removeEventListener("pageshow", onShow);
    document?.removeEventListener("resume", onResume);
  };
}

/**
 * @param {Client} client
 * @param {number} limit
 */
async function check(client, limit) {
  for (;;) {
    const { heard } = client;
    try {
      await within(limit, client.call("features", { backend: "cpu" }), () => new Error("no answer"));
      return;
    } catch {
      // A busy worker answers late, but reports progress.
      if (client.heard !== heard) continue;
      const message = "the browser ended the engine while the page was away; load the model again";
      client.fail(new CrashError(message));
      return;
    }
  }
}
