/** Structured output with the wasm module for current browsers. */

import * as bindings from "../../wasm/constrain.js";
import { FormatCore } from "./format-core.js";

export function formats() {
  // Bundlers recognise exactly this form.
  return new FormatCore(bindings, new URL("../../wasm/constrain_bg.wasm", import.meta.url));
}
