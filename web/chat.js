// Chat, for models with a chat template. The conversation belongs to the page: it outlives every engine, and the page
// itself. Its turns are stored by `kept.js`, and an interrupted answer continues from the engine's session of that
// name.

import { $, el, fill } from "./dom.js";
import { duration, leftOut, plural, rate } from "./format.js";
import { forget, forgetAll, isBeside, keep, keepSystem, kept, systemKept, takePlace, turnsKept } from "./kept.js";
import { session } from "./session.js";
import { sampling } from "./settings.js";
import { bringing, suggestions } from "./suggestions.js";
import { shown } from "./tabs.js";
import { answerOf, question } from "./turns.js";
import * as speak from "./speak.js";

const SAMPLES = ["Why is the sky blue?", "Write a short poem about rain.", "Give me three ideas for dinner."];

/** Turns so far. */
const messages = [];
const list = $("messages");
const field = $("message");
const system = $("system");
const title = el("h2");
const about = el("p");
const samples = el("ul", { className: "samples", "aria-label": "Example questions" });
const offer = el("div", { className: "offer" });
let running = false;
let onError = () => {};

const onTouch = () => matchMedia("(pointer: coarse)").matches;

/** Sets up the chat. `report` gets the errors; `load` loads a model that the visitor chooses. */
export async function startChat(report, load) {
  onError = report;
  await takePlace();
  messages.push(...turnsKept());
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) session.stop();
    else send(field.value);
  });
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (event) => {
    // On touch screens Enter breaks the line, since their keyboards have no Shift+Enter.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || onTouch()) return;
    event.preventDefault();
    if (!running) send(field.value);
  });
  system.value = systemKept();
  system.addEventListener("change", () => keepSystem(system.value));
  $("system-fold").open = system.value !== "";
  $("new-chat").addEventListener("click", () => startOver(forget));
  samples.append(
    ...SAMPLES.map((text) => el("li", {}, el("button", { type: "button", onclick: () => send(text) }, text))),
  );
  offer.append(suggestions(load, { chat: true }), ...bringing(load));
  $("chat-empty").append(title, about, samples, offer);
  for (const event of ["loading", "ready", "failed", "cancelled"]) session.addEventListener(event, draw);
  session.addEventListener("ready", carryOn);
  for (const { role, content } of messages) list.append(role === "user" ? asked(content) : answerOf(content, regenerate).item);
  draw();
  carryOn();
}

/** Deletes this tab's conversation, and those that no other tab has open. */
export const startAfresh = () => startOver(forgetAll);

/** Begins a new conversation; `drop` deletes the stored one. */
async function startOver(drop) {
  await session.stop();
  messages.length = 0;
  fill(list);
  draw();
  field.focus();
  await drop();
}

const isWaiting = () => messages.length > 0 && messages[messages.length - 1].role === "user";

/** Makes a question that can be edited. Editing drops the turns after it. */
function asked(content) {
  const item = question(content, async (text) => {
    if (!isFree()) return;
    await session.stop();
    dropFrom([...list.children].indexOf(item));
    await send(text);
  });
  return item;
}

/** Generates the last answer again. */
async function regenerate() {
  if (!isFree()) return;
  await session.stop();
  if (!isWaiting()) dropFrom(messages.length - 1);
  if (isWaiting()) await answer(list.lastElementChild, ask);
}

/** Drops the turns from an index on. */
function dropFrom(index) {
  messages.length = index;
  while (list.children.length > index) list.lastChild.remove();
}

/** Whether a turn may begin now. */
const isFree = () => session.canChat && !session.loading && !running;

/** Returns the conversation as the model gets it. */
function conversation() {
  const instruction = system.value.trim();
  return instruction ? [{ role: "system", content: instruction }, ...messages] : [...messages];
}

/** Answers the question that was open when the page was closed, or continues the interrupted answer. */
async function carryOn() {
  if (running || !isWaiting() || !session.canChat) return;
  await answer(list.lastElementChild, async (onText, onOverflow) => {
    const { engine } = session;
    const name = kept();
    if (name === undefined) return ask(onText, onOverflow);
    const [prompt, begun] = await Promise.all([engine.encode(conversation()), engine.tokens({ session: name })]);
    const isBegun = prompt.every((token, index) => token === begun[index]);
    return isBegun ? session.resume("chat", name, onText, onOverflow) : ask(onText, onOverflow);
  });
}

