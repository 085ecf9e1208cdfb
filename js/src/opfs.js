/** Files in the origin private file system. */

/** The folder of the models. */
const FOLDER = "anygpu";

/**
 * @typedef {object} Files Where entries are kept: a flat folder.
 * @property {() => Promise<string[]>} names
 * @property {(name: string) => Promise<Blob | null>} blob What is in a file; null if there is none.
 * @property {(name: string) => Promise<FileWriter>} writer Makes or empties a file.
 * @property {(name: string) => Promise<void>} remove Does nothing if there is no such file.
 */

/**
 * @typedef {object} FileWriter
 * @property {(bytes: Uint8Array) => Promise<void>} write Appends.
 * @property {((offset: number, length: number) => Promise<Uint8Array>) | null} read What was appended, if it can be read.
 * @property {() => Promise<void>} close Everything is kept.
 * @property {() => Promise<void>} abort The file may be there or not; nothing of it is of use.
 */

/**
 * @typedef {object} SyncHandle What only workers have, so the types of pages do not know it.
 * @property {(bytes: Uint8Array, options: { at: number }) => number} write
 * @property {(bytes: Uint8Array, options: { at: number }) => number} read
 * @property {(size: number) => void | Promise<void>} truncate A promise before Chromium 108, like the next two.
 * @property {() => void | Promise<void>} flush
 * @property {() => void | Promise<void>} close
 */

/** @typedef {FileSystemFileHandle & { createSyncAccessHandle?: () => Promise<SyncHandle> }} FileHandle */

/**
 * @param {StorageManager | undefined} storage
 * @param {string} [name] Of the folder.
 * @returns {Promise<Files | null>} Null if this browser has none, or none here (private windows).
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
  _folder;

  /** @param {FileSystemDirectoryHandle} folder */
  constructor(folder) {
    this._folder = folder;
  }

  async names() {
    const names = [];
    for await (const name of this._folder.keys()) names.push(name);
    return names;
  }

  /** @param {string} name */
  async blob(name) {
    const handle = await this._folder.getFileHandle(name).catch(ignoreMissing);
    return handle ? await handle.getFile() : null;
  }

  /**
   * @param {string} name
   * @returns {Promise<FileWriter>}
   */
  async writer(name) {
    const handle = /** @type {FileHandle} */ (await this._folder.getFileHandle(name, { create: true }));
    // Workers only; what it wrote can be read at once.
    if (!handle.createSyncAccessHandle) return new StreamWriter(await handle.createWritable());
    const access = await handle.createSyncAccessHandle();
    await access.truncate(0);
    return new SyncWriter(access);
  }

  /** @param {string} name */
  async remove(name) {
    await this._folder.removeEntry(name).catch(ignoreMissing);
  }
}

/** @implements {FileWriter} */
class SyncWriter {
  _handle;
  _size = 0;

  /** @param {SyncHandle} handle */
  constructor(handle) {
    this._handle = handle;
  }

  /** @param {Uint8Array} bytes */
  async write(bytes) {
    // A full disk may show as a short count instead of an error.
    const written = this._handle.write(bytes, { at: this._size });
    if (written !== bytes.length) throw new DOMException("the storage is full", "QuotaExceededError");
    this._size += written;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async read(offset, length) {
    const bytes = new Uint8Array(length);
    const count = this._handle.read(bytes, { at: offset });
    if (count !== length) throw new DOMException("what was written cannot be read again", "InvalidStateError");
    return bytes;
  }

  async close() {
    await this._handle.flush();
    await this._handle.close();
  }

  async abort() {
    await this._handle.close();
  }
}

/** @implements {FileWriter} */
class StreamWriter {
  _stream;
  read = null;

  /** @param {FileSystemWritableFileStream} stream */
  constructor(stream) {
    this._stream = stream;
  }

  /** @param {Uint8Array} bytes */
  async write(bytes) {
    await this._stream.write(/** @type {Uint8Array<ArrayBuffer>} */ (bytes));
  }

  async close() {
    await this._stream.close();
  }

  async abort() {
    // A stream that failed is closed already.
    await this._stream.abort().catch(() => {});
  }
}

/**
 * @param {unknown} error
 * @returns {undefined}
 */
function ignoreMissing(error) {
  if (!(error instanceof DOMException && error.name === "NotFoundError")) throw error;
}
