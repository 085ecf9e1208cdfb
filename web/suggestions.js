// Models that this page suggests, and controls to load another one.

import { el } from "./dom.js";
import { loadFiles } from "./drop.js";
import { fileName } from "./format.js";
import { BUILT_IN } from "./session.js";

const HUB = "https://huggingface.co";
/** Chat models, the smallest first. */
const THAT_CHAT = [
  {
    name: "SmolLM2 135M Instruct",
    about: "Chat, 105 MB. Fast on any device; simple answers.",
    source: `${HUB}/bartowski/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct-Q4_K_M.gguf`,
  },
  {
    name: "SmolLM2 360M Instruct",
    about: "Chat, 386 MB. Better answers; needs a GPU to be fast.",
    source: `${HUB}/HuggingFaceTB/SmolLM2-360M-Instruct-GGUF/resolve/main/smollm2-360m-instruct-q8_0.gguf`,
  },
];

/** Makes a list of the suggestions; `load` gets the chosen one. */
export function suggestions(load, { chat = false } = {}) {
  const all = chat ? THAT_CHAT : [{ ...BUILT_IN, about: "Stories, 18 MB. Built into this page." }, ...THAT_CHAT];
  const row = ({ name, about, source }) => {
    const act = { type: "button", "aria-label": `Load ${name}`, onclick: () => load({ source, name }) };
    const said = el("div", {}, el("h3", {}, name), el("p", { className: "fine" }, about));
    return el("li", {}, said, el("button", act, "Load"));
  };
  return el("ul", { className: "list" }, ...all.map(row));
}

/** Makes a field for an address or a name on the hub, and a button for local files. */
export function bringing(load) {
  const address = el("input", {
    type: "text",
    inputMode: "url",
    required: true,
    placeholder: "hf:owner/repo, or a URL",
    autocomplete: "off",
    spellcheck: false,
    "aria-label": "Address of a GGUF file, or its name on Hugging Face",
  });
  const submit = (event) => {
    event.preventDefault();
    const source = address.value.trim();
    load({ source, name: fileName(source) });
  };
  const picker = el("input", {
    type: "file",
    accept: ".gguf",
    multiple: true,
    hidden: true,
    onchange: () => loadFiles([...picker.files], load),
  });
  const pick = el("button", { type: "button", onclick: () => picker.click() }, "Choose a file");
  return [
    el("form", { className: "row", onsubmit: submit }, address, el("button", { className: "primary", type: "submit" }, "Load")),
    el(
      "p",
      { className: "row" },
      pick,
      picker,
      el("span", { className: "fine" }, "or drop one anywhere on this page (all files of a split model at once). Files stay on your machine."),
    ),
    el("p", { className: "fine" }, "Model too large for one machine? ", el("a", { href: "pool.html" }, "Pool several"), "."),
  ];
}
