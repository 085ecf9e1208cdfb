// Assertions and helpers of the checks.

import { AnyGpu, beat, errors, options, reference } from "./run.js";
import { difference } from "./generate.js";
import { CHATML, withTemplate } from "./gguf.js";

/** File of the model that all checks use; small enough to be loaded over and over. */
export const FILE = "gab-q4_0.gguf";
/** Returns the model's size in bytes. */
export async function size() {
  return Number((await fetch(`/files/${FILE}`, { method: "HEAD" })).headers.get("content-length"));
}

/** Number of tokens that tell the right model from a wrong one. */
const TOKENS = 6;

/** Fails a check. */
export function assert(condition, message) {
  if (!condition) throw new Error(message);
}

/** Fails a check unless two values are equal. */
export function equal(found, expected, what) {
  assert(Object.is(found, expected), `${what} is ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}

/** Returns the name of an error class. */
const title = (kind) => (typeof kind === "string" ? kind : Object.keys(errors).find((name) => errors[name] === kind));

/** Returns the error that a promise rejects with, and checks its class or name. */
export async function rejection(promise, kind) {
  const error = await promise.then(() => undefined, (error) => error);
  assert(error !== undefined, `nothing failed, where ${title(kind)} is due`);
  const fits = typeof kind === "string" ? error.name === kind : error instanceof kind;
  assert(fits, `${error?.name}: ${error?.message}, where ${title(kind)} is due`);
  assert(typeof kind === "string" || error.message.length > 20, `the message says too little: ${error.message}`);
  return error;
}

/** Loads the model, or another source, on the tested backend. The cache is only used if a check is about it. */
export function load(source = `/files/${FILE}`, more = {}) {
  const { backend, worker } = options;
  const { onProgress, ...rest } = more;
  return AnyGpu.load(source, {
    backend, worker, nCtx: 128, cache: false, ...rest,
    onProgress: (progress) => {
      beat();
      onProgress?.(progress);
    },
  });
}

/** Returns the model with a chat template, as a local file. */
export async function talker() {
  const bytes = new Uint8Array(await (await fetch(`/files/${FILE}`)).arrayBuffer());
  return new Blob([withTemplate(bytes, CHATML)]);
}

/** Fails a check unless an engine generates the reference's tokens. */
export async function speaks(engine) {
  const [known] = await reference();
  const answer = await engine.completions.create({ prompt: known.prompt_ids, max_tokens: TOKENS, ignore_eos: true });
  beat();
  const wrong = difference(answer.tokens, known.greedy_ids.slice(0, TOKENS));
  assert(!wrong, wrong);
}

/** Loads a model, generates with it, and disposes of the engine. Returns its `info`. */
export async function works(source, more) {
  const engine = await load(source, more);
  try {
    await speaks(engine);
  } finally {
    await engine.dispose();
  }
  return engine.info;
}

/** Returns how often the server was asked for a path. */
export async function requests(path) {
  return (await (await fetch("/requests")).json())[path] ?? 0;
}

/** Fails a check unless the cache is empty. */
export async function nothingKept() {
  const entries = await AnyGpu.cache.list();
  equal(entries.length, 0, "the number of models kept");
  const { bytes } = await AnyGpu.cache.usage();
  equal(bytes, 0, "the bytes kept");
}
