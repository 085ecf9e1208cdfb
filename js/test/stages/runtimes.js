/** Stages with the package outside of browsers. */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { JS, ROOT, STORY, WORK, counted, project, run, talker, tarball } from "./common.js";

/** @import { Result, Tally } from "./common.js" */

/** A small chat model, which the workspace's tests download. */
const CHAT = join(ROOT, "models", "cache", "SmolLM2-135M-Instruct.Q4_1.gguf");

/** Time limit, in milliseconds: a failed check may leave an engine whose thread never ends. */
const LIMIT = 300_000;

/** Runs a program, and returns the results that it printed. @param {string} who @param {string} command @param {string[]} args @param {string} folder */
function told(who, command, args, folder) {
  const { ok, stdout, output } = run(command, args, folder, { timeout: LIMIT });
  const line = stdout.trim().split("\n").pop() ?? "";
  /** @type {Result[]} */
  const results = line.startsWith("[") ? JSON.parse(line) : [];
  const named = results.map((result) => ({ ...result, name: `${who}: ${result.name}` }));
  return [...named, { name: `${who}: ends by itself`, ok: ok && results.length > 0, message: output }];
}

/** Adds a skipped check if the chat model is missing. @param {Result[]} results @returns {Tally} */
function chatted(results) {
  const tally = counted(results);
  if (existsSync(CHAT)) return tally;
  console.error(`SKIPPED conversations: there is no ${CHAT}; cargo xtask test fetches it`);
  return { ...tally, skipped: 1 };
}

export function runtimes() {
  const folder = project("runtimes");
  const bin = (/** @type {string} */ name) => join(folder, "node_modules", ".bin", name);
  const args = ["main.mjs", STORY, talker(), ...(existsSync(CHAT) ? [CHAT] : [])];
  return chatted([
    ...told("node", process.execPath, args, folder),
    ...told("deno", bin("deno"), ["run", "--quiet", "--allow-all", ...args], folder),
    ...told("bun", bin("bun"), args, folder),
  ]);
}

/** Tests the AI SDK, OpenAI's client with converted streams, and the programs of the READMEs. */
export function sdk() {
  const folder = project("sdk");
  const fixture = (/** @type {string} */ name) => join(ROOT, "models", "fixtures", name);
  const models = [talker(), fixture("by-heart.gguf")];
  const args = ["main.mjs", ...models, ...(existsSync(CHAT) ? [CHAT] : [])];
  const shown = ["readme.mjs", join(ROOT, "README.md"), join(JS, "README.md"), ...models, fixture("bert-mean.gguf")];
  return chatted([...told("sdk", process.execPath, args, folder), ...told("documents", process.execPath, shown, folder)]);
}

/** Tests that an incomplete package is not packed: each of the modules is removed in turn, with the file beside it. */
export function guard() {
  tarball();
  const folder = join(WORK, "package");
  const wasm = join(folder, "wasm");
  const pack = () => run("npm", ["pack", "--dry-run"], folder);
  const refused = (/** @type {string} */ name, /** @type {string} */ file) => {
    const { ok, output } = pack();
    return { name, ok: !ok && output.includes(`lacks wasm/${file}`), message: output };
  };
  const files = readdirSync(wasm, { recursive: true, encoding: "utf8" }).filter((name) => /(\.js|_bg\.wasm)$/.test(name));
  const results = files.map((file) => {
    const [there, away] = [join(wasm, file), join(WORK, "away")];
    renameSync(there, away);
    const result = refused(`a package without ${file} is refused`, file);
    renameSync(away, there);
    return result;
  });
  const threads = join(wasm, "threads");
  rmSync(threads, { recursive: true, force: true });
  const { ok, output } = pack();
  results.push({ name: "a package needs no threads", ok, message: output });
  mkdirSync(threads);
  results.push(refused("a package has all of threads or nothing", "threads/bindings_bg.wasm"));
  rmSync(threads, { recursive: true });
  writeFileSync(join(wasm, "bindings_bg.wasm"), "");
  results.push(refused("a package whose module is empty is refused", "bindings_bg.wasm"));
  rmSync(folder, { recursive: true });
  return counted(results);
}
