/** Stories: sampled on each backend, raced, passed on. */

import assert from "node:assert/strict";
import { press, ready, seen, still, texts } from "./visitor.js";

/** @import { Site } from "./main.js" */

/** The story that stands there. @param {import("puppeteer-core").Page} page */
const story = (page) => page.$eval("#story-text", ({ textContent }) => textContent ?? "");

export default {
  "all backends race, and tell the same words, sampled with one seed": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=race&max_tokens=5&temperature=0.9&seed=11");
    await page.waitForSelector("#race button");
    await press(page, "Start the race");
    await seen(page, "#race .verdict", /^\S+ was first, after .* (All \d told the same, word for word|There was no other)\.$/);
    const there = await texts(page, "#race section:not(.absent) .told");
    assert.ok(there.length > 0 && there.every((text) => text.length > 20), there.join("\n"));
    assert.equal(new Set(there).size, 1);
    await seen(page, "#race button", /Start the race/);
  },

  "a story is passed on by a link and by a picture": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=story&backend=cpu&temperature=0.9&seed=7&max_tokens=16&prompt=The+old+dragon");
    await seen(page, "#story-note", /16 tokens by gab/);
    const told = await story(page);
    await press(page, "Share");
    const link = await page.waitForSelector("#share input");
    const address = (await link?.evaluate((field) => /** @type {HTMLInputElement} */ (field).value)) ?? "";
    const state = Object.fromEntries(new URLSearchParams(new URL(address).hash.slice(1)));
    const { tab, backend, prompt, temperature, seed, max_tokens } = state;
    assert.deepEqual({ tab, backend, prompt, temperature, seed, max_tokens }, {
      tab: "story", backend: "cpu", prompt: "The old dragon", temperature: "0.9", seed: "7", max_tokens: "16",
    });
    const picture = await page.$eval("#share canvas", (node) => {
      const canvas = /** @type {HTMLCanvasElement} */ (node);
      const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
      let inked = 0;
      for (let at = 0; at < data.length; at += 4) inked += Number(data[at] !== data[4 * 100]);
      return { type: canvas.toDataURL("image/png").slice(0, 15), width: canvas.width, height: canvas.height, inked };
    });
    assert.deepEqual([picture.type, picture.width, picture.height], ["data:image/png;", 1200, 630]);
    assert.ok(picture.inked > 10_000, `${picture.inked} pixels have words`);
    // Somebody else opens it.
    const other = await open(`?${new URL(address).hash}`);
    await ready(other);
    await seen(other, "#story-note", /16 tokens by gab, temperature 0\.9, seed 7/);
    assert.equal(await story(other), told);
    // The seed was for that story alone.
    await press(other, "Another story");
    await seen(other, "#story-note", /^$/);
    await still(other);
    await seen(other, "#story-note", /tokens by gab, temperature 0\.9/);
    assert.doesNotMatch((await texts(other, "#story-note"))[0] ?? "", /seed 7\./);
  },
};
