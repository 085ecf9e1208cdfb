// The view of token probabilities: the candidates of each word of the story. During generation the bars follow the
// words. Pointing at a word, or using the slider, shows that word's candidates. With reduced motion the bars do not
// follow.

import { $, el, fill } from "./dom.js";
import { clear, keep, picture, show } from "./passes.js";

/** Number of candidates that are shown for each token. */
export const CANDIDATES = 6;

const box = $("think");
const bars = el("ol", { className: "bars" });
const place = el("input", { type: "range", min: 1, step: 1, "aria-label": "Token", oninput: () => look(place.valueAsNumber - 1) });
const count = el("output", { className: "fine number" });
const still = matchMedia("(prefers-reduced-motion: reduce)");
/** Tokens of the story: the candidates of each, and its element in the text. */
let places = [];
let text = null;
/** Whether the newest token is shown. */
let following = false;
/** Position of the first token in the text; null until it is known. */
let first = null;
let stop = () => {};

box.append(
  el("h2", {}, "How each word was chosen"),
  el("p", { className: "fine" }, "The most likely next tokens and their probabilities, before temperature. The chosen token is marked. Point at a word, or use the slider."),
  bars,
  el("div", { className: "row" }, place, count),
  picture,
);

/** Begins with an empty text. */
export function begin(told) {
  text?.removeEventListener("pointerover", point);
  text = told;
  text.addEventListener("pointerover", point);
  places = [];
  following = !still.matches;
  box.hidden = false;
  fill(bars);
  clear();
  draw();
}

/** Returns a function that appends tokens to the text that is shown; `prompt` is all text before them. */
export function writer(told, engine, prompt) {
  if (text === null) begin(told);
  following = !still.matches;
  first = null;
  const before = places.length;
  engine.encode(prompt).then(({ length }) => (first = length - before), () => {});
  stop();
  stop = engine.on("step", (step) => keep(step, engine.info.backend));
  return (piece, logprobs) => {
    if (!logprobs) return told.append(piece);
    const word = el("span", { className: "token" }, piece);
    word.dataset.place = places.length;
    told.append(word);
    places.push({ word, candidates: candidates(logprobs) });
    if (following) look(places.length - 1, true);
    else draw();
  };
}

/** Ends following: generation has ended. */
export function rest() {
  following = false;
  stop();
  if (places.length > 0 && bars.childElementCount === 0) look(0);
}

/** Hides the view. */
export function end() {
  text?.removeEventListener("pointerover", point);
  for (const { word } of places) word.className = "";
  places = [];
  text = null;
  stop();
  clear();
  box.hidden = true;
}

function point({ target }) {
  const at = target.dataset?.place;
  if (at !== undefined) look(Number(at));
}

/** Returns the likeliest tokens of a place, best first, and the chosen one among them. */
function candidates({ tokens: [taken], top_logprobs: [all] }) {
  const sorted = Object.entries(all).sort(([, one], [, other]) => other - one);
  return sorted.map(([token, logprob]) => ({ token, chance: Math.exp(logprob), isTaken: token === taken }));
}

/** Shows the candidates of a token. */
function look(at, isNewest = false) {
  following = following && isNewest;
  for (const word of text.querySelectorAll(".looked")) word.classList.remove("looked");
  places[at].word.classList.add("looked");
  place.value = at + 1;
  const rows = places[at].candidates;
  // Elements are reused, so that bars move.
  while (bars.childElementCount > rows.length) bars.lastChild.remove();
  while (bars.childElementCount < rows.length) bars.append(el("li", {}, el("code"), el("span", { className: "bar" }), el("span", { className: "number" })));
  rows.forEach(({ token, chance, isTaken }, index) => {
    const row = bars.children[index];
    const [name, bar, number] = row.children;
    row.className = isTaken ? "taken" : "";
    fill(name, visible(token), el("span", { className: "hidden" }, isTaken ? ", chosen" : ""));
    bar.style.setProperty("--chance", chance);
    number.textContent = percent(chance);
  });
  // A token is computed by the step of the token before it. The first one may come from the step of the whole prompt,
  // which is not watched.
  if (first !== null) show(first + at - 1);
  draw(at);
}

function draw(at = place.valueAsNumber - 1) {
  place.max = Math.max(1, places.length);
  place.value = at + 1;
  place.disabled = places.length === 0;
  count.textContent = places.length === 0 ? "" : `${Math.min(at + 1, places.length)} of ${places.length}`;
}

/** Makes white space visible. */
const visible = (token) => token.replace(/^ | $/g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "∅";

const percent = (chance) => (chance < 0.0005 ? "< 0.1 %" : `${(100 * chance).toFixed(chance < 0.0995 ? 1 : 0)} %`);
