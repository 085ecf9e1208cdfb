// How the model chooses: the candidates of each word of the story, with the probabilities that it gave them. While words
// come the bars follow them; a word that is pointed at, or chosen with the slider, shows its own. Who wants less motion has
// only the latter.

import { $, el, fill } from "./dom.js";
import { clear, keep, picture, show } from "./passes.js";

/** As many of the likeliest tokens are shown for each place. */
export const CANDIDATES = 6;

const box = $("think");
const bars = el("ol", { className: "bars" });
const place = el("input", { type: "range", min: 1, step: 1, "aria-label": "Token", oninput: () => look(place.valueAsNumber - 1) });
const count = el("output", { className: "fine number" });
const still = matchMedia("(prefers-reduced-motion: reduce)");
/** The tokens of the story: what was likely in the place of each, and the piece of the text that came with it. */
let places = [];
let text = null;
/** Whether the newest token is shown. */
let following = false;
/** Where the token in the first place is in the text, once that is known. */
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

/** What writes tokens behind those that stand there, which follow a prompt. */
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

/** The text is at rest. */
export function rest() {
  following = false;
  stop();
  if (places.length > 0 && bars.childElementCount === 0) look(0);
}

/** Shows nothing any more. */
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

/** The likeliest tokens in a place, best first, and the one that was taken, wherever it stands. */
function candidates({ tokens: [taken], top_logprobs: [all] }) {
  const sorted = Object.entries(all).sort(([, one], [, other]) => other - one);
  return sorted.map(([token, logprob]) => ({ token, chance: Math.exp(logprob), isTaken: token === taken }));
}

/** Shows the candidates of a place. */
function look(at, isNewest = false) {
  following = following && isNewest;
  for (const word of text.querySelectorAll(".looked")) word.classList.remove("looked");
  places[at].word.classList.add("looked");
  place.value = at + 1;
  const rows = places[at].candidates;
  // The same elements go on, so that bars move.
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
  // A token is made by the step of the one before it; the first perhaps by one of the whole prompt, which is not watched.
  if (first !== null) show(first + at - 1);
  draw(at);
}

function draw(at = place.valueAsNumber - 1) {
  place.max = Math.max(1, places.length);
  place.value = at + 1;
  place.disabled = places.length === 0;
  count.textContent = places.length === 0 ? "" : `${Math.min(at + 1, places.length)} of ${places.length}`;
}

/** White space as something that can be seen. */
const visible = (token) => token.replace(/^ | $/g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "∅";

const percent = (chance) => (chance < 0.0005 ? "< 0.1 %" : `${(100 * chance).toFixed(chance < 0.0995 ? 1 : 0)} %`);
