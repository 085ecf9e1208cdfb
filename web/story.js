// Plain completion, presented as a story with the visitor's first words, since the built-in model tells stories.

import { $ } from "./dom.js";
import { read, write } from "./address.js";
import { family, leftOut, plural } from "./format.js";
import { later, styles } from "./later.js";
import { session } from "./session.js";
import { dropSeed, isSamplingGiven, sampling } from "./settings.js";
import * as speak from "./speak.js";

const FIRST = "Once upon a time";
const OPENINGS = [
  FIRST,
  "The little dragon",
  "Tom and his dog",
  "One day, a girl named Lily found a red ball.",
  "Tom and Anna went to the park. It began to rain.",
  "It was a dark and rainy night.",
];

const opening = $("opening");
const told = $("told");
const note = $("story-note");
/** Loads the view of token probabilities when the visitor wants to see it. */
const bringThinking = later(async () => {
  const [thinking] = await Promise.all([import("./think.js"), styles("think.css")]);
  return thinking;
});
let thinking = null;
let running = false;
let telling = Promise.resolve();
let request = {};
let begun = "";
let outcome = null;
let onError = () => {};

/** Sets up the story; `report` gets the errors. */
export function startStory(report) {
  onError = report;
  opening.textContent = read("prompt") ?? FIRST;
  opening.contentEditable = "plaintext-only";
  // Browsers without "plaintext-only" ignore it, or throw. Formatting is then removed when text is pasted.
  if (opening.contentEditable !== "plaintext-only") opening.contentEditable = "true";
  opening.addEventListener("paste", (event) => {
    event.preventDefault();
    const text = event.clipboardData.getData("text/plain").replace(/\s+/g, " ");
    document.execCommand("insertText", false, text);
  });
  opening.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    tell();
  });
  $("story-go").addEventListener("click", () => (running ? session.stop() : another()));
  $("story-continue").addEventListener("click", () => tell({ onward: true }));
  $("story-think").addEventListener("click", () => think(thinking === null).catch(onError));
  $("story-share").addEventListener("click", async () => (await import("./share.js")).share(latest()));
  for (const event of ["loading", "ready", "failed", "cancelled"]) session.addEventListener(event, draw);
  draw();
}

/** Returns the story that is shown: its request, the model and device, and the rate. */
function latest() {
  const { model, backend, engine } = session;
  const { chosen } = engine.report;
  return {
    prompt: begun,
    text: told.textContent,
    // The story's tokens, and one for the token that ended it.
    request: { ...request, max_tokens: outcome.tokens + (outcome.finish === "stop" ? 1 : 0) },
    pace: outcome.rate,
    model,
    backend,
    family: family(chosen),
    adapter: engine.info.adapter,
  };
}

/**
 * Tells the first story of a visit, with greedy decoding, so that it is the same everywhere and machines can be
 * compared.
 */
export const tellFirst = () => tell({ greedy: !isSamplingGiven() });

/** Whether a story is being told. */
export const isUnderWay = () => running;

/** Continues the story from the words that are shown. */
export const carryOn = () => tell({ onward: true });

/** Shows how each word was chosen, and tells the shown story again for that, word for word; or hides it. */
async function think(wanted) {
  thinking?.end();
  thinking = wanted ? await bringThinking() : null;
  $("story-think").setAttribute("aria-pressed", String(wanted));
  if (thinking) tell({ again: begun === opening.textContent });
}

/** Tells another story. It gets another opening, unless the visitor wrote the first words. */
function another() {
  write("prompt", null);
  dropSeed();
  const current = opening.textContent;
  if (OPENINGS.includes(current)) {
    const others = OPENINGS.filter((text) => text !== current);
    opening.textContent = others[Math.floor(Math.random() * others.length)];
  }
  tell();
}

/** Tells a story as soon as the current one has ended. */
function tell(how = {}) {
  session.stop();
  telling = telling.then(() => tellNow(how));
}

async function tellNow({ greedy = false, onward = false, again = false }) {
  if (!session.engine) return;
  // A story continues as it began: with the same sampling, or greedily.
  if (!onward) {
    begun = opening.textContent;
    if (!again) request = greedy ? { ...sampling(), temperature: 0 } : sampling();
    told.textContent = "";
    thinking?.begin(told);
  }
  $("share").hidden = true;
  const shown = thinking;
  const prompt = opening.textContent + told.textContent;
  const write = shown ? shown.writer(told, session.engine, prompt) : writer();
  speak.begin();
  if (!onward) {
    speak.say(opening.textContent);
    opening.scrollIntoView({ block: "nearest" });
  }
  note.textContent = "";
  running = true;
  draw();
  let finish = null;
  try {
    const onText = (piece, { logprobs }) => {
      write(piece, logprobs);
      speak.say(piece);
    };
    const likely = shown ? { logprobs: shown.CANDIDATES } : {};
    const onOverflow = (overflow) => (note.textContent = `${leftOut(overflow)}.`);
    const result = await session.generate("completion", { prompt, ...request, ...likely }, onText, onOverflow);
    finish = result.finish;
    outcome = onward ? withMore(result) : result;
    note.textContent = describe(result);
  } catch (error) {
    onError(error);
  }
  if (finish === null) outcome = null;
  running = false;
  shown?.rest();
  speak.finish();
  draw();
  $("story-continue").hidden = finish === "stop" || finish === null;
}

/** Returns a function that appends pieces to the story. */
function writer() {
  const text = told.appendChild(document.createTextNode(""));
  return (piece) => text.appendData(piece);
}

/**
 * Returns the outcome of a continued story as a whole; null if one request cannot generate it again, because it is
 * sampled or its opening was changed.
 */
function withMore(result) {
  if (!outcome || request.temperature > 0 || opening.textContent !== begun) return null;
  return { ...result, tokens: outcome.tokens + result.tokens };
}

function describe({ finish, tokens, overflow }) {
  const how =
    request.temperature === 0
      ? "greedy decoding, so the same text on every machine"
      : `temperature ${request.temperature}, seed ${request.seed}`;
  const end = { stop: "The end.", length: "Stopped at the token limit.", cancelled: "Stopped." }[finish] ?? "";
  const left = overflow ? ` ${leftOut(overflow)}.` : "";
  return `${end} ${plural(tokens, "token")} by ${session.model.name}, ${how}.${left}`;
}

function draw() {
  const go = $("story-go");
  go.textContent = running ? "Stop" : "Another story";
  go.disabled = !running && (!session.engine || session.loading);
  $("story-text").setAttribute("aria-busy", String(running));
  if (running || !session.engine) $("story-continue").hidden = true;
  $("story-think").disabled = !session.engine;
  $("story-share").hidden = running || !session.engine || outcome === null || told.textContent === "";
}
