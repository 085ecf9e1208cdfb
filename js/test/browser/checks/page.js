// Checks of the page: it stays responsive while an engine works, still has it after a visit elsewhere, and keeps its
// conversation.

import { beat, modelNamed, options, say, sleep } from "../run.js";
import { assert, equal, load, speaks } from "../expect.js";

/** Returns the times between two frames while `work` runs, longest first. */
async function gaps(work) {
  const found = [];
  let last = performance.now();
  let going = true;
  const frame = (now) => {
    found.push(now - last);
    last = now;
    if (going) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  await work();
  going = false;
  return found.sort((a, b) => b - a);
}

/**
 * Goes away and comes back. Resolves only if the page was in the back-forward cache meanwhile; otherwise the page is
 * loaded again.
 */
function goAway() {
  return new Promise((resolve) => {
    addEventListener("pageshow", ({ persisted }) => persisted && resolve(), { once: true });
    location.assign("/test/away.html");
  });
}

/** Opens the real page with a chat model in a frame, with greedy and short answers. */
async function openPage(model) {
  const query = { tab: "chat", backend: options.backend, model, temperature: 0, max_tokens: 24 };
  const frame = document.createElement("iframe");
  frame.src = `/index.html?${new URLSearchParams(query)}`;
  document.body.append(frame);
  await new Promise((resolve) => (frame.onload = resolve));
  const find = (selector) => [...frame.contentDocument.querySelectorAll(selector)];
  const until = async (what, condition) => {
    for (let waited = 0; !condition(); waited += 100) {
      assert(waited < 200_000, `waited for ${what}`);
      beat();
      await sleep(100);
    }
  };
  const turns = () => find("#messages .text").map(({ textContent }) => textContent);
  const ask = (text) => {
    find("#message")[0].value = text;
    find("#composer")[0].requestSubmit();
  };
  const isBusy = () => find('#messages [aria-busy="true"]').length > 0;
  // The composer is hidden until the chat is loaded and the model can chat.
  const isReady = () => find("#composer")[0]?.hidden === false && find("#send")[0].disabled === false;
  return { until, turns, ask, isBusy, isReady, find, close: () => frame.remove() };
}

export default {
  "a conversation outlives the page": async () => {
    if (options.backend !== "cpu") return "the page does the same on all backends, and the CPU is the quickest here";
    const model = `/files/${modelNamed("smollm2").file}`;
    const { ok } = await fetch(model, { method: "HEAD" });
    if (!ok) return "there is no model that chats; `cargo xtask models` fetches it";
    const [first, second] = ["Name two colours.", "And two animals."];
    let page = await openPage(model);
    await page.until("the model", page.isReady);
    page.find("#new-chat")[0].click();
    // The first visit is not interrupted.
    page.ask(first);
    await page.until("an answer", () => page.turns().length === 2 && !page.isBusy());
    page.ask(second);
    await page.until("an answer", () => page.turns().length === 4 && !page.isBusy());
    const undisturbed = page.turns();
    page.find("#new-chat")[0].click();
    await page.until("the conversation to be forgotten", () => page.turns().length === 0);
    await sleep(300);
    // The second visit is closed in the middle of the second answer.
    page.ask(first);
    await page.until("an answer", () => page.turns().length === 2 && !page.isBusy());
    page.ask(second);
    await page.until("the beginning of an answer", () => (page.turns()[3] ?? "").length > 8);
    page.close();
    page = await openPage(model);
    await page.until("the rest of the answer", () => page.turns().length === 4 && page.isReady() && !page.isBusy());
    equal(JSON.stringify(page.turns()), JSON.stringify(undisturbed), "the conversation");
    page.find("#new-chat")[0].click();
    await page.until("the conversation to be forgotten", () => page.turns().length === 0);
    await sleep(300);
    page.close();
    page = await openPage(model);
    await page.until("the model", page.isReady);
    equal(page.turns().length, 0, "the number of turns");
    page.close();
  },

  "a page that goes away and comes back": async () => {
    if (options.browser !== "chromium" || options.version !== null) return "pages are sure to be kept in Chromium only";
    if (sessionStorage.getItem("away")) throw new Error("the page was not kept while it was away");
    sessionStorage.setItem("away", "true");
    const engine = await load();
    const answer = speaks(engine);
    await goAway();
    await answer;
    await speaks(engine);
    await engine.dispose();
    sessionStorage.removeItem("away");
  },

  "a page that is told that it comes back": async () => {
    const engine = await load();
    await speaks(engine);
    const answer = speaks(engine);
    dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }));
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
    document.dispatchEvent(new Event("resume"));
    await answer;
    await speaks(engine);
    await engine.dispose();
  },

  "frames come on time while generating": async () => {
    if (options.browser !== "chromium") return "frames are timed in Chromium only";
    const engine = await load();
    const generate = async () => {
      const request = { prompt: "Once upon a time", max_tokens: 48, ignore_eos: true, stream: true };
      for await (const chunk of engine.completions.create(request)) beat();
    };
    // Compiles shaders, and fills caches.
    await generate();
    const idle = await gaps(() => new Promise((resolve) => setTimeout(resolve, 2000)));
    const busy = await gaps(generate);
    await engine.dispose();
    const show = (list) => list.slice(0, 3).map((ms) => ms.toFixed(0)).join(", ");
    await say(`longest gaps in ms: ${show(idle)} of ${idle.length} idle, ${show(busy)} of ${busy.length} generating`);
    // The length of the gaps depends on the machine and its other programs, so it is reported and not checked.
    assert(busy.length > 10, `only ${busy.length} frames were seen`);
  },
};
