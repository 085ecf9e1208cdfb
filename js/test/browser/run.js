// What this page was asked to do, and how it says what it did.

// Below a path, so that what is tested here also works there.
import * as everything from "/below/a/path/anygpu/src/index.js";

/** Where the package is. */
export const PACKAGE = "/below/a/path/anygpu";

const query = new URLSearchParams(location.search);

/** The package. */
export const { AnyGpu, ...errors } = everything;

/** The options of `cargo xtask browser` and `cargo xtask bench`. */
export const options = {
  run: query.get("run"),
  browser: query.get("browser"),
  /** Of an old browser. */
  version: query.has("version") ? Number(query.get("version")) : null,
  backend: query.get("backend"),
  model: query.get("model") ?? "gab",
  prompt: query.get("prompt"),
  prompts: Number(query.get("prompts") ?? Infinity),
  prefill: Number(query.get("prefill") ?? 128),
  decode: Number(query.get("decode") ?? 64),
  op: query.get("op") ?? undefined,
  every: Number(query.get("every") ?? 1),
  only: (query.get("only") ?? "").split(","),
  kills: Number(query.get("kills") ?? 8),
  seed: Number(query.get("seed") ?? 0),
  cycles: Number(query.get("cycles") ?? 48),
  session: query.get("session"),
  worker: query.get("worker") !== "false",
  what: (query.get("what") ?? "").split(","),
  models: (query.get("models") ?? "").split(","),
  repeat: Number(query.get("repeat") ?? 3),
  queued: Number(query.get("queued") ?? 20),
  peers: query.get("peers") === "true",
  threads: query.has("threads") ? Number(query.get("threads")) : undefined,
  engine: query.get("engine") ?? "anygpu",
  source: query.get("source") ?? "blob",
};

/** The models that have a name here: their files, and where the tokens that they must give are written. */
const MODELS = {
  gab: { file: "gab-q4_0.gguf", reference: "gab.reference.json", read: (r) => r.files["gab-q4_0.gguf"] },
  smollm2: {
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    reference: "smollm2_f32.json",
    read: (r) => Object.values(r.cases),
    nCtx: 512,
    tokens: 16,
  },
  gemma3: {
    file: "gemma-3-270m-q4_k_m.gguf",
    reference: "gemma3_f32.json",
    read: (r) => Object.values(r.cases),
    nCtx: 512,
    tokens: 8,
  },
};

/** A model by its name here, or that of its file: the file, and the reference if it has one. */
export const modelNamed = (name) => MODELS[name] ?? { file: name };

/** The model asked for. */
export const model = modelNamed(options.model);

options.tokens = Number(query.get("tokens") ?? model.tokens ?? 64);

/** The prompts whose continuation is known: `{ prompt, prompt_ids, greedy_ids }`. */
export async function reference(of = model) {
  const answer = await fetch(`/files/${of.reference}`);
  if (!answer.ok) throw new Error(`${of.reference}: ${answer.status}`);
  return of.read(await answer.json()).slice(0, options.prompts);
}

/** Shows a line. */
export function say(text) {
  return fetch("/log", { method: "POST", body: text });
}

let last = 0;

/** Says that there is progress. Without any for a while the run counts as hung. */
export function beat() {
  if (performance.now() - last < 1000) return;
  last = performance.now();
  say("").catch(() => {});
}

/** Waits. */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The middle one of some numbers. */
export const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** What checks add up to. */
export class Results {
  passed = 0;
  failed = 0;
  skipped = 0;
  checks = [];

  /** Notes a check, and shows it. */
  add(name, failure, more = {}) {
    if (failure === undefined) this.passed++;
    else this.failed++;
    this.checks.push({ name, ok: failure === undefined, message: failure, ...more });
    return say(failure === undefined ? `ok      ${name}` : `FAILED  ${name}: ${failure}`);
  }

  /** Notes what cannot be checked here. */
  skip(name, reason) {
    this.skipped++;
    this.checks.push({ name, skipped: reason });
    return say(`SKIPPED ${name}: ${reason}`);
  }
}
