/** What pages of the small projects run; the results go to the server. */

export const MODEL = "model.gguf";
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

/** Workers that have said something: where one does not start, the page's own thread does the same in its place. */
const heard = new Set();

if (globalThis.Worker === undefined) {
  /** @type {any} */ (globalThis).process.on("worker", (/** @type {any} */ thread) => thread.on("message", () => heard.add(thread)));
} else {
  globalThis.Worker = class extends Worker {
    /** @param {string | URL} url @param {WorkerOptions} [options] */
    constructor(url, options) {
      super(url, options);
      this.addEventListener("message", () => heard.add(this));
    }
  };
}

/**
 * An answer in a format, for which a module and a worker of their own are loaded.
 *
 * @param {typeof import("anygpu").AnyGpu} AnyGpu
 * @param {import("anygpu").LoadOptions} [options]
 * @param {import("anygpu").ModelSource} [model]
 */
export async function formats(AnyGpu, options, model = MODEL) {
  const engine = await AnyGpu.load(model, { backend: "cpu", ...options });
  const schema = { type: "object", properties: { colour: { enum: ["red", "green"] } }, required: ["colour"], additionalProperties: false };
  const response_format = /** @type {const} */ ({ type: "json_schema", json_schema: { name: "choice", schema } });
  heard.clear();
  const { choices } = await engine.chat.completions.create({ messages: [{ role: "user", content: "Which?" }], response_format });
  const { content } = choices[0].message;
  if (!["red", "green"].includes(JSON.parse(content ?? "").colour)) throw new Error(`it answers ${content}`);
  if (heard.size < 2) throw new Error("the worker of formats did not start");
  await engine.dispose();
}

/**
 * Runs checks, and tells of each how it went.
 *
 * @param {Record<string, () => Promise<unknown>>} checks
 */
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
