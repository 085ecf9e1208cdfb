// The page stays responsive while an engine works, and finds it again when it comes back.

import { beat, options, say } from "../run.js";
import { assert, load, speaks } from "../expect.js";

/** How long the engine may keep the page from drawing, in milliseconds. */
const STALL = 50;

/** The longest times between two frames while something goes on, longest first. */
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

/** Goes away and comes back. Resolves only if the page was kept meanwhile; otherwise it begins anew. */
function goAway() {
  return new Promise((resolve) => {
    addEventListener("pageshow", ({ persisted }) => persisted && resolve(), { once: true });
    location.assign("/test/away.html");
  });
}

export default {
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
    // Shaders are compiled, and caches filled.
    await generate();
    const idle = await gaps(() => new Promise((resolve) => setTimeout(resolve, 2000)));
    const busy = await gaps(generate);
    await engine.dispose();
    const show = (list) => list.slice(0, 3).map((ms) => ms.toFixed(0)).join(", ");
    await say(`longest gaps in ms: ${show(idle)} of ${idle.length} idle, ${show(busy)} of ${busy.length} generating`);
    assert(busy.length > 10, `only ${busy.length} frames were seen`);
    assert(busy[0] - idle[0] <= STALL, `a gap of ${busy[0].toFixed(0)} ms, idle ${idle[0].toFixed(0)} ms`);
  },
};
