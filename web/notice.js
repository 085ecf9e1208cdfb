// Errors: one sentence, what to do about it, and a button if the page can do it.

import { $, el, fill } from "./dom.js";
import { sentence } from "./format.js";

const box = $("notice");

/** Short summaries by error code; the package's own message follows, with details. */
const WORDS = {
  network: "The model could not be downloaded.",
  file: "This file cannot be used as a model.",
  template: "The chat template of this model does not allow this conversation.",
  checksum: "The downloaded model is damaged.",
  quota: "There is no storage left for the model.",
  cache: "This browser cannot cache the model.",
  no_backend: "No backend can run this model in this browser.",
  unsupported: "This backend cannot run the model in this browser.",
  memory: "There is not enough memory for this model.",
  lost: "The GPU device was lost.",
  driver: "The graphics driver reported an error.",
  context: "The text is too long for this model.",
  crash: "The engine crashed.",
};

/** Shows an error. `actions` are `[label, function]` pairs. */
export function showError(error, actions = []) {
  const dismiss = el("button", { type: "button", onclick: clearError }, "Dismiss");
  const buttons = actions.map(([label, act]) =>
    el("button", { type: "button", onclick: () => (clearError(), act()) }, label),
  );
  const words = WORDS[error?.code];
  const said = words ? [el("strong", {}, words), " ", explain(error)] : [explain(error)];
  fill(box, el("p", {}, ...said), ...buttons, dismiss);
  box.hidden = false;
}

/** Hides the error. */
export function clearError() {
  box.hidden = true;
  fill(box);
}

/** Returns the message. The package's own errors name cause and remedy; others get a remedy here. */
function explain(error) {
  const text = sentence(String(error?.message || error));
  return error?.code ? text : `${text} If it hangs, reload the page.`;
}
