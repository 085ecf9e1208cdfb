/**
 * How many threads an engine may have. Only pages that are isolated from other origins may share memory. A worker waits for its
 * threads, which a page must not, so that an engine on the page's own thread has none.
 */

/** @import { BackendChoice } from "../index.d.ts" */

/** Threads unless more are asked for: small models gain nothing from more. */
const USUAL = 8;
/** Pages of memory that the module may grow to: all that there are. */
const PAGES = 65_536;

/**
 * How many threads an engine has.
 *
 * @param {BackendChoice} backend
 * @param {number} [wanted]
 * @param {{ crossOriginIsolated?: boolean, navigator?: { hardwareConcurrency?: number } }} [page]
 */
export function threadsOf(backend, wanted, page = globalThis) {
  if (backend !== "cpu" && backend !== "auto") return 1;
  const count = wanted ?? Math.min(page.navigator?.hardwareConcurrency ?? 1, USUAL);
  return count > 1 && page.crossOriginIsolated === true && mayShare() ? count : 1;
}

/** @type {boolean | null} */
let shares = null;

/** Whether this browser sets so much memory apart, and can wait for it without blocking. */
function mayShare() {
  if (shares === null) {
    try {
      const { buffer } = new WebAssembly.Memory({ initial: 1, maximum: PAGES, shared: true });
      shares = buffer instanceof SharedArrayBuffer && "waitAsync" in Atomics;
    } catch {
      shares = false;
    }
  }
  return shares;
}
