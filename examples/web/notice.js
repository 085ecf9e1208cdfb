// Errors: one sentence, what to do about it, and a button that does it where one can.

import { $, el, fill } from "./dom.js";
import { sentence } from "./format.js";

const box = $("notice");

/** Shows an error. `actions` are `[label, function]` pairs. */
export function showError(error, actions = []) {
  const dismiss = el("button", { type: "button", onclick: clearError }, "Dismiss");
  const buttons = actions.map(([label, act]) =>
    el("button", { type: "button", onclick: () => (clearError(), act()) }, label),
  );
  fill(box, el("p", {}, explain(error)), ...buttons, dismiss);
  box.hidden = false;
}

/** Takes the error away. */
export function clearError() {
  box.hidden = true;
  fill(box);
}

/** The package's own errors say cause and remedy; others get a remedy here. */
function explain(error) {
  const text = sentence(String(error?.message || error));
  return error?.code ? text : `${text} If it hangs, reload the page.`;
}
