/** Files in the origin private file system. */

/** Name of the folder with the models. */
const FOLDER = "anygpu";

/**
 * @typedef {object} Files Where entries are kept: a flat folder.
 * @property {() => Promise<string[]>} names
 * @property {(name: string) => Promise<Contents | null>} blob Contents of a file; null if there is none.
 * @property {(name: string, bytes: Uint8Array) => Promise<void>} write Makes or replaces a file. If it fails, there is
 * nothing, a part, or what was there before.
 * @property {(name: string) => Promise<void>} remove Does nothing if there is no such file.
 * @property {FileSystemDirectoryHandle | null} folder Where other threads can write, too.
 */

/**
 * @typedef {object} Contents A blob, as far as it is needed.
 * @property {number} size
 * @property {(begin: number, end: number) => Contents} slice
 * @property {() => Promise<ArrayBuffer>} arrayBuffer
 */

/**
 * @typedef {object} SyncHandle An interface that only workers have, so the types of pages do not include it.
 * @property {(bytes: Uint8Array, options: { at: number }) => number} write
 * @property {(size: number) => void | Promise<void>} truncate A promise before Chromium 108, like the next one.
 * @property {() => void | Promise<void>} close
 */

/** @typedef {FileSystemFileHandle & { createSyncAccessHandle?: () => Promise<SyncHandle> }} FileHandle */

/**
 * @param {StorageManager | undefined} storage
 * @param {string} [name] Name of the folder.
 * @returns {Promise<Files | null>} Null if this browser does not have it, or not here (private windows).
 */
export async function openOpfs(storage, name = FOLDER) {
  if (typeof storage?.getDirectory !== "function") return null;
  try {
    const root = await storage.getDirectory();
    const folder = await root.getDirectoryHandle(name, { create: true });
    const probe = await folder.getFileHandle("probe", { create: true });
    const writable = "createSyncAccessHandle" in probe || "createWritable" in probe;
    await folder.removeEntry("probe").catch(ignoreMissing);
    return writable ? new Opfs(folder) : null;
  } catch {
    return null;
  }
}

/** @implements {Files} */
class Opfs {
  /** @param {FileSystemDirectoryHandle} folder */
  constructor(folder) {
    this.folder = folder;
  }

  async names() {
    const names = [];
    for await (const name of this.folder.keys()) names.push(name);
    return names;
  }

  /** @param {string} name */
  async blob(name) {
    const handle = await this.folder.getFileHandle(name).catch(ignoreMissing);
    return handle ? await handle.getFile() : null;
  }

  /**
   * @param {string} name
   * @param {Uint8Array} bytes
   */
  async write(name, bytes) {
    await writeFile(this.folder, name, bytes);
  }

  /** @param {string} name */
  async remove(name) {
    await this.folder.removeEntry(name).catch(ignoreMissing);
  }
}

/**
 * Creates or replaces a file.
 *
 * @param {FileSystemDirectoryHandle} folder
 * @param {string} name
 * @param {Uint8Array} bytes
 */
export async function writeFile(folder, name, bytes) {
  const handle = /** @type {FileHandle} */ (await folder.getFileHandle(name, { create: true }));
  // Faster, but only in workers.
  if (handle.createSyncAccessHandle) return writeAtOnce(await handle.createSyncAccessHandle(), bytes);
  const stream = await handle.createWritable();
  try {
    await stream.write(/** @type {Uint8Array<ArrayBuffer>} */ (bytes));
    await stream.close();
  } catch (error) {
    // A stream that failed is already closed.
    await stream.abort().catch(() => {});
    throw error;
  }
}

/**
 * Writes a file without flushing: if the machine crashes, the digest shows what is missing.
 *
 * @param {SyncHandle} handle
 * @param {Uint8Array} bytes
 */
async function writeAtOnce(handle, bytes) {
  try {
    await handle.truncate(0);
    const written = handle.write(bytes, { at: 0 });
    // A full disk may show as a short count instead of an error.
    if (written !== bytes.length) throw new DOMException("the storage is full", "QuotaExceededError");
  } finally {
    await handle.close();
  }
}

/**
 * @param {unknown} error
 * @returns {undefined}
 */
function ignoreMissing(error) {
  if (!(error instanceof DOMException && error.name === "NotFoundError")) throw error;
}
