// Chat, for models that come with a chat template. The conversation is the page's: it outlives every engine, and the
// page itself. Its turns are kept by `kept.js`, and an answer that was under way goes on by the engine's session of
// that name.

import { $, el, fill } from "./dom.js";
import { duration, leftOut, plural, rate } from "./format.js";
import { SESSION, forget, keep, turnsKept } from "./kept.js";
import { session } from "./session.js";
import { sampling } from "./settings.js";
import { shown } from "./tabs.js";
import * as speak from "./speak.js";

const messages = turnsKept();
const list = $("messages");
const field = $("message");
const title = el("h2");
const about = el("p");
const choose = el("button", { type: "button", className: "primary" }, "Choose a chat model");
let running = false;
let onError = () => {};

const onTouch = () => matchMedia("(pointer: coarse)").matches;

/** Whether the loaded model can hold a conversation. */
export const canChat = () => Boolean(session.engine?.info.has_chat);

/** Wires the chat up; `report` gets the errors, `showModels` leads to where models are loaded. */
export function startChat(report, showModels) {
  onError = report;
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) session.stop();
    else send();
  });
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (event) => {
    // On touch screens Enter breaks the line, as their keyboards have no Shift+Enter.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || onTouch()) return;
    event.preventDefault();
    if (!running) send();
  });
  $("new-chat").addEventListener("click", startOver);
  choose.addEventListener("click", showModels);
  $("chat-empty").append(title, about, choose);
  for (const event of ["loading", "ready", "failed", "cancelled"]) session.addEventListener(event, draw);
  session.addEventListener("ready", carryOn);
  for (const { role, content } of messages) list.append(role === "user" ? question(content) : answerOf(content).item);
  draw();
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

const question = (content) => el("li", { className: "user" }, content);

/** An answer: where its text and what is said of it go. */
function answerOf(content = "") {
  const [text, note] = [document.createTextNode(content), el("p", { className: "fine number" })];
  const item = el("li", { className: "assistant" }, el("p", {}, text, el("span", { className: "caret" })), note);
  return { item, text, note };
}

/** Answers the question that the page was closed before, or goes on with the answer that was begun. */
async function carryOn() {
  if (running || !isWaiting() || !canChat()) return;
  const asked = list.lastElementChild;
  await answer(asked, async (onText, onOverflow) => {
    const { engine } = session;
    const [prompt, kept] = await Promise.all([engine.encode(messages), engine.tokens({ session: SESSION })]);
    const isBegun = prompt.every((token, index) => token === kept[index]);
    return isBegun ? session.resume("chat", SESSION, onText, onOverflow) : ask(onText, onOverflow);
  });
}

const ask = (onText, onOverflow) =>
  session.generate("chat", { messages: [...messages], ...sampling() }, onText, onOverflow, SESSION);

async function send() {
  const content = field.value.trim();
  if (!content || !canChat() || session.loading) return;
  await session.stop();
  const asked = question(content);
  messages.push({ role: "user", content });
  keep(messages);
  list.append(asked);
  field.value = "";
  grow();
  await answer(asked, ask);
}

/** Shows the answer to a question as it comes. */
async function answer(asked, run) {
  const { item, text, note } = answerOf();
  const turn = messages[messages.length - 1];
  item.setAttribute("aria-busy", "true");
  list.append(item);
  speak.begin();
  running = true;
  draw();
  scrollToEnd(true);
  try {
    const onText = (piece) => {
      const follow = isAtEnd();
      text.appendData(piece);
      speak.say(piece);
      scrollToEnd(follow);
    };
    // What is left is computed again, which may take a while.
    const onOverflow = (overflow) => (note.textContent = leftOut(overflow));
    const result = await run(onText, onOverflow);
    const follow = isAtEnd();
    note.textContent = describe(result);
    scrollToEnd(follow);
  } catch (error) {
    onError(error);
  }
  // Meanwhile the conversation may have been forgotten.
  const isOurs = messages.includes(turn);
  if (isOurs && text.data) {
    messages.push({ role: "assistant", content: text.data });
  } else if (isOurs) {
    // Without an answer the question goes back to where it was written: nothing has to be typed twice.
    messages.pop();
    asked.remove();
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
  const able = canChat();
  const idle = session.engine && !able;
  $("chat-empty").hidden = !session.engine || messages.length > 0;
  title.textContent = able ? `Talk with ${session.model.name}` : `${session.model?.name} does not chat`;
  about.textContent = able
    ? "It runs in this browser, and what you write stays here. The conversation is kept when the backend or the model changes."
    : "It continues a text, and has no template for a conversation. A model that has one answers here.";
  choose.hidden = able;
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
