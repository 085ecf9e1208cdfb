// Streamed text for screen readers: whole sentences, politely, each of them once. The visible text is not a live
// region, because it changes many times a second.

import { $, fill } from "./dom.js";

const region = $("spoken");
let pending = "";

/** Starts a new text. */
export function begin() {
  fill(region);
  pending = "";
}

/** Adds a piece; complete sentences are announced. */
export function say(piece) {
  pending += piece;
  const end = pending.search(/[.!?…]["”')]*\s+\S*$/);
  if (end < 0) return;
  const cut = end + pending.slice(end).search(/\s/);
  announce(pending.slice(0, cut));
  pending = pending.slice(cut);
}

/** Announces the rest. */
export function finish() {
  announce(pending);
  pending = "";
}

/** Announces a sentence. */
export function announce(sentence) {
  const text = sentence.trim();
  if (!text) return;
  const line = document.createElement("p");
  line.textContent = text;
  region.append(line);
}
