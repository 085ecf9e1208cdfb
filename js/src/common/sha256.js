/** SHA-256 of bytes in memory. */

/** @import { Digest } from "../download/source.js" */

/**
 * @param {Uint8Array} bytes
 * @param {(() => Promise<Digest>) | null} [newDigest] The engine's, for pages that did not come by https: browsers keep
 * their own from those. They keep storage from them, too, so that what is stored has no use for it.
 * @returns {Promise<string>} In hexadecimal digits.
 */
export async function sha256(bytes, newDigest = null) {
  if (globalThis.crypto?.subtle === undefined && newDigest !== null) {
    const digest = await newDigest();
    digest.update(bytes);
    return digest.hex();
  }
  const buffer = await crypto.subtle.digest("SHA-256", /** @type {Uint8Array<ArrayBuffer>} */ (bytes));
  return hex(new Uint8Array(buffer));
}

/** @param {Uint8Array} bytes */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
