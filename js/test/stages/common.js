/** Common parts of the stages: paths, commands, the package as npm packs it. */

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withTemplate } from "../browser/gguf.js";

export const JS = fileURLToPath(new URL("../..", import.meta.url));
export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** Folder for everything that the stages create. */
export const WORK = join(ROOT, "target", "js");
export const CHROMIUM = process.env.CHROMIUM ?? "chromium";
export const FIREFOX = process.env.FIREFOX ?? "firefox-esr";

/** @typedef {{ passed: number, failed: number, skipped: number }} Tally */
/** @typedef {{ name: string, ok: boolean, message?: string }} Result */

/** Tally of a stage that did not even run. @type {Tally} */
export const FAILED = { passed: 0, failed: 1, skipped: 0 };
/** Tally of a stage that lacks something. @type {Tally} */
export const SKIPPED = { passed: 0, failed: 0, skipped: 1 };

/** Longest time that a command may take: a program that does not end after a failed check must not stop all. In milliseconds. */
const LONGEST = 15 * 60_000;

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 * @param {{ input?: string, timeout?: number }} [more] Standard input, and the time limit in milliseconds.
 */
export function run(command, args, cwd, more) {
  const options = { timeout: LONGEST, ...more, cwd, encoding: /** @type {const} */ ("utf8"), maxBuffer: 1 << 26 };
  const { status, stdout, stderr, error } = spawnSync(command, args, options);
  return { ok: status === 0, stdout: stdout ?? "", output: `${stdout ?? ""}${stderr ?? ""}${error?.message ?? ""}` };
}

/** @param {string} command @param {string[]} args @param {string} cwd */
export function must(command, args, cwd) {
  // Compiling everything may take long.
  const { ok, output } = run(command, args, cwd, { timeout: 4 * LONGEST });
  if (!ok) throw new Error(`${command} ${args.join(" ")} failed:\n${output}`);
}

/** Returns the command line, which is built unless $ANYGPU is the program. */
export function commandLine() {
  if (process.env.ANYGPU) return process.env.ANYGPU;
  // Built like the other tests do, with the whole workspace, so that dependencies have the same features.
  must("cargo", ["build", "--quiet", "--release", "--workspace", "--exclude", "anygpu-viewer", "--bin", "anygpu"], ROOT);
  return join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "release", "anygpu");
}

/** Shows results, and counts them. @param {Result[]} results @returns {Tally} */
export function counted(results) {
  for (const { name, ok, message } of results) console.error(`${ok ? "ok    " : "FAILED"} ${name}${ok ? "" : `\n${message}`}`);
  const passed = results.filter((result) => result.ok).length;
  return { passed, failed: results.length - passed, skipped: 0 };
}

/** Whether there is a Chromium; says so if not. */
export function hasChromium() {
  const { ok } = run(CHROMIUM, ["--version"], JS);
  if (!ok) console.error(`there is no ${CHROMIUM}: install it, or set CHROMIUM`);
  return ok;
}

/** @type {string | null} */
let packed = null;

/** Returns the package as npm packs it, packed once for all stages. */
export function tarball() {
  if (packed !== null) return packed;
  if (!existsSync(join(JS, "wasm", "bindings.js"))) throw new Error("js/wasm is not there; run cargo xtask web");
  const folder = join(WORK, "package");
  const parts = ["package.json", "prepack.mjs", "README.md", "index.d.ts", "react.d.ts", "ai-sdk.d.ts", "pool.d.ts", "types", "src", "vendor", "wasm"];
  for (const part of parts) cpSync(join(JS, part), join(folder, part), { recursive: true });
  for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) cpSync(join(ROOT, licence), join(folder, licence));
  const notices = "THIRD-PARTY-NOTICES.txt";
  cpSync(join(ROOT, "dist", "anygpu", notices), join(folder, notices));
  must("npm", ["pack", "--pack-destination", WORK], folder);
  packed = join(WORK, readdirSync(WORK).find((name) => name.endsWith(".tgz")) ?? "");
  return packed;
}

/** Path of the built-in model. */
export const STORY = join(ROOT, "models", "gab-q4_0.gguf");

/** Returns the built-in model with a chat template. */
export function talker() {
  const file = join(WORK, "talker.gguf");
  if (!existsSync(file)) writeFileSync(file, withTemplate(readFileSync(STORY)));
  return file;
}

/**
 * Copies a project of this folder, and installs its packages and ours: unpacked, since it has no dependencies.
 *
 * @param {string} name
 * @returns {string} Where it is.
 */
export function project(name) {
  const folder = join(WORK, name);
  const installed = join(folder, "node_modules", "anygpu");
  cpSync(join(JS, "test", name), folder, { recursive: true });
  cpSync(join(JS, "test", "page"), join(folder, "page"), { recursive: true });
  if (existsSync(join(folder, "package-lock.json"))) must("npm", ["ci", "--no-audit", "--no-fund"], folder);
  mkdirSync(installed, { recursive: true });
  must("tar", ["-xzf", tarball(), "-C", installed, "--strip-components=1"], folder);
  return folder;
}
