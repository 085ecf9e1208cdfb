/** Tests of stories: sampled on each backend, raced, shared. */

import assert from "node:assert/strict";
import { press, ready, seen, still, texts } from "./visitor.js";

/** @import { Site } from "./main.js" */

/** Returns the story that is shown. @param {import("puppeteer-core").Page} page */
const story = (page) => page.$eval("#story-text", ({ textContent }) => textContent ?? "");

/** Records the report's rungs each time that they change. @param {import("puppeteer-core").Page} page @param {() => Promise<unknown>} act */
async function ladder(page, act) {
  await page.evaluate(() => {
    const list = /** @type {HTMLElement} */ (document.getElementById("ladder"));
    const rows = () => [...list.children].map((row) => ({ rung: /** @type {HTMLElement} */ (row).dataset.rung, text: row.textContent ?? "" }));
    /** @type {any} */ (window).drawn = [];
    new MutationObserver(() => /** @type {any} */ (window).drawn.push(rows())).observe(list, { childList: true });
  });
  await act();
  return /** @type {Promise<{ rung?: string, text: string }[][]>} */ (page.evaluate(() => /** @type {any} */ (window).drawn));
}

export default {
  "rungs appear one by one while they are proven": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=story&backend=cpu&max_tokens=1");
    await ready(page);
    const drawn = await ladder(page, async () => {
      await page.click('#switch input[value="auto"]');
      await page.waitForFunction(() => document.getElementById("verdict")?.textContent?.startsWith("Trying"));
      await ready(page);
    });
    const of = (/** @type {{ rung?: string, text: string }[]} */ rows, /** @type {string} */ rung) => rows.find((row) => row.rung === rung)?.text;
    const cpu = drawn.map((rows) => of(rows, "cpu")).filter((text) => text !== undefined);
    assert.match(cpu[0] ?? "", /trying/);
    const proven = drawn.findIndex((rows) => /chosen.*per matvec/.test(of(rows, "cpu") ?? ""));
    assert.ok(proven >= 0, JSON.stringify(drawn));
    // One rung is tested while others wait, and then the next one is.
    assert.ok(drawn[proven].some(({ text }) => /not tried yet/.test(text)), JSON.stringify(drawn[proven]));
    const next = drawn.slice(proven).find((rows) => rows.some(({ rung, text }) => rung !== "cpu" && /trying/.test(text)));
    assert.ok(next, JSON.stringify(drawn));
    assert.ok(drawn[drawn.length - 1].every(({ text }) => !/(trying|not tried yet)$/.test(text)), "the report has nothing left to try");
  },

  "each word shows what else it might have been": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=story&backend=cpu&temperature=0&max_tokens=12");
    await seen(page, "#story-note", /12 tokens/);
    const told = await story(page);
    await press(page, "See it think");
    await page.waitForFunction(() => document.querySelectorAll("#told .token").length === 12);
    await still(page);
    assert.equal(await story(page), told, "the same story");
    const bars = () =>
      page.$$eval("#think li", (rows) =>
        rows.map((row) => ({ taken: row.className === "taken", percent: Number.parseFloat(row.children[2]?.textContent?.replace("< 0.1", "0") ?? "") })),
      );
    const last = await bars();
    assert.ok(last.length >= 6 && last[0]?.taken, "greedily, the likeliest is taken");
    assert.ok(last.every(({ percent }, at) => at === 0 || percent <= last[at - 1].percent), JSON.stringify(last));
    assert.ok(last.reduce((sum, { percent }) => sum + percent, 0) <= 100.5);
    // The page shows the values that the public API returns for this place.
    const honest = await page.evaluate(async () => {
      const { session } = await import(`${location.origin}/session.js`);
      const answer = await session.engine.completions.create({ prompt: document.getElementById("opening")?.textContent, max_tokens: 1, logprobs: 6 });
      return Object.values(answer.choices[0].logprobs.top_logprobs[0]).map((logprob) => 100 * Math.exp(logprob)).sort((a, b) => b - a);
    });
    await page.hover("#told .token");
    await seen(page, "#think output", /^1 of 12$/);
    const first = await bars();
    first.forEach(({ percent }, at) => assert.ok(Math.abs(percent - honest[at]) < 0.6, `${percent} ${honest[at]}`));
    // Results of kernels: a line for each block, and another picture for another word.
    const pictured = () =>
      page.$$eval("#think .passes canvas", (tiles) => tiles.map((tile) => /** @type {HTMLCanvasElement} */ (tile).toDataURL()));
    const lines = await page.$$eval("#think .passes .line > span", (names) => names.map(({ textContent }) => textContent));
    assert.deepEqual([lines[0], lines[1], lines[lines.length - 1]], ["before", "block 0", "after"]);
    const ofFirst = await pictured();
    assert.ok(ofFirst.length > 3 * lines.length - 6, `${ofFirst.length} tiles in ${lines.length} lines`);
    assert.ok(new Set(ofFirst).size > ofFirst.length - 2, "tiles look alike");
    await page.hover('#told [data-place="7"]');
    await seen(page, "#think output", /^8 of 12$/);
    await page.waitForFunction(
      (tile) => /** @type {HTMLCanvasElement} */ (document.querySelector("#think .passes canvas")).toDataURL() !== tile,
      {},
      ofFirst[0],
    );
    const ofEighth = await pictured();
    assert.ok(ofEighth.every((tile, at) => tile !== ofFirst[at]), "tiles that stay as they are");
    await page.hover("#told .token");
    await seen(page, "#think output", /^1 of 12$/);
    // By keyboard.
    await page.focus('#think input[type="range"]');
    await page.keyboard.press("ArrowRight");
    await seen(page, "#think output", /^2 of 12$/);
    // With reduced motion the bars do not follow.
    await page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
    const moved = await page.evaluate(async () => {
      const places = new Set();
      const output = /** @type {HTMLElement} */ (document.querySelector("#think output"));
      new MutationObserver(() => places.add(output.textContent?.split(" ")[0])).observe(output, { childList: true });
      document.getElementById("story-think")?.click();
      document.getElementById("story-think")?.click();
      await new Promise((resolve) => setTimeout(resolve, 100));
      while (document.querySelectorAll("#told .token").length < 12) await new Promise((resolve) => setTimeout(resolve, 20));
      await new Promise((resolve) => setTimeout(resolve, 200));
      return [...places];
    });
    assert.ok(moved.length <= 2, JSON.stringify(moved));
    await press(page, "See it think");
    assert.equal(await page.$eval("#think", (box) => box.hidden), true);
  },

  "all backends race, and tell the same words, sampled with one seed": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=race&max_tokens=5&temperature=0.9&seed=11");
    await page.waitForSelector("#race button");
    await page.evaluate(() => {
      /** Counts of each lane, each time that they were drawn. @type {string[][]} */
      const counted = [...document.querySelectorAll("#race section")].map((lane) => {
        /** @type {string[]} */
        const texts = [];
        const told = (/** @type {MutationRecord[]} */ records) => texts.push(...records.flatMap(({ addedNodes }) => [...addedNodes].map(({ textContent }) => textContent ?? "")));
        new MutationObserver(told).observe(/** @type {Element} */ (lane.querySelector("progress + .number")), { childList: true });
        return texts;
      });
      /** @type {any} */ (window).counted = counted;
    });
    await press(page, "Start the race");
    await seen(page, "#race .verdict", /^\S+ finished first, in .* (All \d gave identical text|It was the only one)\.$/);
    const there = await texts(page, "#race section:not(.absent) .told");
    assert.ok(there.length > 0 && there.every((text) => text.length > 20), there.join("\n"));
    assert.equal(new Set(there).size, 1);
    // Tokens were counted while they came, with the rate beside them.
    const counted = /** @type {string[][]} */ (await page.evaluate(() => /** @type {any} */ (window).counted));
    const live = counted.map((texts) => texts.filter((text) => / of 5 tokens$/.test(text))).filter((texts) => texts.length > 0);
    assert.deepEqual(live, there.map(() => [1, 2, 3, 4, 5].map((count) => `${count} of 5 tokens`)));
    assert.ok((await texts(page, "#race section:not(.absent) .pace")).every((pace) => Number.parseFloat(pace) > 0));
    assert.ok(await page.$$eval("#race section:not(.absent) progress", (all) => all.every(({ value }) => value === 5)));
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
    // Opens the shared link in another profile.
    const other = await open(`?${new URL(address).hash}`);
    await ready(other);
    await seen(other, "#story-note", /16 tokens by gab, temperature 0\.9, seed 7/);
    assert.equal(await story(other), told);
    // The seed was only for that story.
    await press(other, "Another story");
    await seen(other, "#story-note", /tokens by gab, temperature 0\.9(?!, seed 7\b)/);
  },
};
