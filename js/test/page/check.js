/** What pages of the small projects run; the results go to the server. */

export const MODEL = "model.gguf";
export const STORY = ", there was a little dragon";

/**
 * @param {typeof import("anygpu").AnyGpu} AnyGpu
 * @param {import("anygpu").LoadOptions} [options]
 * @param {string} [model]
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
