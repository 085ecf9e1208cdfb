/** What tuning found on the devices of this browser, in its origin private file system. */

import { openOpfs } from "./opfs.js";

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
export async function readTuned({ storage }) {
  try {
    const blob = await (await openOpfs(storage, FOLDER))?.blob(NAME);
    if (!blob || blob.size > LONGEST) return undefined;
    const winners = JSON.parse(await blob.text());
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
export async function writeTuned({ storage }, winners) {
  try {
    const files = await openOpfs(storage, FOLDER);
    await files?.write(NAME, new TextEncoder().encode(JSON.stringify(winners)));
    return files !== null;
  } catch {
    return false;
  }
}
