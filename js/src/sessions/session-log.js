/**
 * A stored session as a log. Each record is a file of its own, which is written once and never changed, so a tab that
 * ends at any moment leaves what was there before, and at most one incomplete file.
 *
 * A file has a record as the engine makes it, then the seal of the record that it continues. So only records that were
 * made one after the other are put together.
 */

/** @import { Contents, Files } from "../opfs/opfs-files.js" */

/**
 * Name of a file: the session, its number in the log, and its size in bytes, so that sizes are known without opening
 * files.
 */
const NAME = /^([0-9a-f]{32})\.(\d{1,9})\.(\d{1,15})\.session$/;
const MAGIC = "AGS1";
/** Sizes of the fixed part before a record's header, and of the seal at its end, in bytes. */
const PREFIX = 16;
const SEAL = 32;
/** Limit for a header, in bytes. Nothing with a longer one is a record. */
const LONGEST = 1 << 20;
/** Number of files from which a log is rewritten as one. */
const MOST = 128;
/** Allowance, in bytes: a log is rewritten when it has more than twice what its text needs, and this. */
const SMALL = 4 << 20;

/** @typedef {{ number: number, size: number }} Part One of the log's files. */

/**
 * @typedef {object} Peek Facts of the newest record.
 * @property {number} tokens
 * @property {"stop" | "length" | "cancelled" | null} finish
 */

/** The log of one session. Its writer holds the session's lock. */
export class SessionLog {
  _files;
  /** @type {Part[]} In their order. */
  _parts;
  /** Seal of the last valid record; null if nothing can follow it. @type {Uint8Array | null} */
  _seal = null;
  /** Size of the text as one record, in bytes. */
  _needed = 0;

  /**
   * @param {Files} files
   * @param {string} id
   * @param {Part[]} parts
   */
  constructor(files, id, parts) {
    this._files = files;
    this.id = id;
    this._parts = parts.sort((a, b) => a.number - b.number);
  }

  /**
   * Returns the session and the part of a file, given its name.
   *
   * @param {string} name
   * @returns {{ id: string, part: Part } | null}
   */
  static partOf(name) {
    const match = NAME.exec(name);
    return match && { id: match[1] ?? "", part: { number: Number(match[2]), size: Number(match[3]) } };
  }

  /** Whether it has exactly these files. @param {Part[]} parts */
  has(parts) {
    const sizes = new Map(this._parts.map(({ number, size }) => [number, size]));
    return parts.length === sizes.size && parts.every(({ number, size }) => sizes.get(number) === size);
  }

  /** Size of all files, in bytes. */
  get size() {
    return this._parts.reduce((sum, { size }) => sum + size, 0);
  }

  /** Whether the next record should be complete, so that the log does not grow without end. */
  get isLong() {
    return this._seal === null || this._parts.length >= MOST || this.size > 2 * this._needed + SMALL;
  }

  /**
   * Reads the records that are valid and follow one another, as the engine takes them. Other files are removed.
   *
   * @returns {Promise<Uint8Array[]>}
   */
  async read() {
    /** @type {Uint8Array[]} */
    let records = [];
    let seal = null;
    /** @type {Part[]} */
    let good = [];
    for (const part of this._parts) {
      const bytes = await this._bytes(part);
      const record = bytes && bytes.subarray(0, -SEAL);
      const header = record && headerOf(record);
      if (!record || !header || !(await isSealed(record))) continue;
      const isFirst = header.from === 0;
      if (!isFirst && (seal === null || !equal(bytes.subarray(-SEAL), seal))) continue;
      if (isFirst) [records, good] = [[], []];
      records.push(record);
      good.push(part);
      seal = record.slice(-SEAL);
      this._needed = neededBy(header);
    }
    const others = this._parts.filter((part) => !good.includes(part));
    await this._remove(others);
    this._seal = seal;
    return records;
  }

