/** The engine with the wasm module for older browsers. */

import * as bindings from "../../wasm/older/bindings.js";
import { environment } from "../common/runtime.js";
import { Core } from "./engine-core.js";

export function engine() {
  // Bundlers recognise exactly this form.
  const url = new URL("../../wasm/older/bindings_bg.wasm", import.meta.url);
  return new Core(bindings, url, environment());
}
