// Figures of loading and of the current or latest generation.

import { $, el } from "./dom.js";
import { bytes, duration, rate } from "./format.js";
import { session } from "./session.js";

const FIGURES = {
  rate: ["tokens a second", rate],
  first: ["to first token", duration],
  prefill: ["prefill", duration],
  open: ["trying backends", duration],
  compile: ["compiling", duration],
  memory: ["on the device", bytes],
};

export function startFigures() {
  const cells = {};
  for (const [name, [label]] of Object.entries(FIGURES)) {
    cells[name] = el("dd", {}, "–");
    $("figures").append(el("div", {}, el("dt", {}, label), cells[name]));
  }
  session.addEventListener("figures", ({ detail }) => {
    for (const [name, [, format]] of Object.entries(FIGURES)) {
      if (Number.isFinite(detail[name])) cells[name].textContent = format(detail[name]);
    }
    if (Number.isFinite(detail.rate)) $("pace").textContent = `${rate(detail.rate)} tokens a second`;
  });
  session.addEventListener("loading", () => {
    for (const cell of Object.values(cells)) cell.textContent = "–";
    $("pace").textContent = "";
  });
}
