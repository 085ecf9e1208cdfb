/** The engine with the wasm module for current browsers. */

import * as bindings from "../wasm/bindings.js";
import { Core } from "./core.js";
import { environment } from "./runtime.js";

export function engine() {
  // Bundlers recognise exactly this form.
  const url = new URL("../wasm/bindings_bg.wasm", import.meta.url);
  return new Core(bindings, url, environment());
}
