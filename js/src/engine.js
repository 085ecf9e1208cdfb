/** The engine, on the module for browsers of today. */

import * as bindings from "../wasm/bindings.js";
import { Core } from "./core.js";

export function engine() {
  // Bundlers recognise exactly this form.
  const url = new URL("../wasm/bindings_bg.wasm", import.meta.url);
  return new Core(bindings, url, { storage: navigator.storage, caches: globalThis.caches, locks: navigator.locks });
}
