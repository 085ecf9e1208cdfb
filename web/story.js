// Plain completion, dressed as what the built-in model does: a story whose first words are yours.

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
/** What shows how the model chose each word, once anybody wants to see it. */
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

/** Wires the story up; `report` gets the errors. */
export function startStory(report) {
  onError = report;
  opening.textContent = read("prompt") ?? FIRST;
  opening.contentEditable = "plaintext-only";
  // Browsers without the plain kind ignore it, or throw; then formatting is kept out at the paste.
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

/** The story that stands there: what it was asked for with, what told it, and how fast. */
function latest() {
  const { model, backend, engine } = session;
  const { chosen } = engine.report;
  return {
    prompt: begun,
    text: told.textContent,
    // As many tokens as it has, and the one that ends it.
    request: { ...request, max_tokens: outcome.tokens + (outcome.finish === "stop" ? 1 : 0) },
    pace: outcome.rate,
    model,
    backend,
    family: family(chosen),
    adapter: engine.info.adapter,
  };
}

/** The first story of a visit is greedy, so that everybody is told the same one and machines can be compared. */
export const tellFirst = () => tell({ greedy: !isSamplingGiven() });

/** Whether a story was broken off that can be carried on. */
export const isUnderWay = () => running;

/** Carries the story on from the words that stand there. */
export const carryOn = () => tell({ onward: true });

/** Tells the story that stands there once more, word for word, and shows how each word was chosen; or no longer shows it. */
async function think(wanted) {
  thinking?.end();
  thinking = wanted ? await bringThinking() : null;
  $("story-think").setAttribute("aria-pressed", String(wanted));
  if (thinking) tell({ again: begun === opening.textContent });
}

/** Another story: from another opening, unless the words at the beginning are the visitor's own. */
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

/** Tells a story as soon as the one under way has ended. */
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

/** Writes pieces behind what stands there. */
function writer() {
  const text = told.appendChild(document.createTextNode(""));
  return (piece) => text.appendData(piece);
}

/**
 * What came of a story that was carried on; null if it cannot be told again in one go, as with other random numbers or
 * another beginning.
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
