/** The package outside of browsers. */

import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, WORK, counted, project, run, tarball } from "./common.js";

/** @import { Result, Tally } from "./common.js" */

/** A small model for conversations, which the tests of the workspace fetch. */
const CHAT = join(ROOT, "models", "cache", "SmolLM2-135M-Instruct.Q4_1.gguf");

/** What a program that ends by itself printed: its results. @param {string} who @param {string} command @param {string[]} args @param {string} folder */
function told(who, command, args, folder) {
  const { ok, stdout, output } = run(command, args, folder);
  const line = stdout.trim().split("\n").pop() ?? "";
  /** @type {Result[]} */
  const results = line.startsWith("[") ? JSON.parse(line) : [];
  const named = results.map((result) => ({ ...result, name: `${who}: ${result.name}` }));
  return [...named, { name: `${who}: ends by itself`, ok: ok && results.length > 0, message: output }];
}

/** With what a conversation takes, if that is there. @param {Result[]} results @returns {Tally} */
function chatted(results) {
  const tally = counted(results);
  if (existsSync(CHAT)) return tally;
  console.error(`SKIPPED conversations: there is no ${CHAT}; cargo xtask test fetches it`);
  return { ...tally, skipped: 1 };
}

export function runtimes() {
  const folder = project("runtimes");
  const bin = (/** @type {string} */ name) => join(folder, "node_modules", ".bin", name);
  const args = ["main.mjs", join(ROOT, "models", "gab-q4_0.gguf"), ...(existsSync(CHAT) ? [CHAT] : [])];
  return chatted([
    ...told("node", process.execPath, args, folder),
    ...told("deno", bin("deno"), ["run", "--quiet", "--allow-all", ...args], folder),
    ...told("bun", bin("bun"), args, folder),
  ]);
}

/** The AI SDK, and what OpenAI's client reads of streams. */
export function sdk() {
  const folder = project("sdk");
  const args = ["main.mjs", join(ROOT, "models", "gab-q4_0.gguf"), join(ROOT, "models", "fixtures", "by-heart.gguf"), ...(existsSync(CHAT) ? [CHAT] : [])];
  return chatted(told("sdk", process.execPath, args, folder));
}

/** What must not be packed. */
export function guard() {
  tarball();
  const broken = join(WORK, "package", "wasm", "bindings_bg.wasm");
  const pack = () => run("npm", ["pack", "--dry-run"], join(WORK, "package"));
  writeFileSync(broken, "");
  const empty = pack();
  rmSync(broken);
  const missing = pack();
  const refused = (/** @type {{ ok: boolean, output: string }} */ { ok, output }) => ({
    ok: !ok && /lacks wasm\/bindings_bg\.wasm/.test(output),
    message: output,
  });
  rmSync(join(WORK, "package"), { recursive: true });
  return counted([
    { name: "a package whose module is empty is refused", ...refused(empty) },
    { name: "a package without a module is refused", ...refused(missing) },
  ]);
}
