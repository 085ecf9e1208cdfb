/** Tests of pages that join a pool, with a real server, a real coordinator, and native workers. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { launch } from "./driver.js";

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

const PROMPT = "Once upon a time";
const TOKENS = 64;
/** Number of tokens, large enough that a tab is closed long before the last. */
const LONG = 200;
/** Number of tokens in the test of all kinds of workers. */
const MIXED_TOKENS = 32;
/** Memory of a native worker: half of gab, like a page with 256 MB. */
const MEMORY = "230M";
/** Memory of a page, in bytes: 256 MB. */
const PAGE = 2 ** 28;
/** Time limit, in milliseconds. */
const PATIENCE = 60_000;

/** Finds free ports. @param {number} count @returns {Promise<number[]>} */
async function ports(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.once("listening", resolve))));
  const found = servers.map((server) => /** @type {import("node:net").AddressInfo} */ (server.address()).port);
  for (const server of servers) server.close();
  return found;
}

/**
 * Starts a program, and waits until it is ready.
 *
 * @param {string} program @param {string[]} args @param {RegExp} ready @returns {Promise<ChildProcess>}
 */
function start(program, args, ready) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  return new Promise((resolve, reject) => {
    const listen = (/** @type {Buffer} */ data) => {
      said += data;
      if (ready.test(said)) resolve(child);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`${program} ${args.slice(0, 2).join(" ")} ended: ${said}`)));
  });
}

/** @typedef {{ anygpu: string, nats: string }} Programs */

/**
 * Starts a server and a coordinator. Returns the coordinator's address.
 *
 * @param {string} folder
 * @param {ChildProcess[]} children Gets the programs that were started.
 * @param {Programs} programs
 * @param {string[]} options Options of the coordinator.
 * @param {RegExp} ready Output of the coordinator when it is ready.
 */
async function opened(folder, children, { anygpu, nats }, options, ready = /serving /) {
  const [port, websocket, http] = await ports(3);
  // Servers before 2.10 cannot ask the coordinator who may connect.
  const isOld = /v2\.\d\./.test(spawnSync(nats, ["--version"], { encoding: "utf8" }).stdout);
  const how = ["--port", `${port}`, "--websocket-port", `${websocket}`, ...(isOld ? ["--shared"] : [])];
  const config = spawnSync(anygpu, ["pool", "config", ...how], { encoding: "utf8" }).stdout;
  const conf = join(folder, `nats-${port}.conf`);
  writeFileSync(conf, config);
  // The comments in the configuration have the coordinator's addresses and options.
  const addresses = [...config.matchAll(/(--nats\S*) (\S+:\/\/\S+)/g)].flatMap(([, option, address]) => [option ?? "", address ?? ""]);
  children.push(await start(nats, ["-c", conf], /Server is ready/));
  const serve = ["pool", "serve", "--port", `${http}`, ...options, ...addresses];
  children.push(await start(anygpu, serve, ready));
  return `http://127.0.0.1:${http}`;
}

/** Starts a native worker. @param {string} anygpu @param {string} coordinator @param {string} backend @param {string} memory */
function works(anygpu, coordinator, backend, memory) {
  const work = ["pool", "work", "--coordinator", coordinator, "--backend", backend, "--threads", "1", "--memory", memory, "--no-keep"];
  return start(anygpu, work, / as w/);
}

/**
 * Opens a page that joins.
 *
 * @param {import("puppeteer-core").Browser} browser @param {string} origin @param {string} coordinator @param {string} backend
 */
async function page(browser, origin, coordinator, backend) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  await page.goto(`${origin}/pool.html?coordinator=${coordinator}&backend=${backend}`);
  await page.waitForSelector("#join", { visible: true });
  await page.select("#memory", "0.25");
  await page.click("#join");
  return page;
}

/** Returns the coordinator's state. @param {string} coordinator */
async function state(coordinator) {
  return (await fetch(`${coordinator}/state.json`)).json();
}

/**
 * Waits until a condition on the coordinator's state holds.
 *
 * @param {string} coordinator @param {string} what @param {(state: any) => boolean} is
 */
