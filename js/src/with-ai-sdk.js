/** Models for the AI SDK, by its specification v4: `ai-sdk.d.ts` documents them. */

import { OptionsError } from "./errors.js";

/** @import { AnyGpu, ChatCompletionChunk, ChatRequest, TokenLogprob, Usage } from "../index.d.ts" */

/** Settings of theirs that are ours by another name. */
const SETTINGS = {
  maxOutputTokens: "max_tokens",
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  stopSequences: "stop",
  seed: "seed",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
};

/**
 * @param {AnyGpu} engine
 * @returns {any}
 */
export function languageModel(engine) {
  return {
    specificationVersion: "v4",
    provider: "anygpu",
    modelId: engine.info.name ?? engine.info.architecture,
    supportedUrls: {},

    async doGenerate(/** @type {any} */ options) {
      const { abortSignal: signal, providerOptions } = options;
      const answer = await engine.chat.completions.create({ ...request(options), stream: false }, { signal, ...beside(providerOptions) });
      const [{ message, logprobs, finish_reason }] = answer.choices;
      return {
        content: [{ type: "text", text: message.content ?? "" }],
        finishReason: finish(finish_reason),
        usage: usage(answer.usage),
        ...likely(logprobs?.content),
        response: response(answer),
        warnings: [],
      };
    },

    async doStream(/** @type {any} */ options) {
      const controller = new AbortController();
      const stop = () => controller.abort(options.abortSignal.reason);
      if (options.abortSignal?.aborted) stop();
      options.abortSignal?.addEventListener("abort", stop);
      const { signal } = controller;
      const pieces = engine.chat.completions.create({ ...request(options), stream: true }, { signal, ...beside(options.providerOptions) });
      const parts = streamed(pieces, options.includeRawChunks, () => options.abortSignal?.removeEventListener("abort", stop));
      const stream = new ReadableStream({
        async pull(sink) {
          const { value, done } = await parts.next();
          if (done) sink.close();
          else sink.enqueue(value);
        },
        cancel: () => controller.abort(),
      });
      return { stream };
    },
  };
}

/**
 * @param {AnyGpu} engine
 * @returns {any}
 */
export function embeddingModel(engine) {
  return {
    specificationVersion: "v4",
    provider: "anygpu",
    modelId: engine.info.name ?? engine.info.architecture,
    maxEmbeddingsPerCall: 2048,
    supportsParallelCalls: false,

    async doEmbed(/** @type {any} */ { values, dimensions, abortSignal }) {
      const answer = await engine.embeddings.create({ input: values, dimensions }, { signal: abortSignal });
      const embeddings = answer.data.map(({ embedding }) => embedding);
      return { embeddings, usage: { tokens: answer.usage.prompt_tokens }, warnings: [] };
    },
  };
}

/**
 * What is asked of us. Fields that are not supported are refused there, by name.
 *
 * @param {any} options
 * @returns {Omit<ChatRequest, "stream">}
 */
function request({ prompt, responseFormat, tools, toolChoice, reasoning = "provider-default", providerOptions, ...options }) {
  const { session, ...own } = providerOptions?.anygpu ?? {};
  // There is one answer to give.
  if (own.n > 1) throw new OptionsError("n can only be 1 here; call again with another seed", { field: "n" });
  const messages = prompt.map(message);
  const named = Object.entries(SETTINGS).map(([theirs, ours]) => [ours, options[theirs]]);
  return {
    messages,
    ...Object.fromEntries(named.filter(([, value]) => value !== undefined)),
    ...(tools?.length > 0 ? { tools: tools.map(tool), tool_choice: choice(toolChoice) } : {}),
    ...(responseFormat?.type === "json" ? { response_format: format(responseFormat) } : {}),
    ...(reasoning === "provider-default" ? {} : { reasoning_effort: reasoning }),
    ...own,
  };
}

/** What goes beside a request. @param {any} providerOptions */
function beside(providerOptions) {
  const session = providerOptions?.anygpu?.session;
  return session === undefined ? {} : { session };
}

/** @param {{ id: string, model: string, created: number }} answer */
const response = ({ id, model, created }) => ({ id, modelId: model, timestamp: new Date(created * 1000) });

/** How likely tokens were, as other providers have it. @param {TokenLogprob[] | undefined} logprobs */
const likely = (logprobs) => (logprobs === undefined ? {} : { providerMetadata: { anygpu: { logprobs } } });

/** @param {any} message */
function message({ role, content }) {
  if (typeof content === "string") return { role, content };
  const other = content.find((/** @type {{ type: string }} */ { type }) => type !== "text" && type !== "reasoning");
  if (other !== undefined) {
    throw new OptionsError(`messages have a part of type ${other.type}; only text is supported`, { field: "messages" });
  }
  const texts = content.filter((/** @type {{ type: string }} */ { type }) => type === "text");
  return { role, content: texts.map((/** @type {{ text: string }} */ { text }) => text).join("") };
}

/** @param {any} tool */
const tool = ({ name, description, inputSchema }) => ({ type: "function", function: { name, description, parameters: inputSchema } });

/** @param {any} chosen */
const choice = (chosen) => (chosen?.type === "tool" ? { type: "function", function: { name: chosen.toolName } } : chosen?.type);

/** @param {any} asked */
function format({ schema, name = "answer", description }) {
  if (schema === undefined) return { type: "json_object" };
  return { type: "json_schema", json_schema: { name, description, schema } };
}

/**
 * @param {AsyncIterable<ChatCompletionChunk>} pieces
 * @param {boolean | undefined} raw Whether the chunks themselves are wanted, too.
 * @param {() => void} ended
 */
async function* streamed(pieces, raw, ended) {
  const id = "text";
  /** @type {string | null} */
  let reason = null;
  /** @type {Usage | null | undefined} */
  let used;
  /** @type {TokenLogprob[]} */
  const logprobs = [];
  let begun = false;
  yield { type: "stream-start", warnings: [] };
  try {
    for await (const piece of pieces) {
      if (raw) yield { type: "raw", rawValue: piece };
      if (!begun) yield { type: "response-metadata", ...response(piece) };
      if (!begun) yield { type: "text-start", id };
      begun = true;
      const [first] = piece.choices;
      logprobs.push(...(first?.logprobs?.content ?? []));
      if (first?.delta.content) yield { type: "text-delta", id, delta: first.delta.content };
      reason = first?.finish_reason ?? reason;
      used = piece.usage ?? used;
    }
    yield { type: "text-end", id };
    yield { type: "finish", finishReason: finish(reason), usage: usage(used), ...likely(logprobs.length > 0 ? logprobs : undefined) };
  } catch (error) {
    yield { type: "error", error };
  } finally {
    ended();
  }
}

/** @param {string | null} raw */
function finish(raw) {
  const unified = raw === "stop" || raw === "length" ? raw : raw === "tool_calls" ? "tool-calls" : "other";
  return { unified, raw: raw ?? undefined };
}

/** @param {Usage | null | undefined} used */
function usage(used) {
  const { prompt_tokens: total, completion_tokens: text, prompt_tokens_details, cached_tokens } = /** @type {any} */ (used ?? {});
  const cacheRead = prompt_tokens_details?.cached_tokens ?? cached_tokens;
  const noCache = cacheRead === undefined ? undefined : total - cacheRead;
  return {
    inputTokens: { total, noCache, cacheRead, cacheWrite: undefined },
    outputTokens: { total: text, text, reasoning: undefined },
    raw: used ?? undefined,
  };
}