  /**
   * Adds a record.
   *
   * @param {Uint8Array} record
   * @param {number} from Where it begins; a whole one takes the place of all before it.
   */
  async append(record, from) {
    if (from > 0 && this._seal === null) throw new Error("the record does not follow any other");
    const number = (this._parts[this._parts.length - 1]?.number ?? 0) + 1;
    const part = { number, size: record.length + SEAL };
    const bytes = new Uint8Array(part.size);
    bytes.set(record);
    if (from > 0) bytes.set(/** @type {Uint8Array} */ (this._seal), record.length);
    const before = [...this._parts];
    // Counted from now on: even if the write fails, no other file may get this number.
    this._parts.push(part);
    this._seal = null;
    await this._files.write(this._nameOf(part), bytes);
    this._seal = record.slice(-SEAL);
    this._needed = neededBy(headerOf(record));
    if (from === 0) await this._remove(before);
  }

  /** @returns {Promise<Peek | null>} Null if there is no record that is as long as it should be. */
  async peek() {
    for (const part of [...this._parts].reverse()) {
      const blob = await this._files.blob(this._nameOf(part)).catch(() => null);
      const begin = blob && new Uint8Array(await blob.slice(0, PREFIX + LONGEST).arrayBuffer());
      const header = begin && headerOf(begin, /** @type {Contents} */ (blob).size - SEAL);
      if (header) return { tokens: Number(header.tokens), finish: header.request?.finish ?? null };
    }
    return null;
  }

  /** Removes all files. */
  async clear() {
    this._seal = null;
    // The last one goes first: if that fails, the rest is still a complete text.
    await this._remove([...this._parts].reverse());
  }

  /** @param {Part[]} parts */
  async _remove(parts) {
    for (const part of parts) {
      await this._files.remove(this._nameOf(part));
      this._parts = this._parts.filter((other) => other !== part);
    }
  }

  /** @param {Part} part */
  async _bytes(part) {
    const blob = await this._files.blob(this._nameOf(part));
    return blob === null || blob.size < SEAL ? null : new Uint8Array(await blob.arrayBuffer());
  }

  /** @param {Part} part */
  _nameOf({ number, size }) {
    return `${this.id}.${number}.${size}.session`;
  }
}

/**
 * Reads the header of a record, if the record has the length that it says.
 *
 * @param {Uint8Array} record Or its beginning.
 * @param {number} [length]
 * @returns {any} Null if this is not a complete record.
 */
function headerOf(record, length = record.length) {
  if (record.length < PREFIX) return null;
  const view = new DataView(record.buffer, record.byteOffset, PREFIX);
  const header = view.getUint32(4, true);
  // A length above 2 ** 53 is wrong anyway.
  const body = view.getUint32(8, true) + view.getUint32(12, true) * 2 ** 32;
  const isRecord = String.fromCharCode(...record.subarray(0, MAGIC.length)) === MAGIC;
  if (!isRecord || header > LONGEST || PREFIX + header + body + SEAL !== length) return null;
  try {
    return JSON.parse(new TextDecoder().decode(record.subarray(PREFIX, PREFIX + header)));
  } catch {
    return null;
  }
}

/**
 * Returns the size of a record's text as one complete record, in bytes.
 *
 * @param {{ tokens: number, position: number, states?: { appended: boolean, rows: number, row_bytes: number }[] }}
 * header
 */
function neededBy({ tokens, position, states = [] }) {
  const rows = states.map(({ appended, rows, row_bytes }) => (appended ? position : rows) * row_bytes);
  return rows.reduce((sum, bytes) => sum + bytes, 4 * tokens);
}

/** @param {Uint8Array} record */
async function isSealed(record) {
  const bytes = /** @type {Uint8Array<ArrayBuffer>} */ (record.subarray(0, -SEAL));
  return equal(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), record.subarray(-SEAL));
}

/** @param {Uint8Array} one @param {Uint8Array} other */
function equal(one, other) {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}
