// Visits the real page again and again in one profile. `first-token.js`, which the server adds to the page, times each
// visit and comes back here.

import { median, options, say, sleep } from "./run.js";

/** Time after which everything of the left page has ended, in milliseconds. */
const REST_MS = 1500;

/** Navigates to the page. Nothing after this call runs. */
async function visit(visits) {
  sessionStorage.setItem("run", JSON.stringify({ back: location.href, visits }));
  await sleep(REST_MS);
  location.assign(`/page/index.html?backend=${options.backend}`);
  return new Promise(() => {});
}

export default async function page() {
  const { visits } = JSON.parse(sessionStorage.getItem("run") ?? '{"visits":[]}');
  const failed = visits.find((visit) => visit.error !== undefined);
  if (failed) throw new Error(`the page does not show a token: ${failed.error}`);
  if (visits.length) await say(line(visits.length - 1, visits[visits.length - 1]));
  if (visits.length <= options.repeat) return visit(visits);
  const [cold, ...warm] = visits;
  const middle = Object.fromEntries(PARTS.map((name) => [name, median(warm.map((visit) => visit[name]))]));
  const times = warm.map((visit) => visit.total_ms);
  const entry = {
    backend: cold.backend, adapter: cold.adapter, model: cold.model, wanted: options.backend, cold,
    warm: { ...middle, total_ms: { median: median(times), min: Math.min(...times), max: Math.max(...times), n: times.length } },
    visits: warm,
  };
  return { passed: 1, failed: 0, skipped: 0, page: [entry] };
}

const PARTS = ["start_ms", "open_ms", "load_ms", "compile_ms", "prefill_ms"];

function line(index, visit) {
  const parts = PARTS.map((name) => `${name.slice(0, -3)} ${visit[name].toFixed(0)}`).join(", ");
  const rungs = visit.rungs.map(({ name, tried_ms }) => `${name} ${tried_ms.toFixed(0)}`).join(", ");
  const kind = index ? `visit ${index}` : "empty cache";
  return `${kind}: first token of ${visit.model} on ${visit.backend} after ${visit.total_ms.toFixed(0)} ms: ${parts}; tried: ${rungs}`;
}
