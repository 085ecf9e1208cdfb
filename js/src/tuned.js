/** What tuning found on the devices of this browser, in its origin private file system. */

import { openFiles } from "./filing.js";

/** @import { Environment } from "./store.js" */

/** Not in the folder of the models, which is swept. */
const FOLDER = "anygpu-tuning";
const NAME = "tuning.json";
/** A file that is longer was not written by this package. In bytes. */
const LONGEST = 1 << 20;

/**
 * @param {Environment} environment
 * @returns {Promise<unknown[] | undefined>} Undefined if nothing was found, or it cannot be read: that costs speed only.
 */
export async function readTuned({ storage, limit }) {
  try {
    const blob = await (await openFiles({ storage, limit }, FOLDER))?.blob(NAME);
    if (!blob || blob.size > LONGEST) return undefined;
    const winners = JSON.parse(new TextDecoder().decode(await blob.arrayBuffer()));
    return Array.isArray(winners) ? winners : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {Environment} environment
 * @param {unknown[]} winners
 * @returns {Promise<boolean>} Whether they are kept.
 */
export async function writeTuned({ storage, limit }, winners) {
  try {
    const files = await openFiles({ storage, limit }, FOLDER);
    await files?.write(NAME, new TextEncoder().encode(JSON.stringify(winners)));
    return files !== null;
  } catch {
    return false;
  }
}
