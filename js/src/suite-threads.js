/** The conformance suite, on the module for pages that may have threads. */

import * as bindings from "../wasm/threads/conformance.js";
import { Suite } from "./suite.js";

export function suite() {
  // Bundlers recognise exactly this form.
  return new Suite(bindings, new URL("../wasm/threads/conformance_bg.wasm", import.meta.url));
}
