// The progress strip of loading, with a button to cancel it.

import { $, el } from "./dom.js";
import { bytes } from "./format.js";
import { session } from "./session.js";

const PHASES = {
  connect: "Connecting",
  download: "Downloading",
  select: "Selecting a backend",
  upload: "Uploading weights to the device",
  ready: "Ready",
};

/**
 * Delay before the strip is shown, in milliseconds. A cached model is ready sooner, and a strip that flashes up
 * disturbs.
 */
const PATIENCE_MS = 350;

export function startProgress() {
  const text = el("p", { className: "number" });
  const bar = el("progress", { max: 1, "aria-label": "Loaded" });
  const cancel = el("button", { type: "button" }, "Cancel");
  cancel.addEventListener("click", () => {
    // A backend that is being tried finishes its step first.
    cancel.disabled = true;
    session.cancelLoad();
  });
  const strip = $("progress");
  strip.append(text, bar, cancel);
  let name = "";
  let timer = 0;

  session.addEventListener("loading", ({ detail }) => {
    name = detail.model.name;
    text.textContent = `Opening ${name}`;
    bar.removeAttribute("value");
    cancel.disabled = false;
    clearTimeout(timer);
    timer = setTimeout(() => (strip.hidden = false), PATIENCE_MS);
  });
  session.addEventListener("progress", ({ detail }) => {
    const { phase, loaded, total, fraction } = detail;
    const counted = loaded > 0 && total > 0 && phase !== "select";
    const amount = counted ? `: ${bytes(loaded)} of ${bytes(total)}, ${Math.floor((loaded / total) * 100)} %` : "";
    text.textContent = `${PHASES[phase] ?? phase} · ${name}${amount}`;
    if (Number.isFinite(fraction)) bar.value = fraction;
    else bar.removeAttribute("value");
  });
  for (const end of ["ready", "failed", "cancelled"]) {
    session.addEventListener(end, () => {
      clearTimeout(timer);
      strip.hidden = true;
    });
  }
}
