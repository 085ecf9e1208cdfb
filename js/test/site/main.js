/** Runs the page as people use it, in Chromium and Firefox. */

import chat from "./chat.js";
import { launch, open } from "./driver.js";
import looks from "./looks.js";
import story from "./story.js";

/** @import { Browser, Page } from "puppeteer-core" */

/** @typedef {{ browser: "chrome" | "firefox", open: (query?: string) => Promise<Page> }} Site */
/** @typedef {{ name: string, ok: boolean, message?: string }} Result */

/** @type {Record<string, (site: Site) => Promise<void>>} */
const FLOWS = { ...story, ...chat, ...looks };
/**
 * Flows to run in a second browser, which may behave differently there. The others only depend on the page, and take
 * time.
 */
const SECOND = /backends race|passed on|led, stopped|state chat|second visit|two tabs|right to left/;

/**
 * Runs all flows in a browser. Each page has a profile of its own; an error that it does not catch fails the flow.
 *
 * @param {"chrome" | "firefox"} name
 * @param {string} program
 * @param {string} origin
 * @returns {Promise<Result[]>}
 */
export async function flows(name, program, origin) {
  const browser = await launch(name, program);
  const results = [];
  for (const [title, flow] of Object.entries(FLOWS)) {
    if (name === "firefox" && !process.env.ANYGPU_PICTURES && !SECOND.test(title)) continue;
    const begin = Date.now();
    const context = await browser.createBrowserContext();
    /** @type {string[]} */
    const errors = [];
    try {
      await flow({ browser: name, open: (query) => open(context, origin, errors, query) });
      if (errors.length > 0) throw new Error(errors.join("\n"));
      results.push({ name: `${name}: ${title} (${((Date.now() - begin) / 1000).toFixed(1)} s)`, ok: true });
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      results.push({ name: `${name}: ${title}`, ok: false, message: [message, ...errors].join("\n") });
    }
    await context.close();
  }
  await browser.close();
  return results;
}
