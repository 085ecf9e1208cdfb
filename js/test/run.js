/**
 * The tests of the package: its own code under node, its types, whether all that browsers get is in the oldest of them,
 * what a user gets, which is the packed tarball in a Vite and TypeScript project that is built and run in Chromium, and
 * whether OpenAI's own client can talk to `anygpu serve`.
 *
 *     node test/run.js [unit] [types] [baseline] [vite] [openai]        all of them by default
 *
 * All but `unit` and `openai` need `wasm/` (`cargo xtask web` makes it), and all but `unit` fetch the packages of their
 * `package-lock.json`; `vite` needs Chromium: $CHROMIUM, or chromium of the PATH, without which it is skipped; `openai`
 * builds the command line, unless $ANYGPU is the program. All that they make lies in the
 * workspace's `target/js`. The last line counts: `N passed, N failed, N skipped`.
 */

import { spawn, spawnSync } from "node:child_process";
import { createReadStream, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import http from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const JS = fileURLToPath(new URL("..", import.meta.url));
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const WORK = join(ROOT, "target", "js");
const PROJECT = join(WORK, "vite");
/** The packages that the types are held to; `types/tsconfig.json` knows it too. */
const TYPINGS = join(WORK, "types");
/** What holds the code to the oldest browsers. */
const BASELINE = join(WORK, "baseline");
/** All JavaScript that it is about: what ships, and the tests that run in those browsers. */
const SCRIPTS = ["js/src", "js/wasm/older", "js/test/browser", "examples/web"];
/** The run in the browser takes no longer. In milliseconds. */
const LIMIT = 240_000;

const CHROMIUM = process.env.CHROMIUM ?? "chromium";

/** @typedef {{ passed: number, failed: number, skipped: number }} Tally */

/** @type {Record<string, () => Promise<Tally>>} */
const STAGES = { unit, types, baseline, vite, openai };

/** A stage that did not even run. @type {Tally} */
const FAILED = { passed: 0, failed: 1, skipped: 0 };

/** @param {string} command @param {string[]} args @param {string} cwd @param {string} [input] */
function run(command, args, cwd, input) {
  const options = { cwd, input, encoding: /** @type {const} */ ("utf8"), maxBuffer: 1 << 26 };
  const { status, stdout, stderr, error } = spawnSync(command, args, options);
  return { ok: status === 0, output: `${stdout ?? ""}${stderr ?? ""}${error?.message ?? ""}` };
}

/** @param {string} command @param {string[]} args @param {string} cwd */
function must(command, args, cwd) {
  const { ok, output } = run(command, args, cwd);
  if (!ok) throw new Error(`${command} ${args.join(" ")} failed:\n${output}`);
}

async function unit() {
  const tests = readdirSync(join(JS, "test", "unit")).map((name) => join("test", "unit", name));
  const { output } = run(process.execPath, ["--test", "--test-timeout=300000", "--test-reporter=tap", ...tests], JS);
  const count = (/** @type {string} */ name) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(output)?.[1] ?? NaN);
  const passed = count("pass");
  const failed = count("fail") + count("cancelled");
  if (failed !== 0) console.error(output);
  return Number.isNaN(passed + failed) ? FAILED : { passed, failed, skipped: 0 };
}

/** The project with its packages, and with the packed package as a user installs it. */
function project() {
  if (!existsSync(join(JS, "wasm", "bindings.js"))) throw new Error("js/wasm is not there; run cargo xtask web");
  cpSync(join(JS, "test", "vite"), PROJECT, { recursive: true });
  const parts = ["package.json", "README.md", "index.d.ts", "src", "wasm"];
  for (const part of parts) cpSync(join(JS, part), join(WORK, "package", part), { recursive: true });
  for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) cpSync(join(ROOT, licence), join(WORK, "package", licence));
  must("npm", ["pack", "--pack-destination", WORK], join(WORK, "package"));
  must("npm", ["ci", "--no-audit", "--no-fund"], PROJECT);
  const [tarball] = readdirSync(WORK).filter((name) => name.endsWith(".tgz"));
  must("npm", ["install", "--no-save", "--no-audit", "--no-fund", join(WORK, tarball ?? "")], PROJECT);
}

