// The conformance tab: choose backends, run the suite on each, and see a table of operators by backend.

import { $, el, fill } from "./dom.js";
import { backendLabel, family, plural } from "./format.js";
import { heatMap, legend } from "./heat.js";
import { session } from "./session.js";
import { asJson, BACKENDS, newTally, run } from "./suite.js";
import * as speak from "./speak.js";

const SAMPLES = { 1: "All cases", 4: "Every 4th case", 16: "Every 16th case" };

const rows = new Map();
const place = el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Operators by backends", hidden: true });
const colours = legend();
let map = null;
const failures = el("div", { className: "failures" });
const sample = el(
  "select",
  { "aria-label": "How many cases" },
  ...Object.entries(SAMPLES).map(([value, text]) => el("option", { value }, text)),
);
const go = el(
  "button",
  { type: "button", className: "primary", onclick: () => (controller ? stop() : start()) },
  "Run the suite",
);
const save = el("button", { type: "button", hidden: true, onclick: download }, "Download as JSON");
let controller = null;
let tallies = [];
let every = 1;

/** Builds the view. */
export function startConformance() {
  colours.hidden = true;
  for (const backend of BACKENDS) rows.set(backend.name, backendRow(backend));
  const list = (all) => el("ul", { className: "backends" }, ...all.map(({ name }) => rows.get(name).item));
  $("conformance").append(
    el("h2", {}, "Does this browser compute correctly?"),
    el(
      "p",
      { className: "lead" },
      "Each case runs one operator on this device and compares the result with a plain double-precision reference. ",
      "The table shows each operator's worst error (squared difference over squared reference) ",
      "and number of cases; warmer colours are larger errors. A case fails above 10⁻⁷, or 10⁻⁶ where values are stored as f16.",
    ),
    list(BACKENDS.filter(({ usual }) => usual)),
    el("details", { className: "variants" }, el("summary", {}, "Backend variants"), list(BACKENDS.filter(({ usual }) => !usual))),
    el("div", { className: "row" }, go, sample, save),
    place,
    colours,
    failures,
  );
  session.addEventListener("ready", suggestBackends);
  suggestBackends();
}

/** Unchecks the backends that are known to be refused here. */
function suggestBackends() {
  const rungs = session.engine?.report.rungs ?? [];
  for (const { name, usual } of BACKENDS) {
    const own = rungs.filter((rung) => family(rung.name) === family(name));
    const refused = own.length > 0 && own.every((rung) => rung.outcome.kind === "rejected");
    if (!controller && tallies.length === 0) rows.get(name).box.checked = Boolean(usual) && !refused;
  }
}

function backendRow({ name, label, usual }) {
  const box = el("input", { type: "checkbox", checked: Boolean(usual), name });
  const bar = el("progress", { max: 1, value: 0, "aria-label": `Progress on ${label}` });
  const text = el("span", { className: "fine number" });
  bar.hidden = true;
  return { box, bar, text, item: el("li", {}, el("label", {}, box, label), el("div", {}, bar, text)) };
}

function stop() {
  controller.abort(new DOMException("The suite was stopped.", "AbortError"));
  drawControls();
}

async function start() {
  const chosen = BACKENDS.filter(({ name }) => rows.get(name).box.checked);
  if (chosen.length === 0) return;
  controller = new AbortController();
  every = Number(sample.value);
  tallies = chosen.map(({ name }) => newTally(name));
  for (const { bar, text } of rows.values()) {
    bar.hidden = true;
    text.textContent = "";
  }
  fill(failures);
  map = heatMap(tallies);
  fill(place, map.table);
  place.hidden = colours.hidden = false;
  drawControls();
  await session.stop();
  for (const tally of tallies) {
    if (controller.signal.aborted) tally.state = "stopped";
    else await run(tally, { every, signal: controller.signal }, (entry) => drawChange(tally, entry));
  }
  controller = null;
  drawControls();
  drawFailures();
  const failed = tallies.reduce((sum, tally) => sum + tally.failed, 0);
  speak.announce(`The suite finished: ${plural(failed, "failure")}.`);
}

function drawControls() {
  const stopping = controller?.signal.aborted ?? false;
  go.textContent = stopping ? "Stopping…" : controller ? "Stop" : "Run the suite";
  go.disabled = stopping;
  save.hidden = controller !== null || tallies.length === 0;
  sample.disabled = controller !== null;
  for (const { box } of rows.values()) box.disabled = controller !== null;
}

function drawChange(tally, entry) {
  const { bar, text } = rows.get(tally.backend);
  bar.hidden = tally.state !== "running";
  if (tally.total > 0) bar.value = tally.index / tally.total;
  else bar.removeAttribute("value");
  text.textContent = describe(tally);
  text.classList.toggle("bad", tally.failed > 0 || tally.state === "broken");
  if (entry) map.add(tally, entry.op);
  if (tally.state === "absent") map.redraw();
}

function describe(tally) {
  const failed = tally.failed > 0 ? `, ${tally.failed} failed` : "";
  switch (tally.state) {
    case "running":
      return tally.total > 0 ? `${tally.index} of ${tally.total}${failed}` : "loading the suite, opening the device…";
    case "done":
      return `${tally.passed} passed${failed || ", none failed"}${tally.adapter ? ` on ${tally.adapter}` : ""}`;
    case "stopped":
      return `stopped after ${plural(tally.index, "case")}${failed}`;
    case "absent":
      return tally.message;
    default:
      return `failed after ${plural(tally.index, "case")}: ${tally.message}`;
  }
}

function drawFailures() {
  const lists = tallies
    .filter((tally) => tally.failures.length > 0)
    .map((tally) =>
      el(
        "details",
        { open: true },
        el("summary", {}, `${backendLabel(tally.backend)}: ${plural(tally.failures.length, "failure")}`),
        el(
          "ul",
          {},
          ...tally.failures.map(({ op, case: name, message }) =>
            el("li", {}, el("strong", {}, `${op} ${name}`), ` ${message}`),
          ),
        ),
      ),
    );
  fill(failures, ...lists);
}

function download() {
  const address = URL.createObjectURL(new Blob([asJson(tallies, every)], { type: "application/json" }));
  el("a", { href: address, download: "anygpu-conformance.json" }).click();
  // The browser has taken over the data by the next turn of the event loop.
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
