/** Progress of loading, reported at limited intervals. */

/** @import { LoadProgress, RungProgress } from "../../index.d.ts" */

/** Least time between two reports of one phase, in milliseconds. */
const INTERVAL = 50;

/** Collects progress, and reports it. */
export class Progress {
  _tell;
  /** @type {LoadProgress["phase"] | null} */
  _phase = null;
  _toldAt = 0;
  _fraction = 0;
  /** Fractions of the file that came from the network, and that went to the device. */
  _downloaded = 1;
  _uploaded = 0;
  /** Whether bytes come from the network. */
  _network = false;

  /** @param {(progress: LoadProgress) => void} tell */
  constructor(tell) {
    this._tell = tell;
  }

  connect() {
    this._report("connect", 0, 0);
  }

  /**
   * @param {number} loaded
   * @param {number} total 0 if it is not known.
   */
  download(loaded, total) {
    this._network = true;
    this._downloaded = total > 0 ? loaded / total : 0;
    this._report("download", loaded, total);
  }

  /**
   * @param {number} total
   * @param {RungProgress} [rung]
   */
  select(total, rung) {
    this._report("select", 0, total, rung);
  }

  /**
   * @param {number} done
   * @param {number} total
   */
  upload(done, total) {
    this._uploaded = total > 0 ? done / total : 1;
    // As long as bytes come from the network, the download is the slower part.
    if (!this._network || this._downloaded === 1) this._report("upload", done, total);
  }

  /** @param {number} total */
  ready(total) {
    this._fraction = 1;
    this._report("ready", total, total);
  }

  /**
   * @param {LoadProgress["phase"]} phase
   * @param {number} loaded
   * @param {number} total
   * @param {RungProgress} [rung] Every one is told.
   */
  _report(phase, loaded, total, rung) {
    const now = performance.now();
    if (rung === undefined && phase === this._phase && loaded !== total && now - this._toldAt < INTERVAL) return;
    this._phase = phase;
    this._toldAt = now;
    const fraction = this._network ? (this._downloaded + this._uploaded) / 2 : this._uploaded;
    this._fraction = Math.max(this._fraction, fraction);
    const progress = { phase, loaded, total, fraction: this._fraction };
    this._tell(rung === undefined ? progress : { ...progress, rung });
  }
}
