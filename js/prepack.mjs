/** Refuses to pack a package that would not work, or that must not be published. npm runs it before it packs. */

import { existsSync, readFileSync } from "node:fs";

/** Wasm modules by their folders in `wasm/`: those for current browsers, and those for older ones. */
const MODULES = [
  "bindings",
  "conformance",
  "constrain",
  "pool",
  "older/bindings",
  "older/conformance",
  "older/constrain",
];
/** Modules with threads. They take long to build, so a package has all of them or none. */
const THREADS = ["threads/bindings", "threads/conformance"];
const NEEDED = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-NOTICES.txt"];

const here = (/** @type {string} */ name) => new URL(name, import.meta.url);

/** Whether a file begins like a wasm module. @param {URL} file */
const isWasm = (file) => existsSync(file) && readFileSync(file).subarray(0, 4).toString("latin1") === "\0asm";

const modules = existsSync(here("wasm/threads")) ? [...MODULES, ...THREADS] : MODULES;
const broken = modules.map((name) => `wasm/${name}_bg.wasm`).filter((name) => !isWasm(here(name)));
const absent = [...NEEDED, ...modules.map((name) => `wasm/${name}.js`)].filter((name) => !existsSync(here(name)));
const missing = [...broken, ...absent];
if (missing.length > 0) {
  console.error(`the package lacks ${missing.join(", ")}; run cargo xtask web, and pack dist/anygpu`);
  process.exitCode = 1;
}
