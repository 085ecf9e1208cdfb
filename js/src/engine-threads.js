/** The engine, on the module for pages that may have threads. */

import * as bindings from "../wasm/threads/bindings.js";
import { Core } from "./core.js";
import { environment } from "./runtime.js";

export function engine() {
  // Bundlers recognise exactly this form.
  const url = new URL("../wasm/threads/bindings_bg.wasm", import.meta.url);
  return new Core(bindings, url, environment());
}
