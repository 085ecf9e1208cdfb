/** Asks the browser not to remove this site's storage when the disk is full. */

let asked = false;

/**
 * Asks once per page, and only if it is not granted yet, since Firefox asks the visitor. The answer makes no
 * difference.
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
    // A browser that cannot be asked does not grant it.
  }
}
