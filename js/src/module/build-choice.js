/**
 * Finds out which build of the wasm modules this browser can run, before one is downloaded. It validates the smallest
 * modules that use a feature.
 */

import { BrowserError } from "../common/errors.js";

/** @typedef {"today" | "older" | "threads"} BuildName */

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/** Returns a module with one function type, given the type's bytes. @param {number[]} type */
const typed = (...type) => Uint8Array.from([...HEADER, 1, type.length + 1, 1, ...type]);

/** Returns a module with one function, given the bytes of its instructions. @param {number[]} code */
const doing = (...code) =>
  Uint8Array.from([
    ...HEADER,
    ...[1, 4, 1, 0x60, 0, 0],
    ...[3, 2, 1, 0],
    ...[5, 3, 1, 0, 0],
    ...[10, code.length + 4, 1, code.length + 2, 0, ...code, 0x0b],
  ]);

/** Features that all builds need, by name. @type {Record<string, Uint8Array>} */
const ALWAYS = {
  // i32.const 0, three times, and memory.copy.
  "WebAssembly bulk memory": doing(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0),
  // i32.const 0, i32.extend8_s, drop.
  "WebAssembly sign extension": doing(0x41, 0, 0xc0, 0x1a),
  // f32.const 0, i32.trunc_sat_f32_s, drop.
  "WebAssembly conversions that saturate": doing(0x43, 0, 0, 0, 0, 0xfc, 0, 0x1a),
};

/** Features that only the build for current browsers needs. */
const TODAY = [
  // SIMD: a function that gives a v128.
  typed(0x60, 0, 1, 0x7b),
  // Reference types: one that takes an externref.
  typed(0x60, 1, 0x6f, 0),
  // Several results: one that gives two i32.
  typed(0x60, 0, 2, 0x7f, 0x7f),
];

/**
 * @param {Pick<typeof WebAssembly, "validate"> | undefined} wasm
 * @returns {"today" | "older"}
 */
export function buildFor(wasm) {
  const runs = (/** @type {Uint8Array} */ module) =>
    wasm !== undefined && wasm.validate(/** @type {Uint8Array<ArrayBuffer>} */ (module));
  const lacks = Object.keys(ALWAYS).filter((name) => !runs(/** @type {Uint8Array} */ (ALWAYS[name])));
  if (lacks.length > 0) {
    const browsers = "Chromium 80, Firefox 79, Safari 15 and later have it";
    throw new BrowserError(`this browser lacks ${wasm === undefined ? "WebAssembly" : lacks.join(", ")}; ${browsers}`);
  }
  return TODAY.every(runs) ? "today" : "older";
}
