/** Starts browsers, and acts like a visitor in them. */

import puppeteer from "puppeteer-core";

const CHROMIUM = ["--no-sandbox", "--enable-unsafe-swiftshader", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
const FIREFOX = {
  "webgl.force-enabled": true,
  "webgl.forbid-software": false,
  "dom.webgpu.enabled": true,
  "gfx.webgpu.ignore-blocklist": true,
};

/**
 * @param {"chrome" | "firefox"} name
 * @param {string} program
 */
export function launch(name, program) {
  const own = name === "chrome" ? { args: CHROMIUM } : { extraPrefsFirefox: FIREFOX };
  return puppeteer.launch({ browser: name, executablePath: program, headless: true, protocolTimeout: 120_000, ...own });
}

/** Time limit of each action, in milliseconds; machines are busy. */
const PATIENCE = 60_000;

/**
 * Opens the page with the state of a query.
 *
 * @param {import("puppeteer-core").BrowserContext} context
 * @param {string} origin
 * @param {string[]} errors Gets errors that the page does not catch.
 */
export async function open(context, origin, errors, query = "") {
  const page = await context.newPage();
  page.on("pageerror", (error) => errors.push(error instanceof Error ? (error.stack ?? error.message) : String(error)));
  await page.setViewport({ width: 1280, height: 860 });
  page.setDefaultTimeout(PATIENCE);
  await page.goto(`${origin}/index.html${query}`);
  return page;
}