const ask = (onText, onOverflow) =>
  session.generate("chat", { messages: conversation(), ...sampling() }, onText, onOverflow, kept());

async function send(text) {
  const content = text.trim();
  if (!content || !isFree()) return;
  await session.stop();
  const item = asked(content);
  messages.push({ role: "user", content });
  keep(messages);
  list.append(item);
  field.value = "";
  grow();
  await answer(item, ask);
}

/** Shows the answer to a question while it is generated. */
async function answer(asking, run) {
  const reply = answerOf("", regenerate);
  const { item, note } = reply;
  const turn = messages[messages.length - 1];
  item.setAttribute("aria-busy", "true");
  list.append(item);
  speak.begin();
  running = true;
  draw();
  scrollToEnd(true);
  try {
    const onText = (piece, { thought }) => {
      const follow = isAtEnd();
      if (thought) reply.think(thought);
      if (piece) reply.add(piece);
      speak.say(piece);
      scrollToEnd(follow);
    };
    // The rest is computed again, which may take a while.
    const onOverflow = (overflow) => (note.textContent = leftOut(overflow));
    const result = await run(onText, onOverflow);
    const follow = isAtEnd();
    note.textContent = describe(result);
    reply.end();
    scrollToEnd(follow);
  } catch (error) {
    onError(error);
  }
  // The conversation may have been deleted meanwhile.
  const isOurs = messages.includes(turn);
  if (isOurs && reply.content()) {
    messages.push({ role: "assistant", content: reply.content() });
  } else if (isOurs) {
    // Without an answer, the question returns to the field, so that it need not be typed again.
    messages.pop();
    asking.remove();
    item.remove();
    if (field.value === "") field.value = turn.content;
    grow();
  }
  if (isOurs) keep(messages);
  item.setAttribute("aria-busy", "false");
  running = false;
  speak.finish();
  draw();
}

function describe({ finish, tokens, rate: pace, first, overflow }) {
  const parts = [plural(tokens, "token")];
  if (pace) parts.push(`${rate(pace)} per second`);
  if (first) parts.push(`first after ${duration(first)}`);
  if (finish === "cancelled") parts.push("stopped");
  if (finish === "length") parts.push("stopped at the token limit");
  if (overflow) parts.push(leftOut(overflow));
  return parts.join(" · ");
}

function draw() {
  const able = session.canChat;
  const idle = session.engine && !able;
  $("chat-empty").hidden = !session.engine || (able && messages.length > 0);
  title.textContent = able ? `Chat with ${session.model.name}` : "Choose a chat model";
  about.textContent = able ? whereItRuns() : whatToDo();
  samples.hidden = !able;
  offer.hidden = able;
  list.classList.toggle("running", running || !able);
  $("system-fold").hidden = !able;
  $("composer").hidden = idle && messages.length === 0;
  $("new-chat").hidden = messages.length === 0;
  $("send").textContent = running ? "Stop" : "Send";
  $("send").disabled = !running && (!able || session.loading);
  // A phone shows only one short line.
  if (able || session.loading) field.placeholder = "Write a message";
  else field.placeholder = session.engine ? "This model cannot chat" : "No model is loaded";
  $("chat-hint").textContent = able
    ? `${session.model.name} answers.${onTouch() ? "" : " Shift+Enter adds a line."}`
    : "";
}

function whereItRuns() {
  const beside = isBeside() ? " Your other conversation is open in another tab." : "";
  return `It runs in this browser, and what you write stays here. The conversation is kept when you change the backend or the model.${beside}`;
}

/** Says what the visitor can do if the model cannot chat. */
function whatToDo() {
  const goesOn = messages.length > 0 ? " Your conversation is kept, and continues with the model that you choose." : "";
  return `${session.model?.name} is a completion model and cannot chat. These can; each is downloaded once and cached.${goesOn}`;
}

/** Makes the field as high as its text. */
function grow() {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

const isAtEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 80;

function scrollToEnd(follow) {
  if (follow && shown() === "chat") scrollTo(0, document.documentElement.scrollHeight);
}
