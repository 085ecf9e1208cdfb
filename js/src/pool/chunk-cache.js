/** Cache of chunks of a pool's model, by their digests. A chunk's digest is checked by its reader. */

import { openFiles } from "../opfs/storage.js";

/** @import { Environment } from "../opfs/storage.js" */

/** Name of the folder, beside that of the page's own models. */
const FOLDER = "anygpu-pool";

/**
 * @typedef {object} Chunks
 * @property {(name: string) => Promise<Uint8Array | null>} kept
 * @property {(name: string, bytes: Uint8Array) => Promise<void>} keep Stores a chunk, or replaces it.
 */

/**
 * @param {Environment} environment
 * @param {string} model Digest of the model. Chunks of other models are removed: there is no room for many.
 * @returns {Chunks} Chunks that cannot be stored or read are downloaded again.
 */
export function chunks(environment, model) {
  const begin = `${model.replace(/[^0-9a-f]/g, "").slice(0, 16)}-`;
  const opening = openFiles(environment, FOLDER).then(async (files) => {
    const names = (await files?.names().catch(() => [])) ?? [];
    await Promise.all(names.filter((name) => !name.startsWith(begin)).map((name) => files?.remove(name).catch(() => {})));
    return files;
  });
  return {
    kept: async (name) => {
      const files = await opening;
      const blob = await files?.blob(begin + name).catch(() => null);
      const bytes = await blob?.arrayBuffer().catch(() => null);
      return bytes ? new Uint8Array(bytes) : null;
    },
    keep: async (name, bytes) => {
      const files = await opening;
      await files?.write(begin + name, bytes).catch(() => files.remove(begin + name).catch(() => {}));
    },
  };
}
