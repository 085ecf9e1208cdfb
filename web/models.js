// The models tab: the current model, suggestions, and the cached models.

import { AnyGpu } from "./anygpu/src/index.js";
import { $, el, fill } from "./dom.js";
import { bytes, fileName, plural } from "./format.js";
import { BUILT_IN, session } from "./session.js";
import { bringing, suggestions } from "./suggestions.js";

const current = el("div", { className: "card" });
const kept = el("div", {});
let load = () => {};

/** Builds the view. `loadModel` loads `{ source, name }`; `forgetAll` deletes the conversations. */
export function startModels(loadModel, forgetAll) {
  load = loadModel;
  $("models").append(
    el("h2", {}, "In use"),
    current,
    el("h2", {}, "Load another model"),
    ...bringing(load),
    el("h2", {}, "Suggestions"),
    suggestions(load),
    el("h2", {}, "Cached models"),
    kept,
    el(
      "p",
      { className: "fine" },
      "Conversations are kept in this browser too, and continue after a reload. ",
      el("button", { type: "button", className: "link", onclick: forgetAll }, "Delete them"),
    ),
  );
  session.addEventListener("ready", drawCurrent);
  session.addEventListener("ready", drawKept);
  drawCurrent();
}

function drawCurrent() {
  const info = session.engine?.info;
  if (!info) {
    fill(current, el("p", { className: "fine" }, "No model loaded."));
    return;
  }
  const facts = [
    info.architecture,
    bytes(info.file_bytes),
    `context of ${plural(info.n_ctx, "token")}`,
    `vocabulary of ${info.vocab.toLocaleString("en")}`,
    info.has_chat ? "chat model" : "completion model",
    info.cache.state === "off" && typeof session.model.source === "string" && `not cached: ${info.cache.reason}`,
  ];
  fill(
    current,
    el("h3", {}, session.model.name),
    el("p", { className: "fine" }, facts.filter(Boolean).join(" · ")),
  );
}

/** Shows the cached models, with buttons to load and delete them. */
export async function drawKept() {
  try {
    const entries = await AnyGpu.cache.list();
    const total = entries.reduce((sum, entry) => sum + entry.stored, 0);
    const rows = byModel(entries).map(keptRow);
    const clear = el(
      "button",
      { type: "button", className: "link", onclick: () => remove(() => AnyGpu.cache.clear()) },
      "Delete all",
    );
    fill(
      kept,
      rows.length
        ? el("ul", { className: "list" }, ...rows)
        : el(
            "p",
            { className: "fine" },
            "None yet. Downloaded models are cached, so that the next visit needs no network.",
          ),
      rows.length > 1
        ? el("p", { className: "fine" }, `${plural(rows.length, "model")}, ${bytes(total)}. `, clear)
        : "",
    );
  } catch (error) {
    fill(kept, el("p", { className: "fine" }, `This browser cannot cache models: ${error.message}`));
  }
}

/** Groups cache entries by model: a split model has one for each of its files. */
function byModel(entries) {
  const models = new Map();
  for (const entry of entries) {
    const model = entry.key.replace(/-\d{5}(?=-of-\d{5}\.gguf)/, "");
    models.set(model, [...(models.get(model) || []), entry]);
  }
  return [...models.values()];
}

function keptRow(entries) {
  const source = entries[0].key;
  const size = entries.reduce((sum, entry) => sum + entry.size, 0);
  const stored = entries.reduce((sum, entry) => sum + entry.stored, 0);
  const held = stored < size ? `${bytes(stored)} of ${bytes(size)}` : bytes(size);
  const drop = () => Promise.all(entries.map((entry) => AnyGpu.cache.delete(entry.key)));
  const name = source === BUILT_IN.source ? BUILT_IN.name : fileName(source);
  return el(
    "li",
    {},
    el(
      "div",
      {},
      el("h3", {}, name),
      el("p", { className: "fine number" }, `${held} · ${origin(source)}`),
    ),
    el("button", { type: "button", "aria-label": `Load ${name}`, onclick: () => load({ source, name }) }, "Load"),
    el(
      "button",
      { type: "button", "aria-label": `Delete ${name}`, onclick: () => remove(drop) },
      "Delete",
    ),
  );
}

const origin = (address) => {
  const { host, origin: from } = new URL(address, document.baseURI);
  return from === location.origin ? "this site" : host;
};

async function remove(act) {
  try {
    await act();
  } finally {
    await drawKept();
  }
}
