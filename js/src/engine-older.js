/** The engine, on the module for older browsers. */

import * as bindings from "../wasm/older/bindings.js";
import { Core } from "./core.js";

export function engine() {
  // Bundlers recognise exactly this form.
  const url = new URL("../wasm/older/bindings_bg.wasm", import.meta.url);
  return new Core(bindings, url, { storage: navigator.storage, caches: globalThis.caches, locks: navigator.locks });
}
