/** The engine with the wasm module for older browsers. */

import * as bindings from "../wasm/older/bindings.js";
import { Core } from "./core.js";
import { environment } from "./runtime.js";

export function engine() {
  // Bundlers recognise exactly this form.
  const url = new URL("../wasm/older/bindings_bg.wasm", import.meta.url);
  return new Core(bindings, url, environment());
}
