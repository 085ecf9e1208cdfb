// A button that copies a text.

import * as speak from "./speak.js";

/** How long a button says that it has copied, in milliseconds. */
const COPIED_MS = 2000;

/** Copies a text, and says so on the button. */
export async function copyFrom(button, text) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  speak.announce(button.textContent);
  button.disabled = true;
  setTimeout(() => {
    button.textContent = label;
    button.disabled = false;
  }, COPIED_MS);
}
