/** The conformance suite with the wasm module for current browsers. */

import * as bindings from "../../wasm/conformance.js";
import { Suite } from "./suite-core.js";

export function suite() {
  // Bundlers recognise exactly this form.
  return new Suite(bindings, new URL("../../wasm/conformance_bg.wasm", import.meta.url));
}
