/**
 * Runs the tests of the package in stages: its own code under node, its types, and whether all code for browsers runs
 * in the oldest of them; the packed tarball in other runtimes, and in small projects and pages in Chromium; the page of
 * this repository in Chromium and Firefox (`site`), and pages of both as parts of a pool with a larger model (`mixed`);
 * and clients of OpenAI's API with `anygpu serve`.
 *
 *     node test/run.js [STAGE...]        all stages by default, except the nightly ones
 *
 * All stages but `unit` and `openai` need `wasm/`, which `cargo xtask web` makes. All but `unit` download the packages
 * of their `package-lock.json`; `openai` also downloads Python packages with pip. Stages with pages need Chromium
 * ($CHROMIUM, or chromium of the PATH) and are skipped without it. `site` and `mixed` also use Firefox ($FIREFOX, or
 * firefox-esr) and nats-server ($NATS_SERVER, or that of the PATH). If $ANYGPU_PICTURES names a folder, `site` stores a
 * picture of each state of the page there, and checks all states in both browsers. `openai`, `site` and `mixed` build
 * the command line, unless $ANYGPU is the program. All files go to the workspace's `target/js`. The last line counts:
 * `N passed, N failed, N skipped`.
 */

import { mkdirSync, rmSync } from "node:fs";
import { esbuild, next, rollup, vite, webpack } from "./stages/bundled.js";
import { openai } from "./stages/clients.js";
import { baseline, types, unit } from "./stages/code.js";
import { FAILED, WORK } from "./stages/common.js";
import { offline, plain } from "./stages/pages.js";
import { guard, runtimes, sdk } from "./stages/runtimes.js";
import { mixed, site } from "./stages/site.js";

/** @import { Tally } from "./stages/common.js" */

/** @type {Record<string, () => Tally | Promise<Tally>>} */
const STAGES = { unit, types, baseline, guard, runtimes, sdk, plain, offline, site, vite, webpack, esbuild, rollup, openai };

/** Stages that take too long for each change. @type {typeof STAGES} */
const NIGHTLY = { next, mixed };

/** @param {Tally} tally */
function tallied({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

const all = { ...STAGES, ...NIGHTLY };
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in all));
if (unknown.length > 0) {
  console.error(`there is no ${unknown.join(", ")}; there are ${Object.keys(all).join(", ")}`);
  process.exit(2);
}
rmSync(WORK, { recursive: true, force: true });
mkdirSync(WORK, { recursive: true });
const total = { passed: 0, failed: 0, skipped: 0 };
for (const [name, stage] of Object.entries(wanted.length > 0 ? all : STAGES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const begin = Date.now();
  const tally = await Promise.resolve().then(stage).catch((error) => {
    console.error(error.message);
    return FAILED;
  });
  console.log(`${name}: ${tallied(tally)} (${Math.round((Date.now() - begin) / 1000)} s)`);
  total.passed += tally.passed;
  total.failed += tally.failed;
  total.skipped += tally.skipped;
}
console.log(tallied(total));
process.exitCode = total.failed === 0 ? 0 : 1;
