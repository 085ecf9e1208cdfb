/**
 * The tests of the package: its own code under node, its types, whether all that browsers get is in the oldest of them,
 * what a user gets, which is the packed tarball, in other runtimes, and in small projects and pages in Chromium; the page
 * of this repository in Chromium and Firefox (`site`), and pages of both as parts of a pool with a larger model (`mixed`);
 * and whether clients of OpenAI's API can talk to `anygpu serve`.
 *
 *     node test/run.js [STAGE...]        all of them by default, but for those of a night
 *
 * All but `unit` and `openai` need `wasm/` (`cargo xtask web` makes it), and all but `unit` fetch the packages of their
 * `package-lock.json`, `openai` those of Python besides, with pip. Those of pages need Chromium: $CHROMIUM, or chromium of
 * the PATH, without which they are skipped; `site` and `mixed` take Firefox as well: $FIREFOX, or firefox-esr; and
 * nats-server: $NATS_SERVER, or that of the path. With $ANYGPU_PICTURES, a folder, `site` leaves a picture there of each
 * state of the page, and looks at all of them in both browsers. `openai`, `site` and `mixed` build the command line, unless
 * $ANYGPU is the program. All that they make lies in the workspace's `target/js`. The last line counts: `N passed, N failed,
 * N skipped`.
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

/** What takes too long for each change. @type {typeof STAGES} */
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