async function types() {
  mkdirSync(TYPINGS, { recursive: true });
  for (const part of ["package.json", "package-lock.json"]) cpSync(join(JS, "test", "types", part), join(TYPINGS, part));
  must("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], TYPINGS);
  const tsc = join(TYPINGS, "node_modules", ".bin", "tsc");
  const { ok, output } = run(tsc, ["-p", join(JS, "test", "types")], JS);
  if (!ok) console.error(output);
  return ok ? { ...FAILED, passed: 1, failed: 0 } : FAILED;
}

async function baseline() {
  cpSync(join(JS, "test", "baseline"), BASELINE, { recursive: true });
  must("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], BASELINE);
  const eslint = join(BASELINE, "node_modules", ".bin", "eslint");
  const config = ["--config", join(BASELINE, "eslint.config.js")];
  const lint = (/** @type {string[]} */ args, input = "") => run(eslint, [...config, ...args], ROOT, input);
  const { ok, output } = lint(SCRIPTS);
  if (!ok) console.error(output);
  // A linter that refuses nothing would pass, too.
  const young = readFileSync(join(BASELINE, "young.js"), "utf8");
  const { output: json } = lint(["--format", "json", "--stdin", "--stdin-filename", "js/src/young.js"], young);
  const passed = Number(ok) + Number(refusesAll(young, json));
  return { passed, failed: 2 - passed, skipped: 0 };
}

/** Whether a linter refuses every line but those of comments. @param {string} script @param {string} json */
function refusesAll(script, json) {
  /** @type {[{ messages: { line: number }[] }]} */
  const [{ messages }] = JSON.parse(json);
  const refused = new Set(messages.map(({ line }) => line));
  const lines = script.trimEnd().split("\n").map((text, index) => ({ text, line: index + 1 }));
  const missed = lines.filter(({ text, line }) => !text.startsWith("//") && !refused.has(line));
  for (const { text } of missed) console.error(`the linter does not refuse: ${text}`);
  return missed.length === 0;
}

async function vite() {
  if (!run(CHROMIUM, ["--version"], JS).ok) {
    console.error(`there is no ${CHROMIUM}: install it, or set CHROMIUM`);
    return { ...FAILED, failed: 0, skipped: 1 };
  }
  project();
  must("npm", ["run", "build"], PROJECT);
  return tally(await inChromium(join(PROJECT, "dist")));
}

async function openai() {
  const project = join(WORK, "openai");
  cpSync(join(JS, "test", "openai"), project, { recursive: true });
  must("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], project);
  // As the other tests build it: with other packages beside it, dependencies have the same features.
  if (!process.env.ANYGPU) must("cargo", ["build", "--quiet", "--release", "--workspace", "--bin", "anygpu"], ROOT);
  const program = process.env.ANYGPU ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "release", "anygpu");
  const models = ["gab", join(ROOT, "models", "fixtures", "bert-mean.gguf")];
  const servers = models.map((model) => serve(program, model));
  try {
    const addresses = await Promise.all(servers.map(({ address }) => address));
    const { ok, output } = run(process.execPath, ["clients.js", ...addresses, KEY], project);
    if (!ok) throw new Error(output);
    return tally(JSON.parse(output.trimEnd().split("\n").pop() ?? ""));
  } finally {
    for (const { child } of servers) child.kill();
  }
}

const KEY = "a key";

/** A server, and where it is once it answers. @param {string} program @param {string} model */
function serve(program, model) {
  const args = ["serve", "--backend", "cpu", "--port", "0", "--api-key", KEY, "--model", model];
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  /** @type {Promise<string>} */
  const address = new Promise((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (data) => {
      said += data;
      const found = /serving .* at (\S+)/.exec(said);
      if (found?.[1]) resolve(found[1]);
    });
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`anygpu serve ended: ${said}`)));
  });
  return { child, address };
}

