// The page of a pool: finds it, joins it, shows this browser's part and the whole pool, and asks it.

import { $, el, fill } from "./dom.js";
import { backendLabel, bytes, plural } from "./format.js";
import { showError, clearError } from "./notice.js";
import { startAsking, tellWaiting } from "./pool-ask.js";
import { blocks, neighbours, showPicture } from "./pool-picture.js";

/** Interval between two updates of the pool's state, in milliseconds. */
const LOOK = 1000;
const GIB = 2 ** 30;

/** Address of the pool's coordinator. */
let coordinator = "";
let pool = null;
let member = null;
let picture = null;

const at = (path) => `${coordinator.replace(/\/$/, "")}${path}`;

async function json(path) {
  const response = await fetch(at(path), { cache: "no-store" });
  if (!response.ok) throw new Error(`${at(path)} answered with status ${response.status}; check that it is a pool coordinator`);
  return response.json();
}

/** Shows the pool at an address. */
async function find(address) {
  clearError();
  coordinator = address;
  try {
    pool = await json("/pool.json");
  } catch (error) {
    $("find").hidden = false;
    $("coordinator").value = address;
    showError(error, [["Try again", () => find(address)]]);
    return;
  }
  const { name, blocks: count, bytes: size } = pool.model;
  $("model").textContent = `This pool runs ${name}: ${plural(count, "block")}, ${bytes(size)}.`;
  for (const id of ["offer", "ask", "picture"]) $(id).hidden = false;
  $("find").hidden = true;
  startAsking(at, pool.model.name);
  look();
}

/** Shows the pool's current state, again and again. */
async function look() {
  try {
    picture = await json("/state.json");
    showPicture(picture, member?.state.worker);
    tellWaiting(picture);
    if (member) showPart(member.state);
  } catch {
    $("counts").textContent = "The coordinator does not answer.";
  }
  setTimeout(look, LOOK);
}

async function join() {
  clearError();
  const button = $("join");
  button.disabled = true;
  $("joining").textContent = "Testing the backends and the network…";
  try {
    // The code for joining is only downloaded when the visitor joins.
    const { joinPool } = await import("./anygpu/src/pool.js");
    const backend = $("backend").value;
    const memory = Number($("memory").value) * GIB;
    member = await joinPool({ coordinator, backend, memory, onState: showPart });
    $("offer").hidden = true;
    $("part").hidden = false;
    showPart(member.state);
    // Focus moves to the result, since the button that was used is hidden.
    $("leave").focus();
    member.left.then(left, (error) => (left(), showError(error, [["Join again", join]])));
  } catch (error) {
    showError(error, [["Try again", join]]);
  }
  button.disabled = false;
  $("joining").textContent = "";
}

function left() {
  member = null;
  $("part").hidden = true;
  $("offer").hidden = false;
}

/** Describes in one sentence what this browser is doing. */
function doing({ connected, part, refused }) {
  if (!connected) return "The connection was lost; reconnecting.";
  if (part === null) return refused ? `It could not run its part: ${refused}` : "Standing by: there is no work yet.";
  if (!part.ready && part.total === 0) return "Opening the model.";
  if (!part.ready) return `Downloading its part: ${bytes(part.fetched)} of ${bytes(part.total)}.`;
  return `Running ${blocks(part)}; the model has ${pool.model.blocks} blocks.`;
}

function showPart(state) {
  const { computes, part, blockMicros, hopMicros, sessions, steps, worker } = state;
  // Screen readers announce every assignment, so the text is only set when it changes.
  const does = doing(state);
  if ($("does").textContent !== does) $("does").textContent = does;
  const bar = $("fetched");
  bar.hidden = part === null || part.ready;
  if (part?.total) bar.value = part.fetched / part.total;
  else bar.removeAttribute("value");
  const { before, after } = neighbours(picture, worker);
  const facts = [
    ["Computes on", `${backendLabel(computes.backend)}${computes.software ? ", in software" : ""} (${computes.adapter})`],
    ["Time per block", blockMicros ? `${(blockMicros / 1000).toFixed(2)} ms` : "not measured yet"],
    ["Round trip to the server", `${(hopMicros / 1000).toFixed(1)} ms`],
    ["Receives from", before],
    ["Sends to", after],
    ["Sequences, steps", `${sessions}, ${steps.toLocaleString("en")}`],
    ["Worker id", worker],
  ];
  fill($("facts"), ...facts.map(([term, fact]) => [el("dt", {}, term), el("dd", { className: "number" }, fact)]).flat());
}

$("find-form").addEventListener("submit", (event) => {
  event.preventDefault();
  find($("coordinator").value);
});
$("join").addEventListener("click", join);
$("leave").addEventListener("click", () => member?.leave());

const asked = new URLSearchParams(location.search);
const backend = asked.get("backend");
if (backend && [...$("backend").options].some((option) => option.value === backend)) $("backend").value = backend;
if (asked.get("coordinator")) find(asked.get("coordinator"));
else $("find").hidden = false;
