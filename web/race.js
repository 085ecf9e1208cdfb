// The same story on all backends of this browser at once, side by side, each with an engine of its own. The words must
// be identical; only the speed differs.

import { AnyGpu } from "./anygpu/src/index.js";
import { read } from "./address.js";
import { $, el, fill } from "./dom.js";
import { backendLabel, plural, rate, sentence } from "./format.js";
import { BUILT_IN, session } from "./session.js";
import { isSamplingGiven, sampling } from "./settings.js";
import * as speak from "./speak.js";

const BACKENDS = ["webgpu", "webgl", "cpu"];
/**
 * Number of tokens: enough to see which backend is faster, and not too many for a software GPU. The address may ask for
 * fewer, and for sampling.
 */
const TOKENS = Math.min(120, Math.max(1, Number(read("max_tokens")) || 120));
const OPENING = "Once upon a time";

const go = el("button", { type: "button", className: "primary", onclick: () => (running ? running.abort() : start()) });
const verdict = el("p", { className: "verdict", role: "status" });
const lanes = new Map();
let running = null;

/** Builds the view. */
export function startRace() {
  for (const backend of BACKENDS) lanes.set(backend, laneOf(backend));
  $("race").append(
    el("h2", {}, "One story, every backend"),
    el("p", { className: "lead" }, "The built-in model tells the same story on every backend of this browser at once. The words must be identical; the race is for speed."),
    el("div", { className: "row" }, go, verdict),
    el("div", { className: "lanes" }, ...[...lanes.values()].map(({ item }) => item)),
  );
  drawControls();
}

function laneOf(backend) {
  const title = `lane-${backend}`;
  const parts = {
    pace: el("span", { className: "pace number" }, "–"),
    count: el("span", { className: "fine number" }),
    bar: el("progress", { max: TOKENS, value: 0, "aria-labelledby": title }),
    adapter: el("p", { className: "fine" }),
    text: el("p", { className: "told", dir: "auto" }),
  };
  const head = el("p", { className: "figure" }, parts.pace, " ", el("span", { className: "fine" }, "tokens per second"));
  const item = el("section", { "aria-labelledby": title }, el("h3", { id: title }, backendLabel(backend)), head, parts.bar, parts.count, parts.text, parts.adapter);
  return { backend, item, ...parts, engine: null, tokens: 0, words: "", ms: 0 };
}

function drawControls() {
  const ending = running?.signal.aborted ?? false;
  go.textContent = ending ? "Stopping…" : running ? "Stop" : "Start the race";
  go.disabled = ending;
}

async function start() {
  running = new AbortController();
  const { signal } = running;
  signal.addEventListener("abort", drawControls);
  drawControls();
  verdict.textContent = "Preparing the backends.";
  await session.stop();
  const all = [...lanes.values()];
  for (const lane of all) clear(lane);
  try {
    // One after the other, so that compiling and self-tests do not slow each other down.
    for (const lane of all) await prepare(lane, signal);
    const able = all.filter(({ engine }) => engine !== null);
    verdict.textContent = `Running on ${plural(able.length, "backend")}.`;
    const how = isSamplingGiven() ? sampling() : {};
    await Promise.all(able.map((lane) => tell(lane, how, signal)));
    verdict.textContent = signal.aborted ? "Stopped." : judge(able);
  } finally {
    await Promise.all(all.map(({ engine }) => engine?.dispose()));
    running = null;
    drawControls();
  }
  speak.announce(verdict.textContent);
}

function clear(lane) {
  Object.assign(lane, { engine: null, tokens: 0, words: "", ms: 0 });
  lane.item.className = "";
  lane.pace.textContent = "–";
  lane.count.textContent = "";
  lane.adapter.textContent = "";
  lane.bar.value = 0;
  fill(lane.text);
}

async function prepare(lane, signal) {
  if (signal.aborted) return;
  lane.count.textContent = "preparing…";
  try {
    lane.engine = await AnyGpu.load(BUILT_IN.source, { backend: lane.backend, signal });
    lane.adapter.textContent = lane.engine.info.adapter;
    lane.count.textContent = "ready";
  } catch (error) {
    lane.item.className = "absent";
    lane.count.textContent = signal.aborted ? "" : "not available";
    lane.adapter.textContent = signal.aborted ? "" : sentence(error.message);
  }
}

async function tell(lane, how, signal) {
  const request = { ...how, prompt: OPENING, max_tokens: TOKENS, ignore_eos: true, stream: true, signal };
  const begin = performance.now();
  try {
    for await (const chunk of lane.engine.completions.create(request)) {
      lane.words += chunk.choices[0].text;
      if (chunk.token === undefined) continue;
      lane.tokens += 1;
      lane.ms = performance.now() - begin;
      draw(lane);
    }
  } catch (error) {
    if (!signal.aborted) lane.adapter.textContent = sentence(error.message);
  }
}

function draw({ text, words, pace, count, bar, tokens, ms }) {
  text.textContent = OPENING + words;
  pace.textContent = rate((1000 * tokens) / Math.max(1, ms));
  count.textContent = `${tokens} of ${TOKENS} tokens`;
  bar.value = tokens;
}

/** Names the winner, and says whether all backends gave the same text. */
function judge(able) {
  const whole = able.filter(({ tokens }) => tokens === TOKENS).sort((a, b) => a.ms - b.ms);
  if (whole.length === 0) return "No backend finished.";
  const [first] = whole;
  first.item.className = "won";
  const won = `${backendLabel(first.backend)} finished first, in ${(first.ms / 1000).toFixed(1)} s.`;
  if (whole.length === 1) return `${won} It was the only one.`;
  const others = whole.filter(({ words }) => words !== first.words).map(({ backend }) => backendLabel(backend));
  if (others.length > 0) return `${won} ${others.join(" and ")} gave different text: that is a bug in this browser, its driver or this page.`;
  return `${won} All ${whole.length} gave identical text.`;
}