/** @typedef {{ name: string, ok: boolean, message?: string }} Result */

/** Shows results and counts them. @param {Result[]} results @returns {Tally} */
function tally(results) {
  for (const { name, ok, message } of results) console.error(`${ok ? "ok    " : "FAILED"} ${name}${ok ? "" : `\n${message}`}`);
  const passed = results.filter((result) => result.ok).length;
  return { passed, failed: results.length - passed, skipped: 0 };
}

/**
 * Serves a folder under a path of its own, as some hosts do, and has Chromium open it.
 *
 * @param {string} folder
 * @returns {Promise<Result[]>}
 */
async function inChromium(folder) {
  // It stays until the next run: the browser's processes write to it for some time after their end.
  const profile = join(WORK, "profile");
  return new Promise((resolve, reject) => {
    const server = http.createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://localhost").pathname;
      if (request.method === "POST") {
        let body = "";
        request.on("data", (data) => (body += data));
        request.on("end", () => {
          response.end();
          end(() => resolve(JSON.parse(body)));
        });
        return;
      }
      const name = path.replace(/^\/some\/path\//, "").replace(/^$/, "index.html");
      const file = name === "model.gguf" ? join(ROOT, "models", "gab-q4_0.gguf") : join(folder, name);
      if (path.includes("..") || !existsSync(file) || !statSync(file).isFile()) return response.writeHead(404).end();
      send(file, request, response);
    });
    const end = (/** @type {() => void} */ then) => {
      clearTimeout(timer);
      browser?.kill();
      server.closeAllConnections();
      server.close();
      then();
    };
    const timer = setTimeout(() => end(() => reject(new Error(`no report after ${LIMIT} ms`))), LIMIT);
    /** @type {import("node:child_process").ChildProcess | undefined} */
    let browser;
    server.listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      const flags = ["--headless=new", "--no-sandbox", "--no-first-run", "--enable-unsafe-swiftshader", `--user-data-dir=${profile}`];
      const url = `http://127.0.0.1:${port}/some/path/`;
      browser = spawn(CHROMIUM, [...flags, url], { stdio: "ignore" });
      browser.on("error", (error) => end(() => reject(new Error(`cannot start Chromium: ${error.message}; set CHROMIUM`))));
      browser.on("exit", (code) => end(() => reject(new Error(`Chromium ended early with ${code}`))));
    });
  });
}

const TYPES = /** @type {Record<string, string>} */ ({
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
});

/** @param {string} file @param {http.IncomingMessage} request @param {http.ServerResponse} response */
function send(file, request, response) {
  const { size } = statSync(file);
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  response.writeHead(request.headers.range ? 206 : 200, {
    "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
    "Content-Length": size - from,
    ETag: `"${size}"`,
    ...(request.headers.range ? { "Content-Range": `bytes ${from}-${size - 1}/${size}` } : {}),
  });
  createReadStream(file, { start: from }).pipe(response);
}

/** @param {Tally} tally */
function tallied({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in STAGES));
if (unknown.length > 0) {
  console.error(`there is no ${unknown.join(", ")}; there are ${Object.keys(STAGES).join(", ")}`);
  process.exit(2);
}
rmSync(WORK, { recursive: true, force: true });
mkdirSync(WORK, { recursive: true });
const total = { passed: 0, failed: 0, skipped: 0 };
for (const [name, stage] of Object.entries(STAGES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const tally = await stage().catch((error) => {
    console.error(error.message);
    return FAILED;
  });
  console.log(`${name}: ${tallied(tally)}`);
  total.passed += tally.passed;
  total.failed += tally.failed;
  total.skipped += tally.skipped;
}
console.log(tallied(total));
process.exitCode = total.failed === 0 ? 0 : 1;
