// Settings of sampling. They are stored in this browser; a parameter of the same name in the address wins.

import { $, el } from "./dom.js";
import { read, write } from "./address.js";

const KEY = "anygpu.settings";
const FIELDS = {
  temperature: { label: "Temperature", value: 0.8, min: 0, max: 2, step: 0.05 },
  top_k: { label: "Top-k", value: 40, min: 0, max: 64, step: 1 },
  top_p: { label: "Top-p", value: 0.95, min: 0.05, max: 1, step: 0.05 },
  max_tokens: { label: "Max tokens", value: 400, min: 1, max: 4096, step: 1 },
  seed: { label: "Seed", value: "", min: 0, max: 4294967295, step: 1, placeholder: "random" },
};
const inputs = {};

/** Makes the fields. */
export function startSettings() {
  const kept = restore();
  for (const [name, { label, value, ...rest }] of Object.entries(FIELDS)) {
    const start = read(name) ?? kept[name] ?? value;
    inputs[name] = el("input", { type: "number", name, inputMode: "decimal", value: start, onchange: keep, ...rest });
    $("settings-fields").append(el("label", {}, el("span", {}, label), inputs[name]));
  }
  const reset = el("button", { type: "button", className: "link", onclick: resetAll }, "Reset");
  const note = "At temperature 0 the most likely token is always chosen; top-k, top-p and the seed then have no effect. ";
  $("settings-fields").append(el("p", { className: "fine" }, note, reset));
}

/** Returns the settings as fields of a request. Without a seed from the visitor, each call has a new one. */
export function sampling() {
  const values = Object.fromEntries(Object.keys(FIELDS).map((name) => [name, valueOf(name)]));
  values.seed = values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0];
  return values;
}

/** Whether the address has settings of sampling. */
export const isSamplingGiven = () => ["temperature", "seed", "top_k", "top_p"].some((name) => read(name) !== null);

/** Clears the seed of the address, which belongs to one story. */
export function dropSeed() {
  if (inputs.seed.value !== read("seed")) return;
  inputs.seed.value = "";
  write("seed", null);
}

/** Returns the value of a field, limited to its bounds; undefined for an empty seed. */
function valueOf(name) {
  const { value, min, max, step } = FIELDS[name];
  const number = inputs[name].valueAsNumber;
  if (!Number.isFinite(number)) return value === "" ? undefined : value;
  const held = Math.min(max, Math.max(min, number));
  return step === 1 ? Math.round(held) : held;
}

function resetAll() {
  for (const [name, { value }] of Object.entries(FIELDS)) inputs[name].value = value;
  keep();
}

function keep() {
  const values = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
  try {
    localStorage.setItem(KEY, JSON.stringify(values));
  } catch {
    // Without storage, the settings last as long as the page.
  }
}

function restore() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}
