/**
 * Digests of the pieces of a file, by which every piece is known to be right before it is used:
 *
 *     { "size": 18008640, "chunk": 4194304, "chunks": ["<SHA-256 of the first 4194304 bytes>", ...] }
 *
 * The page has them itself, or they lie beside the file, under its address with `.manifest.json` behind its path.
 */

import { integer, refuse } from "./checks.js";
import { FileError } from "./errors.js";
import { sha256 } from "./sha256.js";
import { downloadText } from "./text.js";

/** @import { FileDigests } from "../index.d.ts" */
/** @import { Check } from "./checks.js" */
/** @import { Remote } from "./remote.js" */
/** @import { Digest } from "./source.js" */

/** The smallest and the largest piece, in bytes: memory has to hold one. */
const LEAST = 64 << 10;
const MOST = 16 << 20;
/** The longest text, in bytes. */
const LONGEST = 16 << 20;

/** What lies beside a file. @param {string} url Absolute. */
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
 * @param {Remote} remote Of a manifest.
 * @returns {Promise<FileDigests>}
 */
export async function download(remote) {
  const text = await downloadText(remote, LONGEST, "a manifest");
  try {
    return /** @type {FileDigests} */ (fileDigests("manifest", JSON.parse(text)));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new FileError(`${remote.url} is no manifest (${why}); correct it`, { cause });
  }
}

/**
 * What tells manifests apart.
 *
 * @param {FileDigests} digests
 * @param {() => Promise<Digest>} newDigest
 */
export function fingerprint({ size, chunk, chunks }, newDigest) {
  return sha256(new TextEncoder().encode(JSON.stringify([size, chunk, chunks])), newDigest);
}
