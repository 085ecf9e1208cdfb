/** The conformance suite with the wasm module for pages that may use threads. */

import * as bindings from "../../wasm/threads/conformance.js";
import { startThreads } from "../module/start-threads.js";
import { Suite } from "./suite-core.js";

export function suite() {
  // Bundlers recognise exactly this form.
  const url = new URL("../../wasm/threads/conformance_bg.wasm", import.meta.url);
  const sharing = /** @type {import("../module/start-threads.js").Sharing} */ (/** @type {unknown} */ (bindings));
  return new Suite(bindings, url, async (threads) => {
    if ("thread_share" in sharing) await startThreads(sharing, threads);
  });
}
