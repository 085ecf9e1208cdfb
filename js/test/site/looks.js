/**
 * Checks of every state of the page: no findings of axe, visible borders, enough room on a phone, and large enough
 * touch targets.
 */

import assert from "node:assert/strict";
import { readFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { press, ready, seen } from "./visitor.js";

/** @import { Page } from "puppeteer-core" */
/** @import { Site } from "./main.js" */

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Folder for pictures of all states, if somebody wants to look at them. */
const PICTURES = process.env.ANYGPU_PICTURES;
const TURNS = [
  { role: "user", content: "What can you do?" },
  { role: "assistant", content: "# A title\n\nI can **write** `code`:\n\n1. one\n2. [two](https://example.org)\n\n```\nlet a = 1;\n```\n\n|a|b|\n|-|-|\n|1|2|" },
];

/**
 * States by name, and how to reach each.
 *
 * @type {Record<string, { query: string, act?: (page: Page) => Promise<unknown> }>}
 */
const STATES = {
  share: {
    query: "?tab=story&backend=cpu&temperature=0&max_tokens=40",
    act: async (page) => {
      await seen(page, "#story-note", /40 tokens/);
      await press(page, "Share");
      await page.waitForSelector("#share canvas");
    },
  },
  think: {
    query: "?tab=story&backend=cpu&temperature=0&max_tokens=40",
    act: async (page) => {
      await seen(page, "#story-note", /40 tokens/);
      await press(page, "See it think");
      await page.waitForFunction(() => document.querySelectorAll("#told .token").length === 40);
      await seen(page, "#story-note", /40 tokens/);
    },
  },
  offer: { query: "?tab=chat&backend=cpu", act: ready },
  samples: { query: "?tab=chat&backend=cpu&model=talker.gguf", act: ready },
  chat: {
    query: "?tab=chat&backend=cpu&model=talker.gguf",
    act: async (page) => {
      await page.evaluate((turns) => localStorage.setItem("anygpu.chat", turns), JSON.stringify(TURNS));
      await page.reload();
      await page.waitForSelector("#messages pre");
      await ready(page);
      await page.click("#system-fold summary");
    },
  },
  race: { query: "?tab=race", act: (page) => page.waitForSelector("#race button") },
  models: { query: "?tab=models", act: (page) => page.waitForSelector("#models input") },
  error: {
    query: "?tab=story&backend=cpu&model=absent.gguf",
    act: (page) => seen(page, "#notice", /The model could not be downloaded/),
  },
  conformance: {
    query: "?tab=conformance",
    act: async (page) => {
      await page.waitForSelector("#conformance select");
      await page.click('#conformance input[name="webgpu"]');
      await page.click('#conformance input[name="webgl"]');
      await page.select("#conformance select", "16");
      await press(page, "Run the suite");
      await seen(page, "#conformance .row", /Run the suite.*Download/);
    },
  },
};

/** Returns the findings of axe in a page. @param {Page} page */
async function found(page) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run());
  return violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ { html, failureSummary }) => `${html} (${failureSummary})`).join("\n")}`);
}

/** Makes the page believe that it has a touch screen. In browsers without such a setting only its width counts. @param {Page} page */
async function finger(page) {
  const session = await page.createCDPSession().catch(() => null);
  await session?.send("Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: 5 });
}

/**
 * Returns elements that are wider than the page or too small for a finger; see WCAG 2.5.5 for links in a line of text.
 *
 * @param {Page} page
 */
const cramped = (page) =>
  page.evaluate(() => {
    const wide = document.documentElement.scrollWidth > innerWidth ? [`the page is ${document.documentElement.scrollWidth} px wide`] : [];
    const small = [...document.querySelectorAll("button, summary, select, textarea, input:not([type=radio], [type=checkbox]), .switch label")]
      .filter((node) => node.checkVisibility({ visibilityProperty: true }))
      .map((node) => ({ node, box: node.getBoundingClientRect() }))
      .filter(({ box }) => box.height < 44 || box.width < 44)
      .map(({ node, box }) => `${node.outerHTML.slice(0, 120)} is ${box.width.toFixed(0)} by ${box.height.toFixed(0)} px`);
    return matchMedia("(pointer: coarse)").matches ? [...wide, ...small] : wide;
  });

/**
 * Returns fields whose border is hardly visible: WCAG 1.4.11 asks for a contrast of 3 to 1 with its surroundings.
 *
 * @param {Page} page
 */
const faint = (page) =>
  page.evaluate(() => {
    const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d", { willReadFrequently: true }));
    /** Returns the lightness of colours, each painted over those before. @param {string[]} colours */
    const light = (colours) => {
      for (const colour of colours) {
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
      }
      const linear = (/** @type {number} */ value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      const [red = 0, green = 0, blue = 0] = [...pen.getImageData(0, 0, 1, 1).data].map((value) => linear(value / 255));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    /** Returns the backgrounds behind a node, the farthest first. @param {Element | null} node @returns {string[]} */
    const behind = (node) => (node === null ? ["white"] : [...behind(node.parentElement), getComputedStyle(node).backgroundColor]);
    return [...document.querySelectorAll("select, textarea, input:not([type=radio], [type=checkbox], [type=range])")]
      .filter((node) => node.checkVisibility({ visibilityProperty: true }))
      .map((node) => {
        const around = behind(node.parentElement);
        const { borderTopColor, borderTopWidth } = getComputedStyle(node);
        const [one = 0, other = 0] = [light(around), light([...around, borderTopColor])].sort((a, b) => b - a);
        return { node, ratio: Number.parseFloat(borderTopWidth) >= 1 ? (one + 0.05) / (other + 0.05) : 1 };
      })
      .filter(({ ratio }) => ratio < 3)
      .map(({ node, ratio }) => `${node.outerHTML.slice(0, 120)} has a border of ${ratio.toFixed(2)} to 1`);
  });

/** @type {Record<string, (site: Site) => Promise<void>>} */
const flows = {
  "on a phone the report and the figures are folded, and open by a tap": async ({ open }) => {
    const page = await open("?tab=models");
    await page.setViewport({ width: 390, height: 844 });
    await page.goto(page.url().replace(/[?#].*$/, "?tab=story&backend=cpu&max_tokens=4"));
    await seen(page, "#story-note", /4 tokens/);
    const folds = () => page.$$eval("#report, #figures-fold, #settings", (all) => all.map((fold) => /** @type {HTMLDetailsElement} */ (fold).open));
    assert.deepEqual(await folds(), [false, false, false]);
    // The closed lines show what matters: the backend, and the rate.
    await seen(page, "#report summary", /Running on the CPU/);
    await seen(page, "#figures-fold summary", /tokens per second/);
    const told = await page.$eval("#story-text", (text) => text.getBoundingClientRect().top);
    assert.ok(told < 500, `the story begins at ${told} px`);
    await page.click("#figures-fold summary");
    assert.deepEqual(await folds(), [false, true, false]);
    assert.ok(await page.$eval("#figures dd", (cell) => cell.checkVisibility()));
    assert.deepEqual(await cramped(page), []);
  },
};
for (const [name, { query, act }] of Object.entries(STATES)) {
  flows[`the state ${name}: axe, light and dark, and a phone`] = async ({ open, browser }) => {
    const page = await open(query);
    await act?.(page);
    const picture = async (/** @type {string} */ how) => {
      if (!PICTURES) return;
      mkdirSync(PICTURES, { recursive: true });
      await page.screenshot({ path: join(PICTURES, `${browser}-${name}-${how}.png`) });
    };
    for (const how of ["light", "dark"]) {
      if (how === "dark") await page.click("#theme");
      await picture(how);
      assert.deepEqual(await found(page), [], how);
      assert.deepEqual(await faint(page), [], how);
    }
    await page.setViewport({ width: 390, height: 844 });
    await finger(page);
    await picture("phone");
    assert.deepEqual(await found(page), [], "on a phone");
    assert.deepEqual(await cramped(page), []);
  };
}

export default flows;
