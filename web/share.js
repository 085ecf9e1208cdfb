// Sharing a story: a link that generates it again, word for word, and a picture of it.

import { $, el, fill } from "./dom.js";
import { drawCard } from "./card.js";
import { copyFrom } from "./copy.js";
import { BUILT_IN } from "./session.js";

const box = $("share");

/** Shows how to share a story; see `latest` of story.js. */
export function share(story) {
  const canvas = el("canvas", { role: "img", "aria-label": `A card with the story: ${story.prompt}${story.text}` });
  drawCard(canvas, story);
  const link = linkTo(story);
  const field = el("input", { type: "text", readOnly: true, value: link ?? "", "aria-label": "Link to this story", onfocus: () => field.select() });
  const copy = el("button", { type: "button", onclick: () => copyFrom(copy, link) }, "Copy link");
  const save = el("button", { type: "button", onclick: () => saveAs(canvas) }, "Save picture");
  const close = el("button", { type: "button", onclick: hide }, "Close");
  const way = link
    ? el("div", { className: "row" }, field, copy)
    : el("p", { className: "fine" }, "The model is a local file, so a link cannot include it. You can share the picture.");
  fill(box, el("h2", {}, "Share this story"), way, link ? el("p", { className: "fine" }, how(story)) : "", canvas, el("div", { className: "row" }, save, close));
  box.hidden = false;
  box.scrollIntoView({ block: "nearest" });
  (link ? copy : save).focus();
}

/** Hides the sharing box. */
export function hide() {
  box.hidden = true;
  fill(box);
  $("story-share").focus();
}

function how({ request }) {
  const same = "Anyone who opens the link sees the same story generated on their own machine.";
  return request.temperature === 0 ? same : `${same} The link includes the seed, ${request.seed}.`;
}

/** Returns the address that generates a story again; null if its model has no address. */
function linkTo({ prompt, request, model, backend }) {
  if (typeof model.source !== "string") return null;
  const { temperature, top_k, top_p, max_tokens, seed } = request;
  const state = { tab: "story", backend, prompt, temperature, max_tokens };
  if (temperature > 0) Object.assign(state, { top_k, top_p, seed });
  if (model.source !== BUILT_IN.source) state.model = model.source;
  return `${location.origin}${location.pathname}#${new URLSearchParams(state)}`;
}

function saveAs(canvas) {
  canvas.toBlob((picture) => {
    const address = URL.createObjectURL(picture);
    el("a", { href: address, download: "anygpu-story.png" }).click();
    // The browser has taken over the data by the next turn of the event loop.
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }, "image/png");
}
