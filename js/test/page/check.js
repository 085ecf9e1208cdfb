/** Checks that the pages of the small projects run; the results go to the server. */

export const MODEL = "model.gguf";
/** File of the built-in model with a chat template. */
export const TALKER = "talker.gguf";
export const STORY = ", there was a little dragon";

/**
 * @param {typeof import("anygpu").AnyGpu} AnyGpu
 * @param {import("anygpu").LoadOptions} [options]
 * @param {import("anygpu").ModelSource} [model]
 */
export async function tells(AnyGpu, options, model = MODEL) {
  const engine = await AnyGpu.load(model, { backend: "cpu", ...options });
  const { thread, thread_reason } = engine.report;
  if (thread !== "worker") throw new Error(`it runs on the thread ${thread}: ${thread_reason}`);
  let text = "";
  for await (const part of engine.completions.create({ prompt: "Once upon a time", max_tokens: 6, stream: true })) {
    text += part.choices[0].text;
  }
  if (text !== STORY) throw new Error(`it tells ${JSON.stringify(text)}`);
  await engine.dispose();
  return engine;
}

/**
 * Messages of workers since the last `clear`. Where workers do not start, the page's own thread does the work instead.
 *
 * @type {Map<unknown, any[]>}
 */
const heard = new Map();
const hears = (/** @type {unknown} */ worker, /** @type {any} */ message) => {
  if (!heard.has(worker)) heard.set(worker, []);
  heard.get(worker)?.push(message);
};

if (globalThis.Worker === undefined) {
  const { process } = /** @type {any} */ (globalThis);
  process.on("worker", (/** @type {any} */ thread) => thread.on("message", (/** @type {any} */ message) => hears(thread, message)));
} else {
  globalThis.Worker = class extends Worker {
    /** @param {string | URL} url @param {WorkerOptions} [options] */
    constructor(url, options) {
      super(url, options);
      this.addEventListener("message", ({ data }) => hears(this, data));
    }
  };
}

/** Returns the number of tokens that workers reported since the last `clear`. */
const tokens = () => [...heard.values()].flat().filter(({ event }) => event?.token !== undefined).length;

/** A request for a very long generation, to test how it can be ended. */
const ENDLESS = { prompt: "Once upon a time", max_tokens: 1_000_000, ignore_eos: true, overflow: "shift", stream: true };
/** Number of tokens that may still come until the engine notices the end; one that does not notice makes hundreds. */
const FEW = 100;

/**
 * Checks that a generation also ends in the worker when it is left or aborted, or its engine is disposed of: the next
 * request begins then.
 *
 * @param {typeof import("anygpu").AnyGpu} AnyGpu
 * @param {import("anygpu").LoadOptions} [options]
 * @param {import("anygpu").ModelSource} [model]
 */
export async function stops(AnyGpu, options, model = MODEL) {
  const engine = await AnyGpu.load(model, { backend: "cpu", ...options });
  const endless = (/** @type {AbortSignal} */ signal) => engine.completions.create(/** @type {any} */ ({ ...ENDLESS, signal }));
  const few = async (/** @type {string} */ how, /** @type {() => Promise<unknown>} */ end) => {
    heard.clear();
    await end();
    await engine.completions.create({ prompt: "Once upon a time", max_tokens: 1 });
    if (tokens() > FEW) throw new Error(`${tokens()} tokens came of a generation that was ${how}`);
  };
  await few("left", async () => {
    for await (const _ of endless(new AbortController().signal)) break;
  });
  await few("aborted", async () => {
    const controller = new AbortController();
    const reading = async () => {
      for await (const _ of endless(controller.signal)) controller.abort(new Error("enough"));
    };
    const error = await reading().catch((error) => error);
    if (error?.message !== "enough") throw error;
  });
  heard.clear();
  const stream = endless(new AbortController().signal);
  await stream.next();
  await engine.dispose();
  // A worker that does not answer is terminated while it generates.
  const last = [...heard.values()].flat().pop();
  if (last.event !== undefined || tokens() > FEW) throw new Error(`${tokens()} tokens came of an engine that was disposed of, at last ${JSON.stringify(last)}`);
}

/**
 * Checks structured output, which loads a module and a worker of its own.
 *
 * @param {typeof import("anygpu").AnyGpu} AnyGpu
 * @param {import("anygpu").LoadOptions} [options]
 * @param {import("anygpu").ModelSource} [model]
 */
export async function formats(AnyGpu, options, model = TALKER) {
  const engine = await AnyGpu.load(model, { backend: "cpu", ...options });
  const schema = { type: "object", properties: { colour: { enum: ["red", "green"] } }, required: ["colour"], additionalProperties: false };
  heard.clear();
  const { choices } = await engine.chat.completions.create({
    messages: [{ role: "user", content: "Which?" }],
    response_format: { type: "json_schema", json_schema: { name: "choice", schema } },
  });
  const { content } = choices[0].message;
  if (!["red", "green"].includes(JSON.parse(content ?? "").colour)) throw new Error(`it answers ${content}`);
  if (heard.size < 2) throw new Error("the worker of formats did not start");
  await engine.dispose();
}

/** Runs checks, and returns their results. @param {Record<string, () => Promise<unknown>>} checks */
export async function checked(checks) {
  const results = [];
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      results.push({ name, ok: true });
    } catch (error) {
      results.push({ name, ok: false, message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
  return results;
}

/** @param {unknown} results @param {string} [to] */
export const posted = (results, to = "report") => fetch(to, { method: "POST", body: JSON.stringify(results), mode: "no-cors" });
