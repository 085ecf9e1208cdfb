/** Converts errors of the browser's storage to errors of the package. */

import { AnyGpuError, CacheError, QuotaError } from "../common/errors.js";

/** @param {number} size */
export function noRoom(size) {
  return new QuotaError(`the browser has no room for ${size} bytes; delete other models, or free disk space`);
}

/** @param {unknown} error */
export function isQuota(error) {
  return error instanceof Error && error.name === "QuotaExceededError";
}

/**
 * Runs an action and converts what storage throws to a {@link CacheError}.
 *
 * @template T
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
export async function guarded(action) {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof AnyGpuError) throw cause;
    if (isQuota(cause)) throw new QuotaError("the browser's storage is full; delete other models", { cause });
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CacheError(`the browser's storage failed (${message}); load with cache: false`, { cause });
  }
}
