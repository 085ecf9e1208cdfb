/** Structured output with the wasm module for older browsers. */

import * as bindings from "../../wasm/older/constrain.js";
import { FormatCore } from "./format-core.js";

export function formats() {
  // Bundlers recognise exactly this form.
  return new FormatCore(bindings, new URL("../../wasm/older/constrain_bg.wasm", import.meta.url));
}
