/**
 * Stages of the package's own code: under node with doubles, its types, and whether the oldest browsers have what it
 * uses.
 */

import { cpSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { FAILED, JS, ROOT, WORK, must, run } from "./common.js";

/** Folder of the packages that the types are compared with; `types/tsconfig.json` names it too. */
const TYPINGS = join(WORK, "types");
/** Folder of the linter that checks the code against the oldest browsers. */
const BASELINE = join(WORK, "baseline");
/** All JavaScript that is checked: the shipped code, and the tests that run in those browsers. */
const SCRIPTS = ["js/src", "js/wasm/older", "js/test/browser", "web"];

export async function unit() {
  const tests = readdirSync(join(JS, "test", "unit")).map((name) => join("test", "unit", name));
  const { output } = run(process.execPath, ["--test", "--test-timeout=300000", "--test-reporter=tap", ...tests], JS);
  const count = (/** @type {string} */ name) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(output)?.[1] ?? NaN);
  const passed = count("pass");
  const failed = count("fail") + count("cancelled");
  if (failed !== 0) console.error(output);
  return Number.isNaN(passed + failed) ? FAILED : { passed, failed, skipped: 0 };
}

export async function types() {
  mkdirSync(TYPINGS, { recursive: true });
  for (const part of ["package.json", "package-lock.json"]) cpSync(join(JS, "test", "types", part), join(TYPINGS, part));
  must("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], TYPINGS);
  const tsc = join(TYPINGS, "node_modules", ".bin", "tsc");
  // Code for browsers must not know the types of Node.js.
  const projects = ["tsconfig.json", "tsconfig.node.json"].map((name) => run(tsc, ["-p", join(JS, "test", "types", name)], JS));
  for (const { ok, output } of projects) if (!ok) console.error(output);
  const passed = projects.filter(({ ok }) => ok).length;
  return { passed, failed: projects.length - passed, skipped: 0 };
}

export async function baseline() {
  cpSync(join(JS, "test", "baseline"), BASELINE, { recursive: true });
  must("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], BASELINE);
  const eslint = join(BASELINE, "node_modules", ".bin", "eslint");
  const config = ["--config", join(BASELINE, "eslint.config.js")];
  const lint = (/** @type {string[]} */ args, input = "") => run(eslint, [...config, ...args], ROOT, { input });
  const { ok, output } = lint(SCRIPTS);
  if (!ok) console.error(output);
  // A linter that refuses nothing would pass, too.
  const young = readFileSync(join(BASELINE, "young.js"), "utf8");
  const { output: json } = lint(["--format", "json", "--stdin", "--stdin-filename", "js/src/young.js"], young);
  const passed = Number(ok) + Number(refusesAll(young, json));
  return { passed, failed: 2 - passed, skipped: 0 };
}

/** Whether a linter refuses every line except comments. @param {string} script @param {string} json */
function refusesAll(script, json) {
  /** @type {[{ messages: { line: number }[] }]} */
  const [{ messages }] = JSON.parse(json);
  const refused = new Set(messages.map(({ line }) => line));
  const lines = script.trimEnd().split("\n").map((text, index) => ({ text, line: index + 1 }));
  const missed = lines.filter(({ text, line }) => !text.startsWith("//") && !refused.has(line));
  for (const { text } of missed) console.error(`the linter does not refuse: ${text}`);
  return missed.length === 0;
}
