/**
 * Digests of the pieces of a file. Each piece is checked before it is used:
 *
 *     { "size": 18008640, "chunk": 4194304, "chunks": ["<SHA-256 of the first 4194304 bytes>", ...] }
 *
 * The page passes them as an option, or they are in a file beside the model, at its address with `.manifest.json` after
 * the path.
 */

import { FileError } from "../common/errors.js";
import { sha256 } from "../common/sha256.js";
import { integer, refuse } from "../common/validate.js";
import { downloadText } from "./remote-stream.js";

/** @import { FileDigests } from "../../index.d.ts" */
/** @import { Check } from "../common/validate.js" */
/** @import { RemoteFile } from "./remote-file.js" */
/** @import { Digest } from "./source.js" */

/** Smallest and largest piece, in bytes; a piece must fit in memory. */
const LEAST = 64 << 10;
const MOST = 16 << 20;
/** Limit for a manifest, in bytes. */
const LONGEST = 16 << 20;

/** Returns the address of a file's manifest. @param {string} url Absolute. */
export function manifestOf(url) {
  const address = new URL(url);
  address.pathname += ".manifest.json";
  return address.href;
}

/** @type {Check} */
export const fileDigests = (name, value) => {
  if (typeof value !== "object" || value === null) return refuse(name, "the digests of a file", value);
  const { size, chunk, chunks } = /** @type {Record<string, unknown>} */ (value);
  integer(1, Number.MAX_SAFE_INTEGER)(`${name}.size`, size);
  integer(LEAST, MOST)(`${name}.chunk`, chunk);
  const count = Math.ceil(Number(size) / Number(chunk));
  const isDigest = (/** @type {unknown} */ one) => typeof one === "string" && /^[0-9a-f]{64}$/i.test(one);
  if (!Array.isArray(chunks) || chunks.length !== count || !chunks.every(isDigest)) {
    return refuse(`${name}.chunks`, `an array of ${count} SHA-256 digests`, chunks);
  }
  return { size, chunk, chunks: chunks.map((one) => one.toLowerCase()) };
};

/**
 * @param {RemoteFile} remote The manifest.
 * @returns {Promise<FileDigests>}
 */
export async function download(remote) {
  const text = await downloadText(remote, LONGEST, "a manifest");
  try {
    return /** @type {FileDigests} */ (fileDigests("manifest", JSON.parse(text)));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new FileError(`${remote.url} is not a manifest (${why}); correct it`, { cause });
  }
}

/**
 * Returns a digest of digests, to compare manifests.
 *
 * @param {FileDigests} digests
 * @param {() => Promise<Digest>} newDigest
 */
export function fingerprint({ size, chunk, chunks }, newDigest) {
  return sha256(new TextEncoder().encode(JSON.stringify([size, chunk, chunks])), newDigest);
}
