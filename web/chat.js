// Chat, for models that come with a chat template. The conversation is the page's: it outlives every engine, and the
// page itself. Its turns are kept by `kept.js`, and an answer that was under way goes on by the engine's session of
// that name.

import { $, el, fill } from "./dom.js";
import { duration, leftOut, plural, rate } from "./format.js";
import { SESSION, forget, keep, keepSystem, systemKept, turnsKept } from "./kept.js";
import { session } from "./session.js";
import { sampling } from "./settings.js";
import { bringing, suggestions } from "./suggestions.js";
import { shown } from "./tabs.js";
import { answerOf, question } from "./turns.js";
import * as speak from "./speak.js";

const SAMPLES = ["Why is the sky blue?", "Write a short poem about rain.", "Give me three ideas for dinner."];

const messages = turnsKept();
const list = $("messages");
const field = $("message");
const system = $("system");
const title = el("h2");
const about = el("p");
const samples = el("ul", { className: "samples", "aria-label": "Questions to begin with" });
const offer = el("div", { className: "offer" });
let running = false;
let onError = () => {};

const onTouch = () => matchMedia("(pointer: coarse)").matches;

/** Wires the chat up; `report` gets the errors, `load` loads a model that the visitor chooses. */
export function startChat(report, load) {
  onError = report;
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) session.stop();
    else send(field.value);
  });
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (event) => {
    // On touch screens Enter breaks the line, as their keyboards have no Shift+Enter.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || onTouch()) return;
    event.preventDefault();
    if (!running) send(field.value);
  });
  system.value = systemKept();
  system.addEventListener("change", () => keepSystem(system.value));
  $("system-fold").open = system.value !== "";
  $("new-chat").addEventListener("click", startOver);
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

/** Forgets the conversation, and what this browser keeps of it. */
export async function startOver() {
  await session.stop();
  messages.length = 0;
  fill(list);
  draw();
  field.focus();
  await forget();
}

const isWaiting = () => messages.length > 0 && messages[messages.length - 1].role === "user";

/** A question, which can be changed: what followed it is dropped then. */
function asked(content) {
  const item = question(content, async (text) => {
    if (!isFree()) return;
    await session.stop();
    dropFrom([...list.children].indexOf(item));
    await send(text);
  });
  return item;
}

/** Gives the last answer again. */
async function regenerate() {
  if (!isFree()) return;
  await session.stop();
  if (!isWaiting()) dropFrom(messages.length - 1);
  if (isWaiting()) await answer(list.lastElementChild, ask);
}

/** Drops the turns from a place on. */
function dropFrom(index) {
  messages.length = index;
  while (list.children.length > index) list.lastChild.remove();
}

/** Whether a turn may begin now. */
const isFree = () => session.canChat && !session.loading && !running;

/** The conversation as the model gets it. */
function conversation() {
  const instruction = system.value.trim();
  return instruction ? [{ role: "system", content: instruction }, ...messages] : [...messages];
}

/** Answers the question that the page was closed before, or goes on with the answer that was begun. */
async function carryOn() {
  if (running || !isWaiting() || !session.canChat) return;
  await answer(list.lastElementChild, async (onText, onOverflow) => {
    const { engine } = session;
    const [prompt, kept] = await Promise.all([engine.encode(conversation()), engine.tokens({ session: SESSION })]);
    const isBegun = prompt.every((token, index) => token === kept[index]);
    return isBegun ? session.resume("chat", SESSION, onText, onOverflow) : ask(onText, onOverflow);
  });
}

const ask = (onText, onOverflow) =>
  session.generate("chat", { messages: conversation(), ...sampling() }, onText, onOverflow, SESSION);

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

/** Shows the answer to a question as it comes. */
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
    // What is left is computed again, which may take a while.
    const onOverflow = (overflow) => (note.textContent = leftOut(overflow));
    const result = await run(onText, onOverflow);
    const follow = isAtEnd();
    note.textContent = describe(result);
    reply.end();
    scrollToEnd(follow);
  } catch (error) {
    onError(error);
  }
  // Meanwhile the conversation may have been forgotten.
  const isOurs = messages.includes(turn);
  if (isOurs && reply.content()) {
    messages.push({ role: "assistant", content: reply.content() });
  } else if (isOurs) {
    // Without an answer the question goes back to where it was written: nothing has to be typed twice.
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
  if (pace) parts.push(`${rate(pace)} a second`);
  if (first) parts.push(`first after ${duration(first)}`);
  if (finish === "cancelled") parts.push("stopped");
  if (finish === "length") parts.push("cut off at the maximum length");
  if (overflow) parts.push(leftOut(overflow));
  return parts.join(" · ");
}

function draw() {
  const able = session.canChat;
  const idle = session.engine && !able;
  $("chat-empty").hidden = !session.engine || messages.length > 0;
  title.textContent = able ? `Talk with ${session.model.name}` : "Choose a model to talk with";
  about.textContent = able
    ? "It runs in this browser, and what you write stays here. The conversation is kept when the backend or the model changes."
    : `${session.model?.name} only goes on with a text. These answer; each is downloaded once and then kept in this browser.`;
  samples.hidden = !able;
  offer.hidden = able;
  list.classList.toggle("running", running || !able);
  $("system-fold").hidden = !able;
  $("composer").hidden = idle && messages.length === 0;
  $("new-chat").hidden = messages.length === 0;
  $("send").textContent = running ? "Stop" : "Send";
  $("send").disabled = !running && (!able || session.loading);
  // Short: a phone shows one line.
  if (able || session.loading) field.placeholder = "Write a message";
  else field.placeholder = session.engine ? "This model cannot chat" : "No model is loaded";
  $("chat-hint").textContent = able
    ? `${session.model.name} answers.${onTouch() ? "" : " Shift+Enter breaks the line."}`
    : "";
}

/** The field is as high as what is written in it. */
function grow() {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

const isAtEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 80;

function scrollToEnd(follow) {
  if (follow && shown() === "chat") scrollTo(0, document.documentElement.scrollHeight);
}
