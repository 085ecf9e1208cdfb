/** A pool's member with the wasm module for current browsers. */

import * as bindings from "../../wasm/pool.js";
import { PoolCore } from "./pool-core.js";

export function poolCore() {
  // Bundlers recognise exactly this form.
  return new PoolCore(bindings, new URL("../../wasm/pool_bg.wasm", import.meta.url));
}
