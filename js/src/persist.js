/** Asks the browser not to remove what this site keeps when the disk is full. */

let asked = false;

/**
 * Asks once a page, and only if it is not granted yet: Firefox asks the visitor. The answer makes no difference.
 *
 * @param {StorageManager} [storage]
 * @returns {Promise<void>}
 */
export async function persist(storage = globalThis.navigator?.storage) {
  if (asked || typeof storage?.persist !== "function") return;
  asked = true;
  try {
    if (!(await storage.persisted())) await storage.persist();
  } catch {
    // Where it cannot be asked for, it is not granted.
  }
}
