// Tunes the backend for this device when the visitor asks for it.

import { AnyGpu } from "./anygpu/src/index.js";
import { $, el } from "./dom.js";
import { family } from "./format.js";
import { session } from "./session.js";

let running = null;

const button = el("button", { type: "button", className: "link", onclick: () => (running ? running.abort() : tune()) });
const told = el("span", { role: "status" });

let onError = () => {};

/** Makes the button; `tell` gets the errors. */
export function startTuning(tell) {
  onError = tell;
  $("tune").append(button, told);
  session.addEventListener("ready", () => {
    // The CPU has no tunables.
    $("tune").hidden = chosen() === "cpu";
    draw();
  });
}

const chosen = () => family(session.engine.report.chosen);

function draw(text) {
  button.textContent = running ? "Stop" : "Tune for this device";
  if (text !== undefined) told.textContent = ` ${text}`;
}

/** Tunes with the loaded model, and loads it again if that helps. */
async function tune() {
  running = new AbortController();
  draw("Starting…");
  try {
    await session.stop();
    const { signal } = running;
    const onTrial = (what) => draw(what);
    const { winner, ratios, kept } = await AnyGpu.tune(session.model.source, { backend: chosen(), signal, onTrial });
    running = null;
    const [prefill, decode] = (ratios ?? [1, 1]).map((ratio) => `${Math.round(100 * ratio)} %`);
    const better = Object.keys(winner.values).length > 0;
    draw(better ? `Prompts take ${prefill} and tokens ${decode} of the time before.` : "The defaults are best here.");
    if (better && kept) await session.load(session.model);
    else if (better) draw("Faster settings were found, but this browser cannot save them.");
  } catch (error) {
    running = null;
    draw(error?.name === "AbortError" ? "Stopped." : "");
    if (error?.name !== "AbortError") onError(error);
  }
}
