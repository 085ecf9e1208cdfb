/** The API of an engine's sessions. */

import { OptionsError } from "../common/errors.js";
import { sessionName } from "../openai/request.js";

/** @import { Sessions } from "../../index.d.ts" */
/** @import { Request } from "../openai/request.js" */

/** @typedef {(method: string, params: object, signal?: AbortSignal) => Promise<any>} Call Calls the engine. */

/**
 * @param {Call} call
 * @returns {Sessions}
 */
export const sessionsOf = (call) => ({
  list: () => call("sessions", {}),
  remove: async (name) => call("remove", { session: sessionName("name", name) }),
  clear: () => call("clear", {}),
});

/**
 * Returns the request for the rest of a session's answer: the original one, with the tokens generated so far.
 *
 * @param {Call} call
 * @param {string} session
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<Request>}
 */
export async function recall(call, session, signal) {
  const asked = await call("asked", { session }, signal);
  if (asked === null) {
    const message = `there is no answer to continue in the session ${session}; ask for one`;
    throw new OptionsError(message, { field: "session" });
  }
  const { prompt, done, generate } = asked;
  const tokens = Uint32Array.from(prompt);
  return { prompt: { tokens }, generate: { ...generate, done }, session };
}
