/** Checks complete files against their digests. */

import { ChecksumError, throwIfAborted } from "../common/errors.js";
import { sha256 } from "../common/sha256.js";
import { checksumError } from "./source.js";

/** @import { FileDigests } from "../../index.d.ts" */
/** @import { CachedSource } from "../cache/cached-source.js" */
/** @import { BlobSource, Digest } from "./source.js" */

/**
 * Throws a `ChecksumError` if a file does not have the expected digests.
 *
 * @param {BlobSource | CachedSource} source
 * @param {{ sha256?: string, digests?: FileDigests }} expected
 * @param {() => Promise<Digest>} newDigest
 * @param {AbortSignal} signal
 */
export async function check(source, expected, newDigest, signal) {
  if (expected.sha256 !== undefined) {
    const actual = await source.digest(await newDigest(), signal);
    if (actual !== expected.sha256) throw checksumError(expected.sha256, actual);
  }
  if (expected.digests !== undefined) await checkPieces(source, expected.digests, newDigest, signal);
}

/**
 * @param {BlobSource | CachedSource} source
 * @param {FileDigests} digests
 * @param {() => Promise<Digest>} newDigest
 * @param {AbortSignal} signal
 */
async function checkPieces(source, { size, chunk, chunks }, newDigest, signal) {
  if (source.size !== size) {
    throw new ChecksumError(`the file has ${source.size} bytes, but its digests are those of ${size}; correct either`);
  }
  for (const [index, expected] of chunks.entries()) {
    throwIfAborted(signal);
    const start = index * chunk;
    const actual = await sha256(await source.readAt(start, Math.min(chunk, size - start)), newDigest);
    if (actual === expected) continue;
    const message = `the bytes of the file from ${start} on are not what their digest says`;
    throw new ChecksumError(`${message}; correct the file or the digests`, { expected, actual });
  }
}
