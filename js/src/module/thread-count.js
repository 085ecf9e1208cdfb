/**
 * Number of threads of an engine. Only cross-origin isolated pages may share memory. A worker can wait for its threads;
 * a page must not, so an engine on the page's own thread has none.
 */

/** @import { BackendChoice } from "../../index.d.ts" */

/** Default limit of threads: small models gain nothing from more. */
const USUAL = 8;
/** Pages of memory that the module may grow to: the largest possible number. */
const PAGES = 65_536;

/**
 * Returns the number of threads of an engine.
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

/**
 * Whether this browser can reserve so much shared memory, and has `Atomics.waitAsync`, which waits without blocking.
 */
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