async function until(coordinator, what, is) {
  for (let looks = 0; !is(await state(coordinator)); looks += 1) {
    assert.ok(looks < 600, `${what}: ${JSON.stringify(await state(coordinator))}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Waits until a chain is up. @param {string} coordinator */
const up = (coordinator) => until(coordinator, "no chain is up", ({ serves }) => serves);

/**
 * Checks that the pool's text is that of one machine.
 *
 * @param {string} anygpu
 * @param {string} coordinator
 * @param {number} tokens
 * @param {number} temperature
 * @param {string[]} model Arguments that name the model, if it is not gab.
 */
async function isExact(anygpu, coordinator, tokens, temperature, model = []) {
  const { choices } = await (await completes(coordinator, tokens, { temperature })).json();
  assert.equal(choices[0].text, alone(anygpu, tokens, temperature, model));
}

/** Requests a completion from a pool. @param {string} coordinator @param {number} tokens @param {object} more */
function completes(coordinator, tokens, more) {
  const request = { prompt: PROMPT, max_tokens: tokens, top_k: 40, top_p: 0.95, seed: 7, ...more };
  const headers = { "content-type": "application/json" };
  return fetch(`${coordinator}/v1/completions`, { method: "POST", headers, body: JSON.stringify(request) });
}

/**
 * Returns the text of one machine.
 *
 * @param {string} anygpu @param {number} tokens @param {number} temperature @param {string[]} more @returns {string}
 */
function alone(anygpu, tokens, temperature, more) {
  const args = ["generate", "--backend", "cpu", "--prompt", PROMPT, "--max-tokens", `${tokens}`, "--json", ...more];
  const drawn = temperature > 0 ? ["--temperature", `${temperature}`, "--top-k", "40", "--top-p", "0.95", "--seed", "7"] : [];
  return JSON.parse(spawnSync(anygpu, [...args, ...drawn], { encoding: "utf8" }).stdout).text;
}

/**
 * Runs pages of both browsers and native workers as one chain: WebGPU, WebGL and the CPU, each with a different part.
 *
 * @param {{ chrome: string, firefox: string }} browsers
 * @param {string} origin The pages'.
 * @param {Programs} programs
 * @param {string | null} file The model's; gab if there is none.
 * @returns {Promise<import("./main.js").Result[]>}
 */
export async function mixes(browsers, origin, programs, file = null) {
  const folder = mkdtempSync(join(tmpdir(), "anygpu-pool-"));
  const [chrome, firefox] = await Promise.all([launch("chrome", browsers.chrome), launch("firefox", browsers.firefox)]);
  const native = (process.env.ANYGPU_SKIP ?? "").split(",").includes("webgl") ? "cpu" : "webgl";
  const model = file === null ? [] : ["--model", file];
  const results = [];
  for (const seam of ["f32", "f16"]) {
    const name = `${file === null ? "gab" : basename(file)}: chrome on webgpu and webgl, firefox on the cpu, native workers on the cpu and ${native}: one chain, ${seam}`;
    /** @type {ChildProcess[]} */
    const children = [];
    try {
      // States of so many texts that a page only has room for some blocks; the native workers have room for the rest.
      const coordinator = await opened(folder, children, programs, ["--seam", seam, "--sessions", "16", ...model]);
      const { blocks, block_bytes: block, embedding_bytes: embedding, head_bytes: head } = (await (await fetch(`${coordinator}/pool.json`)).json()).model;
      const left = blocks - 3 * Math.floor(PAGE / block);
      assert.ok(left >= 2, `${blocks} blocks of ${block} bytes are too few for five`);
      const first = Math.ceil(left / 2);
      children.push(await works(programs.anygpu, coordinator, "cpu", `${embedding + first * block}`));
      children.push(await works(programs.anygpu, coordinator, native, `${head + (left - first) * block}`));
      const pages = [await page(chrome, origin, coordinator, "webgpu"), await page(chrome, origin, coordinator, "webgl"), await page(firefox, origin, coordinator, "cpu")];
      await up(coordinator);
      assert.equal((await state(coordinator)).chains[0].stages.length, 5, "all have a part");
      for (const temperature of [0, 0.8]) await isExact(programs.anygpu, coordinator, MIXED_TOKENS, temperature, model);
      for (const one of pages) await one.close();
      results.push({ name, ok: true });
    } catch (error) {
      results.push({ name, ok: false, message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    } finally {
      for (const child of children.reverse()) child.kill("SIGKILL");
    }
  }
  await Promise.all([chrome.close(), firefox.close()]);
  rmSync(folder, { recursive: true, force: true });
  return results;
}

/**
 * Runs a test in a browser, and ends what it starts beside it.
 *
 * @param {string} title
 * @param {"chrome" | "firefox"} name
 * @param {string} program The browser.
 * @param {(browser: import("puppeteer-core").Browser, folder: string, children: ChildProcess[]) => Promise<void>} action
 * @returns {Promise<import("./main.js").Result>}
 */
async function tried(title, name, program, action) {
  const folder = mkdtempSync(join(tmpdir(), "anygpu-pool-"));
  /** @type {ChildProcess[]} */
  const children = [];
  const browser = await launch(name, program);
  try {
    await action(browser, folder, children);
    return { name: title, ok: true };
  } catch (error) {
    return { name: title, ok: false, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  } finally {
    await browser.close();
    for (const child of children.reverse()) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Tests that a page of a browser joins a pool that only holds half of the model.
 *
 * @param {"chrome" | "firefox"} name
 * @param {string} program The browser.
 * @param {string} backend Backend of the page.
 * @param {string} origin The page's.
 * @param {Programs} programs
 */
export function joins(name, program, backend, origin, programs) {
  return tried(`${name}: a page on ${backend} is a part of a pool`, name, program, async (browser, folder, children) => {
    const coordinator = await opened(folder, children, programs, ["--seam", "f32"]);
    children.push(await works(programs.anygpu, coordinator, "cpu", MEMORY));
    const member = await page(browser, origin, coordinator, backend);
    await member.waitForFunction(() => /Running .*; the model has 6 blocks\./.test(document.getElementById("does")?.textContent ?? ""));
    await up(coordinator);
    assert.equal((await state(coordinator)).chains[0].stages.length, 2, "the page and the worker have a part each");
    await isExact(programs.anygpu, coordinator, TOKENS, 0);
    await member.click("#leave");
    await member.waitForSelector("#join", { visible: true });
    await until(coordinator, "who left is still there", ({ workers }) => workers === 1);
    assert.ok((await member.evaluate(kept)) > 0, "it kept nothing of what it fetched");
    await member.click("#join");
    await up(coordinator);
    await isExact(programs.anygpu, coordinator, TOKENS, 0.8);
  });
}

/** Returns how many chunks of models the browser keeps for pools. Runs in a page. */
async function kept() {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("anygpu-pool");
  let count = 0;
  for await (const _ of /** @type {any} */ (folder).keys()) count += 1;
  return count;
}

/**
 * Closes a tab that has a stage in the middle of an answer. Another worker takes over, and the text is that of one
 * machine.
 *
 * @param {string} chrome
 * @param {string} origin The pages'.
 * @param {Programs} programs
 */
export function closes(chrome, origin, programs) {
  return tried("chrome: a tab is closed in the middle of an answer", "chrome", chrome, async (browser, folder, children) => {
    const coordinator = await opened(folder, children, programs, ["--seam", "f32"]);
    children.push(await works(programs.anygpu, coordinator, "cpu", MEMORY));
    const serving = await page(browser, origin, coordinator, "cpu");
    await up(coordinator);
    await page(browser, origin, coordinator, "cpu");
    // A hidden page would change places with a spare.
    await serving.bringToFront();
    const own = await serving.$eval("#facts", (facts) => facts.lastElementChild?.textContent);
    const serves = (/** @type {any} */ { chains, spares }) => spares.length === 1 && chains[0].stages.some((/** @type {any} */ { worker }) => worker === own);
    await until(coordinator, "the page that is seen has no stage, or nobody stands by", serves);
    const response = await completes(coordinator, LONG, { temperature: 0, ignore_eos: true, stream: true });
    let text = "";
    let isClosed = false;
    for await (const event of events(response)) {
      text += event.choices[0]?.text ?? "";
      if (isClosed || text.length < 40) continue;
      isClosed = true;
      await serving.close();
    }
    assert.ok(isClosed, "the answer is too short");
    assert.equal(text, alone(programs.anygpu, LONG, 0, ["--ignore-eos"]));
    const took = (/** @type {any} */ { workers, lost, promoted }) => workers === 2 && lost === 1 && promoted === 1;
    await until(coordinator, "the other page did not take over", took);
  });
}

/** Returns the messages of a stream of server-sent events. @param {Response} response */
async function* events({ body }) {
  let rest = "";
  for await (const bytes of /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (body))) {
    const lines = (rest + Buffer.from(bytes).toString("utf8")).split("\n");
    rest = lines.pop() ?? "";
    const told = lines.filter((line) => line.startsWith("data: ") && !line.endsWith("[DONE]"));
    yield* told.map((line) => JSON.parse(line.slice(6)));
  }
}

/**
 * Asks from a page of another origin: with a key, and at a coordinator that does not allow pages. The coordinator's own
 * page shows the pool.
 *
 * @param {"chrome" | "firefox"} name
 * @param {string} program The browser.
 * @param {string} origin The page's.
 * @param {Programs} programs
 */
export function asks(name, program, origin, programs) {
  return tried(`${name}: a page asks a pool, if it may`, name, program, async (browser, folder, children) => {
    const lets = await opened(folder, children, programs, ["--cors", origin, "--api-key", "secret"]);
    const asking = await browser.newPage();
    asking.setDefaultTimeout(PATIENCE);
    const ask = async (/** @type {string} */ coordinator) => {
      await asking.goto(`${origin}/pool.html?coordinator=${coordinator}`);
      await asking.waitForSelector("#send", { visible: true });
      await asking.click("#send");
    };
    const says = (/** @type {string} */ id, /** @type {RegExp} */ what) => {
      const is = (/** @type {string} */ id, /** @type {string} */ what) => RegExp(what).test(document.getElementById(id)?.textContent ?? "");
      return asking.waitForFunction(is, {}, id, what.source);
    };
    await ask(lets);
    await says("notice", /wants a key/);
    await asking.type("#key", "secret");
    await asking.click("#send");
    await says("pace", /Waiting for a chain/);
    children.push(await works(programs.anygpu, lets, "cpu", "1G"));
    await says("answer", new RegExp(`${PROMPT}.{40}`));
    await asking.goto(`${lets}/`);
    await asking.waitForSelector("#chains .stage");
    await says("work", /pool work --coordinator http/);
    await ask(await opened(folder, children, programs, [], /pages join by pool\.html\?coordinator=http[^]*may not ask: --cors[^]*serving /));
    await says("notice", /--cors http/);
  });
}
