// The time from navigation until the first token is shown, in parts, measured in the real page. A page's clock begins
// at its navigation.

import "./errors.js";
// The page's own module, by its own address, so that it is the same instance.
import { session } from "/page/session.js";

const { back, visits } = JSON.parse(sessionStorage.getItem("run"));
let readyAt = null;

/** Reports the visit, and goes back when nothing of the page runs any more. */
async function leave(visit) {
  await session.stop();
  await session.engine?.dispose();
  sessionStorage.setItem("run", JSON.stringify({ back, visits: [...visits, visit] }));
  location.assign(back);
}

/** Resolves after the frame that shows the page's last change. */
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
