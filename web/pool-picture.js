// The current state of a pool: chains of stages, spares, and the neighbours of a worker.

import { $, el, fill } from "./dom.js";
import { plural } from "./format.js";

/** Describes a range of blocks, counted from 1. */
export function blocks({ first, end, embedding, head }) {
  const range = end - first > 1 ? `blocks ${first + 1} to ${end}` : end > first ? `block ${end}` : "no block";
  return [embedding ? "the embedding" : null, range, head ? "the head" : null].filter(Boolean).join(", ");
}

const named = (worker) => (worker ? worker.slice(0, 6) : "nobody yet");

/** Makes the element of a stage or a spare. */
function stage(it, own, className) {
  const { worker, ready, block_micros } = it;
  const speed = block_micros ? `, ${(block_micros / 1000).toFixed(1)} ms per block` : "";
  const state = worker ? (ready ? speed : ", preparing") : ", away";
  const mine = worker && worker === own;
  const classes = [className, mine ? "own" : "", worker && ready ? "" : "away"].filter(Boolean).join(" ");
  return el("li", { className: classes }, el("strong", {}, mine ? "this browser" : named(worker)), `: ${blocks(it)}${state}`);
}

function chain({ id, up, sessions, stages }, own) {
  const state = up ? (sessions ? `running ${plural(sessions, "sequence")}` : "ready") : "preparing";
  const list = el("ol", { className: "stages" }, ...stages.map((it) => stage(it, own, "stage")));
  return el("div", { className: "chain" }, el("h3", {}, `Chain ${id}: ${state}`), list);
}

/** Shows the pool; `own` is this browser's worker name, if it has joined. */
export function showPicture({ chains, spares, workers, waiting, running, tokens, lost }, own) {
  const counts = [plural(workers, "worker"), `${running} of ${plural(running + waiting, "sequence")} running`];
  $("counts").textContent = `${[...counts, plural(tokens, "token"), `${plural(lost, "worker")} lost`].join(" · ")}.`;
  const parts = chains.map((it) => chain(it, own));
  if (chains.length === 0) parts.push(el("p", { className: "fine" }, "No chain yet: there are too few workers for the whole model."));
  if (spares.length > 0) {
    const list = el("ul", { className: "stages" }, ...spares.map((it) => stage(it, own, "stage spare")));
    parts.push(el("div", { className: "chain" }, el("h3", {}, "Spares"), list));
  }
  fill($("chains"), ...parts);
}

/** Describes the workers before and after a worker in its chain. */
export function neighbours(picture, worker) {
  const stages = picture?.chains.map((it) => it.stages).find((all) => all.some((it) => it.worker === worker));
  if (!stages) return { before: "none (spare)", after: "none" };
  const place = stages.findIndex((it) => it.worker === worker);
  const beside = (it, edge) => (it ? `${named(it.worker)} (${blocks(it)})` : edge);
  return {
    before: beside(stages[place - 1], "the client, as tokens"),
    after: beside(stages[place + 1], "the client, as a token"),
  };
}
