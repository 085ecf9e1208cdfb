/**
 * Small values by name, stored so that none is lost when a tab or the power ends during a write. Each name has two
 * slots; a write goes to the slot that does not have the newest value. A read returns the newest value that is
 * complete, by its digest.
 */

import { sha256 } from "../common/sha256.js";

/** @import { Files } from "./opfs-files.js" */

const SLOT = /^(.+)\.([01])\.json$/;
/** Limit for a slot: the entry of a file of half a tebibyte. In bytes. */
const LONGEST = 16 << 20;
/** Length of a digest in hexadecimal digits, and a line break. */
const SUM = 65;

/** @typedef {{ slot: 0 | 1, revision: number, value: any }} Slot */

/** Records in a folder. They must only be changed under a lock. */
export class AtomicRecords {
  _files;

  /** @param {Files} files */
  constructor(files) {
    this._files = files;
  }

  /**
   * Returns the record that a file is a slot of.
   *
   * @param {string} file
   * @returns {string | null}
   */
  static nameOf(file) {
    return SLOT.exec(file)?.[1] ?? null;
  }

  /**
   * @param {string} name
   * @returns {Promise<any>} Null if there is none that is whole.
   */
  async read(name) {
    return (await this._newest(name))?.value ?? null;
  }

  /**
   * @param {string} name
   * @param {object} value
   */
  async write(name, value) {
    const { slot, revision } = (await this._newest(name)) ?? { slot: 1, revision: 0 };
    const text = JSON.stringify({ revision: revision + 1, value });
    const bytes = new TextEncoder().encode(text);
    const file = new TextEncoder().encode(`${await sha256(bytes)}\n${text}`);
    if (file.length > LONGEST) throw new RangeError("the file has too many parts");
    await this._files.write(fileOf(name, 1 - slot), file);
  }

  /** @param {string} name */
  async remove(name) {
    // The older slot goes first: it must not become the newest.
    const slot = (await this._newest(name))?.slot ?? 0;
    await this._files.remove(fileOf(name, 1 - slot));
    await this._files.remove(fileOf(name, slot));
  }

  /**
   * @param {string} name
   * @returns {Promise<Slot | null>}
   */
  async _newest(name) {
    const [one, other] = await Promise.all([this._slot(name, 0), this._slot(name, 1)]);
    if (one === null || other === null) return one ?? other;
    return one.revision > other.revision ? one : other;
  }

  /**
   * @param {string} name
   * @param {0 | 1} slot
   * @returns {Promise<Slot | null>}
   */
  async _slot(name, slot) {
    const blob = await this._files.blob(fileOf(name, slot));
    if (blob === null || blob.size > LONGEST || blob.size <= SUM) return null;
    const bytes = new Uint8Array(await blob.arrayBuffer());
    const body = bytes.subarray(SUM);
    if (new TextDecoder().decode(bytes.subarray(0, SUM)) !== `${await sha256(body)}\n`) return null;
    const { revision, value } = JSON.parse(new TextDecoder().decode(body));
    return { slot, revision, value };
  }
}

/**
 * @param {string} name
 * @param {number} slot
 */
function fileOf(name, slot) {
  return `${name}.${slot}.json`;
}
