// Figures of loading, and of the current or last generation.

import { $, el } from "./dom.js";
import { bytes, duration, rate } from "./format.js";
import { session } from "./session.js";

const FIGURES = {
  rate: ["tokens per second", rate],
  first: ["time to first token", duration],
  prefill: ["prefill", duration],
  open: ["backend selection", duration],
  compile: ["compiling", duration],
  memory: ["device memory", bytes],
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
    if (Number.isFinite(detail.rate)) $("pace").textContent = `${rate(detail.rate)} tokens per second`;
  });
  session.addEventListener("loading", () => {
    for (const cell of Object.values(cells)) cell.textContent = "–";
    $("pace").textContent = "";
  });
}
