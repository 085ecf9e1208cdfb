/** Refuses to pack what would not work, or must not be passed on: npm runs it before it packs. */

import { existsSync, readFileSync } from "node:fs";

const MODULES = ["bindings", "conformance", "pool", "older/bindings", "older/conformance"];
const NEEDED = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-NOTICES.txt", ...MODULES.map((name) => `wasm/${name}.js`)];

/** Whether a file begins as wasm modules do. @param {URL} file */
const isWasm = (file) => existsSync(file) && readFileSync(file).subarray(0, 4).toString("latin1") === "\0asm";

const here = (/** @type {string} */ name) => new URL(name, import.meta.url);
const modules = MODULES.map((name) => `wasm/${name}_bg.wasm`).filter((name) => !isWasm(here(name)));
const missing = [...modules, ...NEEDED.filter((name) => !existsSync(here(name)))];
if (missing.length > 0) {
  console.error(`the package lacks ${missing.join(", ")}; run cargo xtask web, and pack dist/anygpu`);
  process.exitCode = 1;
}
