/** The conformance suite with the wasm module for older browsers. */

import * as bindings from "../../wasm/older/conformance.js";
import { Suite } from "./suite-core.js";

export function suite() {
  // Bundlers recognise exactly this form.
  return new Suite(bindings, new URL("../../wasm/older/conformance_bg.wasm", import.meta.url));
}
