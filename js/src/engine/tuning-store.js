/** Stores the results of tuning and selection for the devices of this browser, in its origin private file system. */

import { openFiles } from "../opfs/storage.js";

/** @import { Files } from "../opfs/opfs-files.js" */
/** @import { Environment } from "../opfs/storage.js" */

/** Name of the folder. It is not the models' folder, which is swept. */
const FOLDER = "anygpu-tuning";
const TUNED = "tuning.json";
const PROVEN = "proven.json";
/** Limit for a file, in bytes; this package does not write longer ones. */
const LONGEST = 1 << 20;

/**
 * @typedef {object} Found
 * @property {unknown[]} [tuned] Tuned values. Absent if there are none, or they cannot be read; that only costs speed.
 * @property {{ module: string, proofs: unknown }} [proven] Self-tests that passed, with the digest of the module that ran them. Absent likewise.
 */

/**
 * @param {Environment} environment
 * @returns {Promise<Found>}
 */
export async function readFound({ storage, limit }) {
  const files = await openFiles({ storage, limit }, FOLDER).catch(() => null);
  if (files === null) return {};
  const [tuned, proven] = await Promise.all([json(files, TUNED), json(files, PROVEN)]);
  const isProven = typeof proven?.module === "string";
  return { ...(Array.isArray(tuned) ? { tuned } : {}), ...(isProven ? { proven } : {}) };
}

/**
 * @param {Files} files
 * @param {string} name
 */
async function json(files, name) {
  try {
    const blob = await files.blob(name);
    if (blob === null || blob.size > LONGEST) return undefined;
    return JSON.parse(new TextDecoder().decode(await blob.arrayBuffer()));
  } catch {
    return undefined;
  }
}

/**
 * @param {Environment} environment
 * @param {Found} found
 * @returns {Promise<boolean>} Whether it is kept.
 */
export async function writeFound({ storage, limit }, { tuned, proven }) {
  try {
    const files = await openFiles({ storage, limit }, FOLDER);
    const [name, value] = tuned === undefined ? [PROVEN, proven] : [TUNED, tuned];
    await files?.write(name, new TextEncoder().encode(JSON.stringify(value)));
    return files !== null;
  } catch {
    return false;
  }
}
