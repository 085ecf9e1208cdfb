/** Leaves out rungs that are lost repeatedly, so that the next one is used. */

/** Losses of one rung, within the time below, after which it is left out. */
export const LOSSES = 3;
/** Time within which losses count together, in milliseconds. */
const WHILE = 120_000;

/** Counts losses, and decides which rungs are left out. */
export class Rungs {
  /** @type {string[]} Their names, as reports have them. */
  without = [];
  _now;
  /** @type {{ rung: string, ms: number }[]} */
  _losses = [];

  /** @param {() => number} [now] In milliseconds. */
  constructor(now = () => performance.now()) {
    this._now = now;
  }

  /**
   * Notes a loss.
   *
   * @param {string | null} rung
   * @param {boolean} again Whether it is left out at once: too much was lost before it.
   */
  lost(rung, again) {
    if (rung === null) return;
    const now = this._now();
    this._losses = [...this._losses.filter(({ ms }) => now - ms < WHILE), { rung, ms: now }];
    const often = this._losses.filter((loss) => loss.rung === rung).length >= LOSSES;
    if ((often || again) && !this.without.includes(rung)) this.without.push(rung);
  }
}
