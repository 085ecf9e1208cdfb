/** The errors of pools, which are known wherever this is loaded: no page that joins none pays for them. */

import { AnyGpuError, CLASSES, CODES } from "./errors.js";

/** The pool takes no pages, or not this one. */
export class PoolError extends AnyGpuError {
  /**
   * @param {string} message
   * @param {{ cause?: unknown }} [details]
   */
  constructor(message, { cause } = {}) {
    super(message, { code: "pool", cause });
    this.name = "PoolError";
  }
}

CLASSES.PoolError = PoolError;
CODES.pool = PoolError;
