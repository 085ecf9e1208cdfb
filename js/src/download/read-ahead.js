/** Reads pieces ahead: while one is used, the next ones are on their way. */

/** Number of pieces on their way at once: one is read while another is hashed. */
const COUNT = 2;

/**
 * Gives pieces by their index.
 *
 * @template T
 */
export class ReadAhead {
  _get;
  /** @type {Map<number, Promise<T>>} */
  _coming = new Map();
  /** Index of the last piece that was asked for. */
  _index = -1;

  /** @param {(index: number) => Promise<T> | null} get Begins to get a piece; null behind the last one. */
  constructor(get) {
    this._get = get;
  }

  /**
   * Returns a piece. If pieces are asked for in order, the following ones begin to come.
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
      // The failure is seen by the caller who asks for that piece.
      coming?.catch(() => {});
      if (coming !== null) this._coming.set(next, coming);
    }
    this._index = index;
    return /** @type {Promise<T>} */ (wanted);
  }
}
