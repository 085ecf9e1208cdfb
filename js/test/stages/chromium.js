/** Opens pages in Chromium that post their results. */

import { spawn } from "node:child_process";
import { createReadStream, existsSync, statSync } from "node:fs";
import http from "node:http";
import { extname, join } from "node:path";
import { CHROMIUM, STORY, WORK, talker } from "./common.js";

/** @import { Result } from "./common.js" */

/** Time limit of the run in the browser, in milliseconds. */
const LIMIT = 240_000;

const TYPES = /** @type {Record<string, string>} */ ({
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
});

/** Model files that are served in every folder. @type {Record<string, () => string>} */
const MODELS = { "model.gguf": () => STORY, "talker.gguf": talker };

/**
 * @typedef {object} Site
 * @property {string} folder Folder to serve, also under `/some/path/`, as some hosts do.
 * @property {Record<string, string>} [files] Files of other folders, by their paths.
 * @property {boolean} [open] Whether it lets pages of other origins read what it has; but for `/closed/`.
 */

/**
 * Serves a folder, with the built-in model as `model.gguf`, and with a chat template as `talker.gguf`.
 *
 * @param {Site} site
 * @param {(body: string) => void | Promise<void>} [onPost] Answered when it is done.
 */
export async function serve({ folder, files = {}, open = false }, onPost) {
  const server = http.createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    if (request.method === "POST") {
      let body = "";
      request.on("data", (data) => (body += data));
      request.on("end", async () => {
        await onPost?.(body);
        response.end();
      });
      return;
    }
    if (open && !path.startsWith("/closed/")) {
      response.setHeader("Access-Control-Allow-Origin", "*");
      response.setHeader("Access-Control-Allow-Headers", "*");
    }
    const name = path.replace(/^\/(some\/path\/)?/, "").replace(/(^|\/)$/, "$1index.html");
    const model = MODELS[name.split("/").pop() ?? ""];
    const file = files[name] ?? model?.() ?? join(folder, name);
    if (path.includes("..") || !existsSync(file) || !statSync(file).isFile()) return response.writeHead(404).end();
    send(file, request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${port}`, close };
}

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

let profiles = 0;

/**
 * Opens a page in Chromium.
 *
 * @param {string} url
 * @param {Promise<string>} report Report that the page posts in the end.
 * @returns {Promise<Result[]>}
 */
export async function visit(url, report) {
  // The profile stays until the next run, since the browser writes to it for some time after its end.
  const profile = join(WORK, `profile-${(profiles += 1)}`);
  const flags = ["--headless=new", "--no-sandbox", "--no-first-run", "--enable-unsafe-swiftshader", `--user-data-dir=${profile}`];
  const browser = spawn(CHROMIUM, [...flags, url], { stdio: "ignore" });
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const ended = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no report after ${LIMIT} ms`)), LIMIT);
    browser.on("error", (error) => reject(new Error(`cannot start Chromium: ${error.message}; set CHROMIUM`)));
    browser.on("exit", (code) => reject(new Error(`Chromium ended early with ${code}`)));
  });
  try {
    return JSON.parse(await Promise.race([report, ended]));
  } finally {
    clearTimeout(timer);
    browser.removeAllListeners("exit");
    browser.kill();
  }
}

/** Returns a promise with its resolver. */
export function once() {
  let come = (/** @type {string} */ _) => {};
  const promise = /** @type {Promise<string>} */ (new Promise((resolve) => (come = resolve)));
  return { promise, come };
}

/**
 * Serves a folder and opens it in Chromium.
 *
 * @param {string} folder
 * @returns {Promise<Result[]>}
 */
export async function inChromium(folder) {
  const { promise, come } = once();
  const site = await serve({ folder }, come);
  try {
    return await visit(`${site.origin}/some/path/`, promise);
  } finally {
    site.close();
  }
}
