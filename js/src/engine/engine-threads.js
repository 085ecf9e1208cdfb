/** The engine with the wasm module for pages that may use threads. */

import * as bindings from "../../wasm/threads/bindings.js";
import { environment } from "../common/runtime.js";
import { startThreads } from "../module/start-threads.js";
import { Core } from "./engine-core.js";

export function engine() {
  // Bundlers recognise exactly this form.
  const url = new URL("../../wasm/threads/bindings_bg.wasm", import.meta.url);
  const sharing = /** @type {import("../module/start-threads.js").Sharing} */ (/** @type {unknown} */ (bindings));
  return new Core(bindings, url, environment(), (threads) => sharing.before_cpu?.(() => startThreads(sharing, threads)));
}
