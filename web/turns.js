// The turns of a conversation as elements, with their buttons.

import { copyFrom } from "./copy.js";
import { el, fill } from "./dom.js";
import { drawer, prepare } from "./markdown.js";

/** Makes a question; `edit` gets the changed text. */
export function question(content, edit) {
  const item = el("li", { className: "user" });
  const draw = () => {
    const button = el("button", { type: "button", className: "small", onclick: () => change(item, content, edit, draw) }, "Edit");
    fill(item, el("p", { className: "text", dir: "auto" }, content), el("p", { className: "does" }, button));
  };
  draw();
  return item;
}

/** Replaces a question by a field, until the question is sent again or the change is cancelled. */
function change(item, content, edit, leave) {
  const field = el("textarea", { value: content, dir: "auto", rows: Math.min(8, content.split("\n").length + 1), "aria-label": "Your message" });
  const cancel = () => {
    leave();
    item.querySelector("button").focus();
  };
  const submit = (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (text) edit(text);
  };
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    cancel();
  });
  fill(
    item,
    el(
      "form",
      { className: "edit", onsubmit: submit },
      field,
      el("p", { className: "fine" }, "Messages after this one are replaced."),
      el("button", { type: "button", onclick: cancel }, "Cancel"),
      el("button", { type: "submit", className: "primary" }, "Ask again"),
    ),
  );
  field.focus();
}

/** Makes an answer. It grows by `add`, and by `think` before that, until its `end`; `regenerate` generates it again. */
export function answerOf(content, regenerate) {
  const text = el("div", { className: "text", dir: "auto" });
  const note = el("span", { className: "fine number" });
  const copy = el("button", { type: "button", className: "small", onclick: () => copyFrom(copy, content) }, "Copy");
  const again = el("button", { type: "button", className: "small again", onclick: regenerate }, "Regenerate");
  const item = el("li", { className: "assistant" }, text, el("p", { className: "does" }, copy, again, note));
  const show = drawer(text);
  let frame = 0;
  const draw = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    show(content);
  };
  draw();
  prepare().then(draw);
  const add = (piece) => {
    content += piece;
    // A screen shows at most one change per frame, however fast tokens come.
    frame = frame || requestAnimationFrame(draw);
  };
  let thoughts = null;
  /** Adds reasoning, which is shown folded and is not part of the conversation. */
  const think = (piece) => {
    if (thoughts === null) {
      thoughts = el("p", { dir: "auto" });
      text.before(el("details", { className: "thoughts" }, el("summary", {}, "Reasoning"), thoughts));
    }
    thoughts.append(piece);
  };
  return { item, note, add, think, end: draw, content: () => content };
}
