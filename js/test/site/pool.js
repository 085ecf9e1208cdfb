/** A page that joins a pool: a real server, a real coordinator, and one native worker beside it. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "./driver.js";

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

const PROMPT = "Once upon a time";
const TOKENS = 64;
/** What a native worker has room for: half of gab, as a page of 256 MB has. */
const MEMORY = "230M";
/** In milliseconds. */
const PATIENCE = 60_000;

/** Ports that are free. @param {number} count @returns {Promise<number[]>} */
async function ports(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.once("listening", resolve))));
  const found = servers.map((server) => /** @type {import("node:net").AddressInfo} */ (server.address()).port);
  for (const server of servers) server.close();
  return found;
}

/** A program that has said that it is ready. @param {string} program @param {string[]} args @param {RegExp} ready @returns {Promise<ChildProcess>} */
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

/**
 * Has a page of a browser join a pool that has half of what it takes, and ask it.
 *
 * @param {"chrome" | "firefox"} name
 * @param {string} program The browser.
 * @param {string} backend What the page computes on.
 * @param {string} origin The page's.
 * @param {{ anygpu: string, nats: string }} programs
 * @returns {Promise<import("./main.js").Result>}
 */
export async function joins(name, program, backend, origin, { anygpu, nats }) {
  const title = `${name}: a page on ${backend} is a part of a pool`;
  const folder = mkdtempSync(join(tmpdir(), "anygpu-pool-"));
  /** @type {ChildProcess[]} */
  const children = [];
  const browser = await launch(name, program);
  try {
    const [port, websocket, http] = await ports(3);
    // Servers before 2.10 cannot ask the coordinator who may connect.
    const isOld = /v2\.\d\./.test(spawnSync(nats, ["--version"], { encoding: "utf8" }).stdout);
    const how = ["--port", `${port}`, "--websocket-port", `${websocket}`, ...(isOld ? ["--shared"] : [])];
    const config = spawnSync(anygpu, ["pool", "config", ...how], { encoding: "utf8" }).stdout;
    const conf = join(folder, "nats.conf");
    writeFileSync(conf, config);
    // The comments say how the coordinator is to be called.
    const addresses = [...config.matchAll(/(--nats\S*) (\S+:\/\/\S+)/g)].flatMap(([, option, address]) => [option ?? "", address ?? ""]);
    children.push(await start(nats, ["-c", conf], /Server is ready/));
    const serve = ["pool", "serve", "--port", `${http}`, "--seam", "f32", "--cors", "*", ...addresses];
    children.push(await start(anygpu, serve, /serving /));
    const coordinator = `http://127.0.0.1:${http}`;
    const work = ["pool", "work", "--coordinator", coordinator, "--backend", "cpu", "--threads", "1", "--memory", MEMORY, "--no-keep"];
    children.push(await start(anygpu, work, / as w/));
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE);
    await page.goto(`${origin}/pool.html?coordinator=${coordinator}&backend=${backend}`);
    await page.waitForSelector("#join", { visible: true });
    await page.select("#memory", "0.25");
    await page.click("#join");
    await page.waitForFunction(() => /It has .*; the model has 6 blocks\./.test(document.getElementById("does")?.textContent ?? ""));
    const state = async () => (await fetch(`${coordinator}/state.json`)).json();
    for (let looks = 0; !(await state()).serves; looks += 1) {
      assert.ok(looks < 600, "no chain is up");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.equal((await state()).chains[0].stages.length, 2, "the page and the worker have a part each");
    const request = { prompt: PROMPT, max_tokens: TOKENS };
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${coordinator}/v1/completions`, { method: "POST", headers, body: JSON.stringify(request) });
    const { choices } = await response.json();
    const alone = ["generate", "--backend", "cpu", "--prompt", PROMPT, "--max-tokens", `${TOKENS}`, "--json"];
    assert.equal(choices[0].text, JSON.parse(spawnSync(anygpu, alone, { encoding: "utf8" }).stdout).text);
    await page.click("#leave");
    await page.waitForSelector("#join", { visible: true });
    for (let looks = 0; (await state()).workers > 1; looks += 1) {
      assert.ok(looks < 100, "who left is still there");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return { name: title, ok: true };
  } catch (error) {
    return { name: title, ok: false, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  } finally {
    await browser.close();
    for (const child of children.reverse()) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}
