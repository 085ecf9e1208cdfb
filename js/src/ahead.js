/** Pieces that are used one after the other: the next ones are on their way meanwhile. */

/** So many are on their way at once: while one is hashed, the other is read. */
const COUNT = 2;

/**
 * Gives pieces by their index.
 *
 * @template T
 */
export class Ahead {
  _get;
  /** @type {Map<number, Promise<T>>} */
  _coming = new Map();
  /** The last one that was asked for. */
  _index = -1;

  /** @param {(index: number) => Promise<T> | null} get Begins to get a piece; null behind the last one. */
  constructor(get) {
    this._get = get;
  }

  /**
   * A piece; those that follow begin to come if they are asked for in order.
   *
   * @param {number} index There is such a piece.
   * @returns {Promise<T>}
   */
  piece(index) {
    const inOrder = index === this._index + 1;
    const wanted = this._coming.get(index) ?? this._get(index);
    this._coming.delete(index);
    if (!inOrder) this._coming.clear();
    for (let next = index + 1; inOrder && next <= index + COUNT; next += 1) {
      const coming = this._coming.has(next) ? null : this._get(next);
      // Whoever asks for it hears of a failure.
      coming?.catch(() => {});
      if (coming !== null) this._coming.set(next, coming);
    }
    this._index = index;
    return /** @type {Promise<T>} */ (wanted);
  }
}
