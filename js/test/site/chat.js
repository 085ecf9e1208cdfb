/** Tests of the chat. */

import assert from "node:assert/strict";
import { press, ready, seen, still, texts } from "./visitor.js";

/** @import { Site } from "./main.js" */

const CHAT = "?tab=chat&backend=cpu&model=talker.gguf&temperature=0&max_tokens=20";
const TURNS = "#messages .text";

/** Markdown with parts that must stay text. */
const HOSTILE = [
  "## A title\n\nIt is **bold**, and `code`.\n\n- one\n- two\n\n<script>window.harmed = true</script>",
  "<img src=x onerror='window.harmed = true'> [a link](https://example.org) [no link](javascript:harmed=true)",
  "![a picture](https://example.org/picture.png)\n\n```html\n<b>not bold</b>\n```\n\n|a|b|\n|-|-|\n|1|2|",
].join("\n\n");

/** Regenerates the last answer, and waits until the old one is gone: a new one may be there at once. @param {import("puppeteer-core").Page} page */
async function regenerate(page) {
  const old = await page.$("#messages li:last-child");
  await press(page, "Regenerate");
  await page.waitForFunction((node) => !node?.isConnected, {}, old);
}

export default {
  "a conversation is led, stopped, changed, given again, and kept": async (/** @type {Site} */ { open }) => {
    const page = await open(CHAT);
    await ready(page);
    await press(page, "Why is the sky blue?");
    await seen(page, "#messages .does .number", /20 tokens/);
    const [, first] = await texts(page, TURNS);
    assert.ok(first && first.length > 20, first);
    // Greedy decoding, so that the same answer comes again.
    await regenerate(page);
    await seen(page, "#messages .does .number", /20 tokens/);
    assert.deepEqual(await texts(page, TURNS), ["Why is the sky blue?", first]);
    // Edits the question, so another one takes its place.
    await press(page, "Edit");
    await page.$eval(".edit textarea", (field) => (field.value = "Once upon a time"));
    await press(page, "Ask again");
    await seen(page, TURNS, /^Once/);
    await seen(page, "#messages .does .number", /20 tokens/);
    await still(page);
    const changed = await texts(page, TURNS);
    assert.equal(changed.length, 2);
    assert.notEqual(changed[1], first);
    // A long answer that is stopped.
    await page.$eval('[name="max_tokens"]', (field) => (field.value = "2000"));
    await page.type("#message", "The little dragon");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll("#messages .text")[3]?.textContent);
    await press(page, "Stop");
    await still(page);
    await seen(page, "#messages li:last-child .number", /stopped/);
    const before = await texts(page, TURNS);
    assert.equal(before.length, 4);
    await page.reload();
    await ready(page);
    // A stored answer is drawn twice: before the parser is loaded, and with it.
    await page.waitForSelector("#messages li:last-child .text:not(.plain)");
    assert.deepEqual(await texts(page, TURNS), before);
    await press(page, "New chat");
    assert.deepEqual(await texts(page, TURNS), []);
  },

  "what a conversation begins with is kept, and counts": async (/** @type {Site} */ { open }) => {
    const page = await open(CHAT);
    await ready(page);
    await page.click("#system-fold summary");
    await page.type("#system", "Tom went to the park in the rain with Anna.");
    await page.type("#message", "Then");
    await page.keyboard.press("Enter");
    await seen(page, "#messages .does .number", /20 tokens/);
    const [, led] = await texts(page, TURNS);
    await page.reload();
    await ready(page);
    assert.equal(await page.$eval("#system", (field) => field.value), "Tom went to the park in the rain with Anna.");
    await page.$eval("#system", (field) => {
      field.value = "";
      field.dispatchEvent(new Event("change"));
    });
    await regenerate(page);
    await seen(page, "#messages .does .number", /20 tokens/);
    assert.notEqual((await texts(page, TURNS))[1], led);
    await press(page, "New chat");
  },

  "a second visit shows the backends and keeps the address": async (/** @type {Site} */ { open }) => {
    // The address has no backend: selection's stored result is used.
    const query = "?tab=chat&model=talker.gguf&temperature=0&max_tokens=8";
    const page = await open(query);
    await ready(page);
    const first = await page.$$eval("#ladder li strong", (names) => names.map(({ firstChild }) => firstChild?.textContent));
    const other = await open(query);
    await ready(other);
    await seen(other, "#ladder .chosen", /matvec/);
    assert.deepEqual(await other.$$eval("#ladder li strong", (names) => names.map(({ firstChild }) => firstChild?.textContent)), first);
    assert.deepEqual(await texts(other, "#ladder .waiting, #ladder .trying"), []);
    const state = new URLSearchParams(new URL(other.url()).hash.slice(1));
    assert.deepEqual([state.get("model"), state.get("backend")], ["talker.gguf", "auto"]);
    await seen(other, "#chat-empty h2", /Chat with talker/);
  },

  "two tabs have a conversation each": async (/** @type {Site} */ { open }) => {
    const ask = async (/** @type {import("puppeteer-core").Page} */ page, /** @type {string} */ text) => {
      await page.bringToFront();
      await page.type("#message", text);
      await page.keyboard.press("Enter");
      await seen(page, "#messages .does .number", /20 tokens/);
      await still(page);
    };
    const one = await open(CHAT);
    await ready(one);
    await ask(one, "The dragon");
    const mine = await texts(one, TURNS);
    const other = await open(CHAT);
    await ready(other);
    await seen(other, "#chat-empty p", /Your other conversation is open in another tab\./);
    assert.deepEqual(await texts(other, TURNS), []);
    await ask(other, "The princess");
    const theirs = await texts(other, TURNS);
    for (const [page, turns] of /** @type {const} */ ([[one, mine], [other, theirs]])) {
      await page.bringToFront();
      await page.reload();
      await ready(page);
      await page.waitForSelector("#messages li:last-child .text:not(.plain)");
      assert.deepEqual(await texts(page, TURNS), turns);
    }
    // A new chat in one tab does not affect the other.
    await press(other, "New chat");
    await one.bringToFront();
    await one.reload();
    await ready(one);
    await one.waitForSelector("#messages li:last-child .text:not(.plain)");
    assert.deepEqual(await texts(one, TURNS), mine);
    // A tab that opens after the first one was closed finds its conversation.
    await one.close();
    const next = await open(CHAT);
    await ready(next);
    await next.waitForSelector("#messages li:last-child .text:not(.plain)");
    assert.deepEqual(await texts(next, TURNS), mine);
  },

  "texts run from right to left where their words do": async (/** @type {Site} */ { open }) => {
    const page = await open(CHAT);
    await ready(page);
    const turns = [
      { role: "user", content: "ما هي عاصمة فرنسا؟" },
      { role: "assistant", content: "# عنوان\n\nעיר הבירה היא פריז.\n\n- واحد\n- اثنان\n\nIn English: Paris.\n\n```\nlet a = 1;\n```" },
    ];
    await page.evaluate((turns) => localStorage.setItem("anygpu.chat", turns), JSON.stringify(turns));
    await page.reload();
    await page.waitForSelector("#messages pre");
    const directions = (/** @type {string} */ selector) =>
      page.$$eval(selector, (found) => found.map((node) => `${node.localName} ${getComputedStyle(node).direction}`));
    assert.deepEqual(await directions("#messages .user .text"), ["p rtl"]);
    assert.deepEqual(await directions("#messages .assistant .text > *"), ["h3 rtl", "p rtl", "ul rtl", "p ltr", "pre ltr"]);
    await page.type("#message", "שלום");
    assert.deepEqual(await directions("#message"), ["textarea rtl"]);
    await page.evaluate(() => document.getElementById("tab-story")?.click());
    await page.$eval("#opening", (opening) => (opening.textContent = "في يوم من الأيام"));
    assert.deepEqual(await directions("#story-text"), ["article rtl"]);
  },

  "of a conversation that does not fit the newest turns are kept": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=models");
    const kept = (/** @type {[string, number][]} */ turns) =>
      page.evaluate(async (turns) => {
        const { keep, takePlace, turnsKept } = await import(`${location.origin}/kept.js`);
        await takePlace();
        keep(turns.map(([role, length], index) => ({ role, content: String(index).padEnd(length, "\n") })));
        const found = turnsKept().map((/** @type {{ content: string }} */ { content }) => content.trim());
        const { length } = localStorage.getItem("anygpu.chat") ?? "";
        localStorage.clear();
        return { found, fits: length <= 1e6 };
      }, turns);
    /** @type {[string, number][]} */
    const turns = Array.from({ length: 6 }, (_, index) => [index % 2 === 0 ? "user" : "assistant", 100]);
    assert.deepEqual(await kept(turns), { found: ["0", "1", "2", "3", "4", "5"], fits: true });
    // A line break takes two characters in JSON. The stored part begins with a question, though the answer before it
    // would fit.
    turns[2] = ["user", 490_000];
    assert.deepEqual(await kept(turns), { found: ["0", "1", "2", "3", "4", "5"], fits: true });
    turns[4] = ["user", 20_000];
    assert.deepEqual(await kept(turns), { found: ["4", "5"], fits: true });
    turns[5] = ["assistant", 500_000];
    assert.deepEqual(await kept(turns), { found: [], fits: true });
  },

  "Markdown becomes elements, and nothing else does": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=chat&backend=cpu");
    const turns = [{ role: "user", content: "<b>bold</b>" }, { role: "assistant", content: HOSTILE }];
    await page.evaluate((turns) => localStorage.setItem("anygpu.chat", turns), JSON.stringify(turns));
    await page.reload();
    await page.waitForSelector("#messages .assistant .text h4");
    const found = await page.$$eval("#messages .text *", (all) => [...new Set(all.map(({ localName }) => localName))].sort());
    assert.deepEqual(found, ["a", "code", "div", "h4", "li", "p", "pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"]);
    assert.deepEqual(await page.$$eval("#messages a", (all) => all.map(({ href, rel }) => [href, rel])), [
      ["https://example.org/", "noopener noreferrer"],
    ]);
    assert.equal(await page.evaluate(() => "harmed" in window), false);
    assert.match((await texts(page, TURNS)).join(""), /<b>bold<\/b>.*<script>window\.harmed = true<\/script>/s);
    await page.evaluate(() => localStorage.clear());
  },

  "Markdown that grows keeps what has not changed": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=models");
    const outcome = await page.evaluate(async () => {
      const { drawer, prepare } = await import(`${location.origin}/markdown.js`);
      await prepare();
      const [grown, whole] = [document.createElement("div"), document.createElement("div")];
      const text = "# One\n\nA *short* text.\n\n1. a\n2. b\n\n```\nlet a;\n```\n\nThe **end** of it.";
      const draw = drawer(grown);
      /** @type {Element | null} */
      let title = null;
      for (let length = 1; length <= text.length; length += 1) {
        draw(text.slice(0, length));
        if (length === 20) title = grown.firstElementChild;
      }
      drawer(whole)(text);
      return { same: grown.innerHTML === whole.innerHTML, kept: title === grown.firstElementChild, html: grown.innerHTML };
    });
    assert.ok(outcome.same && outcome.kept, outcome.html);
  },

  "a conversation is kept where the model cannot chat, and goes on with one that can": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=chat&backend=cpu&temperature=0&max_tokens=20");
    const turns = [{ role: "user", content: "Hello" }, { role: "assistant", content: "Hello yourself" }];
    await page.evaluate((turns) => localStorage.setItem("anygpu.chat", turns), JSON.stringify(turns));
    await page.reload();
    await ready(page);
    await seen(page, "#chat-empty", /gab is a completion model and cannot chat\..*Your conversation is kept, and continues with the model that you choose\./);
    assert.deepEqual(await texts(page, TURNS), ["Hello", "Hello yourself"]);
    await page.type("#chat-empty form input", "talker.gguf");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /** @type {HTMLElement} */ (document.getElementById("chat-empty")).hidden);
    await page.type("#message", "The little dragon");
    await page.keyboard.press("Enter");
    await seen(page, "#messages li:last-child .does .number", /20 tokens/);
    await still(page);
    assert.deepEqual((await texts(page, TURNS)).slice(0, 3), ["Hello", "Hello yourself", "The little dragon"]);
    await press(page, "New chat");
  },

  "a model that only tells stories is no dead end": async (/** @type {Site} */ { open }) => {
    const page = await open("?tab=chat&backend=cpu");
    await ready(page);
    await seen(page, "#chat-empty h2", /Choose a chat model/);
    await page.type("#chat-empty form input", "talker.gguf");
    await page.keyboard.press("Enter");
    await seen(page, "#chat-empty h2", /Chat with talker/);
    // A model that cannot be loaded is explained, and the previous one stays.
    await page.evaluate(() => document.getElementById("tab-models")?.click());
    await page.waitForSelector("#models form input");
    await page.type("#models form input", "absent.gguf");
    await page.keyboard.press("Enter");
    await seen(page, "#notice", /The model could not be downloaded\./);
    await seen(page, "#models .card", /talker/);
  },
};
