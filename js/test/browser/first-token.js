// In the real page: the time from navigation until the first token is shown, in parts. The clock of a page begins at its
// navigation.

import "./errors.js";
// The page's own module, by its own address: the same instance that it uses.
import { session } from "/page/session.js";

const { back, visits } = JSON.parse(sessionStorage.getItem("run"));
let readyAt = null;

/** Notes the visit and goes back, when nothing of it runs any more. */
async function leave(visit) {
  await session.stop();
  await session.engine?.dispose();
  sessionStorage.setItem("run", JSON.stringify({ back, visits: [...visits, visit] }));
  location.assign(back);
}

/** After the frame that shows what the page has just changed. */
const shown = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

const told = document.getElementById("told");
const watch = new MutationObserver(async () => {
  if (!told.textContent) return;
  watch.disconnect();
  await shown();
  const total_ms = performance.now();
  const { backend, adapter, open_ms, load_ms, compile_ms } = session.engine.info;
  const start_ms = readyAt - open_ms - load_ms - compile_ms;
  const prefill_ms = total_ms - readyAt;
  const tried = session.engine.report.rungs.filter((rung) => rung.tried_ms !== null);
  const rungs = tried.map(({ name, tried_ms }) => ({ name, tried_ms }));
  const { name: model } = session.model;
  leave({ model, backend, adapter, total_ms, start_ms, open_ms, load_ms, compile_ms, prefill_ms, rungs });
});
watch.observe(told, { childList: true, characterData: true, subtree: true });
session.addEventListener("ready", () => (readyAt = performance.now()));
session.addEventListener("failed", ({ detail }) => leave({ error: detail.error.message }));
