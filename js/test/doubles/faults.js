/** Makes one call of a browser's interfaces fail: the first, the second, and so on. */

/** Ways to fail: before the call has an effect, after it had its effect, or after half of it. */
export const KINDS = /** @type {const} */ (["before", "after", "torn"]);
/** An additional way for some calls of a browser: they never answer. */
export const SILENT = "silent";

/** @typedef {(typeof KINDS)[number] | typeof SILENT} Kind */

/** Counts calls, and makes one of them fail. */
export class Faults {
  calls = 0;
  /** Name of the call that failed; null if none did. @type {string | null} */
  failed = null;

  /** @param {number} at @param {Kind} kind @param {(name: string) => Error} [error] */
  constructor(at, kind, error = (name) => new DOMException(`${name} fails, as it was told to`, "UnknownError")) {
    this.at = at;
    this.kind = kind;
    this.error = error;
  }

  /** Counts a call that is made elsewhere, and fails if it is its turn. @param {string} name */
  count(name) {
    if (++this.calls !== this.at) return;
    this.failed = name;
    throw this.error(name);
  }

  /**
   * Wraps an object so that its calls are counted, and those of the objects that they return.
   *
   * @template T
   * @param {T} object
   * @param {boolean} [sync] Whether its calls throw, as those of handles in workers.
   * @returns {T}
   */
  in(object, sync = false) {
    if (!isObject(object)) return object;
    return /** @type {T} */ (
      new Proxy(/** @type {any} */ (object), {
        get: (target, name) => {
          const value = Reflect.get(target, name, target);
          // Symbols, promises and calls that cannot fail are passed through.
          if (typeof name === "symbol" && name !== Symbol.asyncIterator) return value;
          if (typeof value !== "function") return this.in(value, sync);
          return (/** @type {any[]} */ ...args) => this._call(target, String(name), value, args, sync);
        },
      })
    );
  }

  /** @param {any} target @param {string} name @param {Function} method @param {any[]} args @param {boolean} sync */
  _call(target, name, method, args, sync) {
    const counts = !CANNOT_FAIL.includes(name);
    const fails = counts && ++this.calls === this.at;
    const inner = name === "createSyncAccessHandle" || sync;
    if (!fails) return this._given(method.apply(target, args), inner);
    // A synchronous call of a handle in a worker that never returns would block the thread, so it is not tried.
    this.failed = name;
    if (this.kind === SILENT && sync) return this._given(method.apply(target, args), inner);
    if (this.kind === SILENT) return new Promise(() => {});
    const error = this.error(name);
    if (this.kind !== "before") {
      const [bytes, ...rest] = args;
      const torn = this.kind === "torn" && name === "write";
      const done = method.apply(target, torn ? [bytes.subarray(0, bytes.length >> 1), ...rest] : args);
      if (!sync) return Promise.resolve(done).then(() => Promise.reject(error));
    }
    if (sync) throw error;
    return Promise.reject(error);
  }

  /** @param {any} given @param {boolean} sync */
  _given(given, sync) {
    return given instanceof Promise ? given.then((value) => this.in(value, sync)) : this.in(given, sync);
  }
}

/** Calls that browsers always answer. */
const CANNOT_FAIL = ["slice", "keys", "getReader", "get", "has", "append", "Symbol(Symbol.asyncIterator)", "return"];

/** @param {unknown} value */
function isObject(value) {
  if (typeof value !== "object" || value === null) return false;
  const plain = [ArrayBuffer, Headers, Array].some((Class) => value instanceof Class);
  return !plain && !ArrayBuffer.isView(value);
}
