/** The stages of the page, as visitors use it in Chromium and Firefox. */

import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { CHROMIUM, FIREFOX, JS, ROOT, SKIPPED, WORK, commandLine, counted, must, run } from "./common.js";
import { serve } from "./chromium.js";

/**
 * Returns the path of a program; null if it is missing, with a message.
 *
 * @param {string} name @param {string} variable
 */
function find(name, variable) {
  const { ok, stdout } = run("sh", ["-c", 'command -v "$0"', name], JS);
  if (ok) return stdout.trim();
  console.error(`there is no ${name}: install it, or set ${variable}`);
  return null;
}

const DIST = join(ROOT, "dist");
/** Path where `cargo xtask models` stores SmolLM2. */
const SMOLLM2 = join(ROOT, "models", "cache", "SmolLM2-135M-Instruct.Q4_1.gguf");

/** Installs the driver of the pages and its packages; returns its folder. */
async function prepared() {
  const folder = join(WORK, "site");
  cpSync(join(JS, "test", "site"), folder, { recursive: true });
  must("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder);
  if (!existsSync(join(DIST, "index.html"))) throw new Error("dist is not there; run cargo xtask web");
  const load = (/** @type {string} */ name) => import(pathToFileURL(join(folder, name)).href);
  const [{ flows }, { areVendored }, pools] = await Promise.all(["main", "vendored", "pool"].map((name) => load(`${name}.js`)));
  return { flows, areVendored, pools };
}

/** Returns the programs that pages and pools need; null for missing ones, with a message. */
function programs() {
  const browsers = { chrome: find(CHROMIUM, "CHROMIUM"), firefox: find(FIREFOX, "FIREFOX") };
  return { browsers, nats: process.env.NATS_SERVER ?? find("nats-server", "NATS_SERVER") };
}

/** Runs SmolLM2 with pages of both browsers and native workers, as one chain. */
export async function mixed() {
  const { pools } = await prepared();
  const { browsers: { chrome, firefox }, nats } = programs();
  if (chrome === null || firefox === null || nats === null) return { ...SKIPPED, skipped: 2 };
  if (!existsSync(SMOLLM2)) throw new Error(`${SMOLLM2} is not there; run cargo xtask models`);
  const server = await serve({ folder: DIST, files: {} });
  try {
    return counted(await pools.mixes({ chrome, firefox }, server.origin, { anygpu: commandLine(), nats }, SMOLLM2));
  } finally {
    server.close();
  }
}

export async function site() {
  const { flows, areVendored, pools } = await prepared();
  const server = await serve({ folder: DIST });
  try {
    const { browsers, nats } = programs();
    // Both browsers at once: much of the time is spent on waiting.
    const seen = Object.entries(browsers).map(async ([name, program]) =>
      program === null ? SKIPPED : counted(await flows(name, program, server.origin)),
    );
    const tallies = [counted(await areVendored(DIST)), ...(await Promise.all(seen))];
    for (const [name, backend] of [["chrome", "webgl"], ["chrome", "webgpu"], ["firefox", "cpu"]]) {
      const program = browsers[/** @type {"chrome" | "firefox"} */ (name)];
      const isThere = program !== null && nats !== null;
      tallies.push(isThere ? counted([await pools.joins(name, program, backend, server.origin, { anygpu: commandLine(), nats })]) : SKIPPED);
    }
    for (const name of /** @type {const} */ (["chrome", "firefox"])) {
      const program = browsers[name];
      const isThere = program !== null && nats !== null;
      tallies.push(isThere ? counted([await pools.asks(name, program, server.origin, { anygpu: commandLine(), nats })]) : SKIPPED);
    }
    const { chrome, firefox } = browsers;
    const closes = chrome !== null && nats !== null;
    tallies.push(closes ? counted([await pools.closes(chrome, server.origin, { anygpu: commandLine(), nats })]) : SKIPPED);
    const all = chrome !== null && firefox !== null && nats !== null;
    tallies.push(all ? counted(await pools.mixes({ chrome, firefox }, server.origin, { anygpu: commandLine(), nats })) : { ...SKIPPED, skipped: 2 });
    const sum = (/** @type {"passed" | "failed" | "skipped"} */ kind) => tallies.reduce((all, tally) => all + tally[kind], 0);
    return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
  } finally {
    server.close();
  }
}
