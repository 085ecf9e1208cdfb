// Options of this run, and its results.

// Loaded from below a path, to test that too.
import * as everything from "/below/a/path/anygpu/src/index.js";

/** Address of the package. */
export const PACKAGE = "/below/a/path/anygpu";

const query = new URLSearchParams(location.search);

/** The package. */
export const { AnyGpu, ...errors } = everything;

/** Options of `cargo xtask browser` and `cargo xtask bench`. */
export const options = {
  run: query.get("run"),
  browser: query.get("browser"),
  /** Version of an old browser; null for a current one. */
  version: query.has("version") ? Number(query.get("version")) : null,
  backend: query.get("backend"),
  model: query.get("model") ?? "gab",
  prompt: query.get("prompt"),
  prompts: Number(query.get("prompts") ?? Infinity),
  depth: Number(query.get("depth") ?? 0),
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

/** Models by their names here: their files, and the files with the tokens that they must generate. */
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

/** Returns a model by its name here or its file name, with its reference if it has one. */
export const modelNamed = (name) => MODELS[name] ?? { file: name };

/** Model to test. */
export const model = modelNamed(options.model);

options.tokens = Number(query.get("tokens") ?? model.tokens ?? 64);

/** Returns the prompts with known continuations: `{ prompt, prompt_ids, greedy_ids }`. */
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

/** Reports progress. Without any for a while, the run counts as hung. */
export function beat() {
  if (performance.now() - last < 1000) return;
  last = performance.now();
  say("").catch(() => {});
}

/** Waits. */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns the median of some numbers. */
export const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** The results of checks. */
export class Results {
  passed = 0;
  failed = 0;
  skipped = 0;
  checks = [];

  /** Adds the result of a check, and shows it. */
  add(name, failure, more = {}) {
    if (failure === undefined) this.passed++;
    else this.failed++;
    this.checks.push({ name, ok: failure === undefined, message: failure, ...more });
    return say(failure === undefined ? `ok      ${name}` : `FAILED  ${name}: ${failure}`);
  }

  /** Adds a check that cannot be run here. */
  skip(name, reason) {
    this.skipped++;
    this.checks.push({ name, skipped: reason });
    return say(`SKIPPED ${name}: ${reason}`);
  }
}
