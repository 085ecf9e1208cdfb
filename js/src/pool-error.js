/**
 * The error class of pools. It is registered where this file is loaded, so pages that do not join a pool do not load
 * it.
 */

import { AnyGpuError, CLASSES, CODES } from "./common/errors.js";

/** The pool does not accept pages, or not this one. */
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
