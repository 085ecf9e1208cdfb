/** A double of the suite's wasm module, as far as the package's own code can tell. */

import { turn } from "./bindings.js";

export { WasmCancel } from "./bindings.js";

/** @param {string} options @param {any} onCase @param {import("./bindings.js").WasmCancel} cancel */
export async function conformance(options, onCase, cancel) {
  let cases = 0;
  while (cases < 5 && !cancel.state.set) {
    await turn();
    onCase(JSON.stringify({ index: cases++, total: 5, op: "softmax", ok: true }));
  }
  return JSON.stringify({ name: JSON.parse(options).backend, passed: cases, failed: 0 });
}

export default async function init() {}
