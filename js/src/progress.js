/** How far loading is, told not too often. */

/** @import { LoadProgress } from "../index.d.ts" */

/** Between two reports of one phase, in milliseconds. */
const INTERVAL = 50;

/** Collects what is done, and tells of it. */
export class Progress {
  #tell;
  /** @type {LoadProgress["phase"] | null} */
  #phase = null;
  #toldAt = 0;
  #fraction = 0;
  /** Parts of the whole that came from the network, and that went to the device. */
  #downloaded = 1;
  #uploaded = 0;
  /** Whether bytes come from the network. */
  #network = false;

  /** @param {(progress: LoadProgress) => void} tell */
  constructor(tell) {
    this.#tell = tell;
  }

  connect() {
    this.#report("connect", 0, 0);
  }

  /**
   * @param {number} loaded
   * @param {number} total 0 if it is not known.
   */
  download(loaded, total) {
    this.#network = true;
    this.#downloaded = total > 0 ? loaded / total : 0;
    this.#report("download", loaded, total);
  }

  /** @param {number} total */
  select(total) {
    this.#report("select", 0, total);
  }

  /**
   * @param {number} done
   * @param {number} total
   */
  upload(done, total) {
    this.#uploaded = total > 0 ? done / total : 1;
    // While bytes come from the network, that is what takes the time.
    if (!this.#network || this.#downloaded === 1) this.#report("upload", done, total);
  }

  /** @param {number} total */
  ready(total) {
    this.#fraction = 1;
    this.#report("ready", total, total);
  }

  /**
   * @param {LoadProgress["phase"]} phase
   * @param {number} loaded
   * @param {number} total
   */
  #report(phase, loaded, total) {
    const now = performance.now();
    if (phase === this.#phase && loaded !== total && now - this.#toldAt < INTERVAL) return;
    this.#phase = phase;
    this.#toldAt = now;
    const fraction = this.#network ? (this.#downloaded + this.#uploaded) / 2 : this.#uploaded;
    this.#fraction = Math.max(this.#fraction, fraction);
    this.#tell({ phase, loaded, total, fraction: this.#fraction });
  }
}
