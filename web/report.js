// The report: the chosen backend, and the outcome of every rung.

import { $, el, fill } from "./dom.js";
import { backendLabel, duration, family, sentence } from "./format.js";

const CHOICES = ["auto", "webgpu", "webgl", "cpu"];

/** Makes the backend switch; `onChoose` gets the visitor's choice. */
export function startSwitch(onChoose) {
  for (const value of CHOICES) {
    const input = el("input", { type: "radio", name: "backend", value, onchange: () => onChoose(value) });
    $("switch").append(el("label", {}, input, el("span", {}, backendLabel(value))));
  }
}

/** Shows the requested backend in the switch. */
export function showChoice(backend) {
  for (const input of $("switch").querySelectorAll("input")) input.checked = input.value === backend;
}

/** Functions that tell whether this browser has a backend. */
const THERE = {
  webgpu: () => "gpu" in navigator,
  webgl: () => "WebGL2RenderingContext" in window,
  cpu: () => true,
};

/** Shows the backends that will be tried. Rungs take their place one by one. */
export function showLooking(wanted) {
  $("verdict").textContent = "Getting ready…";
  $("why").textContent = "";
  const rows = Object.entries(THERE).filter(([name]) => wanted === "auto" || wanted === name);
  fill($("ladder"), ...rows.map(([name, isThere]) => placed(isThere() ? drawWaiting(name) : drawAbsent(name), name, WHOLE)));
}

/**
 * Shows a rung that is being tried, or its outcome. The final report groups rungs that were refused for the same
 * reason.
 */
export function showRung(rung) {
  const { kind, reason } = rung.outcome;
  if (kind === "skipped") return;
  if (kind === "trying") $("verdict").textContent = `Trying ${label(rung.name)}…`;
  const row = placed(kind === "trying" ? drawTrying(rung.name) : kind === "rejected" ? drawRejected(reason, [rung]) : drawProven(rung), rung.name);
  const rows = [...$("ladder").children].filter(({ dataset }) => dataset.family === row.dataset.family);
  const old = rows.find(({ dataset }) => dataset.rung === rung.name || dataset.rung === WHOLE);
  if (old) old.replaceWith(row);
  else if (rows.length > 0) rows[rows.length - 1].after(row);
  else $("ladder").append(row);
}

/** Rung name of a row that stands for a whole backend. */
const WHOLE = "";

/** Marks a row so that it can be found again. */
function placed(row, name, rung = name) {
  Object.assign(row.dataset, { family: family(name), rung });
  return row;
}

/** Shows that no model is loaded. */
export function showNothing() {
  $("verdict").textContent = "No model loaded";
  fill($("ladder"));
}

const drawWaiting = (name) =>
  el("li", { className: "waiting" }, drawMark("○"), el("strong", {}, backendLabel(name)), el("span", { className: "fine" }, "not tried yet"));
const drawTrying = (name) =>
  el("li", { className: "trying" }, drawMark("○"), el("strong", {}, backendLabel(name)), el("span", { className: "fine" }, "trying"));
const drawAbsent = (name) =>
  el("li", { className: "rejected" }, drawMark("×"), el("strong", {}, backendLabel(name)), el("span", { className: "fine" }, "not available in this browser"));

/** Number of digits of a digest that are shown; the title has all. */
const DIGITS = 12;

/** Shows a report; `wanted` is the requested backend. */
export function showReport(report, wanted) {
  const chosen = report.rungs.find((rung) => rung.outcome.kind === "chosen");
  const nothing = wanted === "auto" ? "No backend works in this browser" : `${backendLabel(wanted)} does not work in this browser`;
  $("verdict").textContent = chosen ? `Running on ${label(chosen.name)}` : nothing;
  $("why").textContent = chosen ? why(report, chosen, wanted) : "";
  const proven = report.rungs.filter(({ outcome }) => outcome.kind === "chosen" || outcome.kind === "slower");
  fill(
    $("ladder"),
    ...proven.map(drawProven),
    ...byReason(report.rungs, "rejected").map(([reason, rungs]) => drawRejected(reason, rungs)),
    ...byReason(report.rungs, "skipped").map(([reason, rungs]) =>
      drawNote(`Not tried because ${reason}: ${names(rungs)}.`),
    ),
    report.thread === "main" && report.thread_reason
      ? drawNote(sentence(`runs on the page's main thread: ${report.thread_reason}`))
      : "",
  );
  drawModule(report.module_sha256);
}

/** Shows the digest of the loaded module, to compare with the release's digests. */
function drawModule(digest) {
  if (!digest) return fill($("module"));
  const short = el("code", { className: "number", title: `SHA-256 ${digest}` }, digest.slice(0, DIGITS));
  const sums = el("a", { href: "SHA256SUMS" }, "digests of this release");
  fill($("module"), "WebAssembly module ", short, "… (", sums, ")");
}

const label = (name) => (family(name) === "cpu" ? "the CPU" : backendLabel(family(name)));
const names = (rungs) => rungs.map((rung) => backendLabel(rung.name)).join(", ");

function why(report, chosen, wanted) {
  const proven = report.rungs.filter(({ outcome }) => outcome.kind === "chosen" || outcome.kind === "slower").length;
  const drawn = chosen.software ? " The device is emulated in software." : "";
  if (wanted !== "auto") return `Selected by you. It passed its self-test.${drawn}`;
  if (proven > 1) return `The fastest of ${proven} backends that passed the self-test.${drawn}`;
  return `The only backend that passed the self-test.${drawn}`;
}


/** Groups the rungs with an outcome by their reason. */
function byReason(rungs, kind) {
  const groups = new Map();
  for (const rung of rungs.filter(({ outcome }) => outcome.kind === kind)) {
    const { reason } = rung.outcome;
    groups.set(reason, [...(groups.get(reason) ?? []), rung]);
  }
  return [...groups];
}

function drawProven(rung) {
  const chosen = rung.outcome.kind === "chosen";
  const facts = rung.facts.map(([name, value]) => `${name} ${value}`);
  // A rung whose result was remembered was not tried this time.
  const tried = rung.tried_ms === null ? "tried on an earlier visit" : `tried for ${duration(rung.tried_ms)}`;
  return el(
    "li",
    { className: chosen ? "chosen" : "", title: [tried, ...facts].join(", ") },
    drawMark(chosen ? "●" : "○"),
    el("strong", {}, backendLabel(rung.name), el("span", { className: "hidden" }, chosen ? ", chosen" : ", works")),
    el("span", { className: "number" }, rung.matvec_ms === null ? "" : `${duration(rung.matvec_ms)} per matvec`),
    el("p", { className: "fine" }, [rung.adapter, rung.software && "in software"].filter(Boolean).join(", ")),
  );
}

function drawRejected(reason, rungs) {
  return el(
    "li",
    { className: "rejected" },
    drawMark("×"),
    el("strong", {}, names(rungs), el("span", { className: "hidden" }, ", refused")),
    rungs[0].adapter && el("p", { className: "fine" }, rungs[0].adapter),
    el("p", { className: "fine" }, sentence(reason)),
  );
}

const drawMark = (mark) => el("span", { className: "mark-of", "aria-hidden": "true" }, mark);
const drawNote = (text) => el("li", {}, el("p", { className: "fine" }, text));
