/** Models for the AI SDK, following its specification v4; `ai-sdk.d.ts` documents them. */

import { OptionsError } from "./common/errors.js";

/** @import { AnyGpu, ChatCompletionChunk, ChatRequest, TokenLogprob, Usage } from "../index.d.ts" */

/** Names of the SDK's settings in our requests. */
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
        content: parts(message),
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
 * Converts a call's options to a request. Unsupported fields are refused later, by name.
 *
 * @param {any} options
 * @returns {Omit<ChatRequest, "stream">}
 */
function request({ prompt, responseFormat, tools, toolChoice, reasoning = "provider-default", providerOptions, ...options }) {
  const { session, ...own } = providerOptions?.anygpu ?? {};
  // The SDK takes one answer.
  if (own.n > 1) throw new OptionsError("n can only be 1 here; call again with another seed", { field: "n" });
  const messages = prompt.flatMap(turns);
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

/** Returns the options beside a request. @param {any} providerOptions */
function beside(providerOptions) {
  const session = providerOptions?.anygpu?.session;
  return session === undefined ? {} : { session };
}

/** @param {{ id: string, model: string, created: number }} answer */
const response = ({ id, model, created }) => ({ id, modelId: model, timestamp: new Date(created * 1000) });

/**
 * Returns token probabilities as provider metadata, like other providers.
 *
 * @param {TokenLogprob[] | undefined} logprobs
 */
const likely = (logprobs) => (logprobs === undefined ? {} : { providerMetadata: { anygpu: { logprobs } } });

/** Converts a message to turns; each tool result becomes a turn of its own. @param {any} message */
function turns({ role, content }) {
  if (typeof content === "string") return [{ role, content }];
  const known = role === "tool" ? ["tool-result"] : ["text", "reasoning", "tool-call"];
  const other = content.find((/** @type {any} */ { type }) => !known.includes(type));
  if (other !== undefined) {
    throw new OptionsError(`messages have a part of type ${other.type}; only text and calls of tools are supported`, { field: "messages" });
  }
  if (role === "tool") return content.map(result);
  const of = (/** @type {string} */ wanted) => content.filter((/** @type {any} */ { type }) => type === wanted);
  const text = (/** @type {string} */ type) => of(type).map((/** @type {any} */ { text }) => text).join("");
  const tool_calls = of("tool-call").map((/** @type {any} */ { toolCallId: id, toolName: name, input }) => {
    return { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
  });
  const more = { ...(tool_calls.length > 0 ? { tool_calls } : {}), ...(text("reasoning") === "" ? {} : { reasoning_content: text("reasoning") }) };
  return [{ role, content: text("text"), ...more }];
}

/** Converts a tool result to a turn. @param {any} part */
function result({ toolCallId, output: { type, value, reason } }) {
  const text = type === "text" || type === "error-text" ? value : type === "execution-denied" ? `denied: ${reason ?? ""}` : JSON.stringify(value);
  return { role: "tool", tool_call_id: toolCallId, content: text };
}

/** Converts an answer to the SDK's parts. @param {import("../index.d.ts").AssistantMessage} message */
function parts({ content, reasoning_content, tool_calls = [] }) {
  return [
    ...(reasoning_content === undefined ? [] : [{ type: "reasoning", text: reasoning_content }]),
    ...(content === null ? [] : [{ type: "text", text: content }]),
    ...tool_calls.map(called),
  ];
}

/** @param {import("../index.d.ts").ToolCall} call */
const called = ({ id, function: { name, arguments: input } }) => ({ type: "tool-call", toolCallId: id, toolName: name, input });

/** @param {any} tool */
function tool({ type, name, description, inputSchema, strict }) {
  if (type !== "function") {
    throw new OptionsError(`tools have ${name}, which only its provider can run; give a function instead`, { field: "tools" });
  }
  return { type, function: { name, description, parameters: inputSchema, strict } };
}

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
  /** Kind of the text that is streamed now; null before the first. @type {"text" | "reasoning" | null} */
  let telling = null;
  /** Call whose arguments are streamed now. @type {import("../index.d.ts").ToolCall | null} */
  let call = null;
  /**
   * Ends the current call, and the current text if another kind begins; returns the events for that.
   *
   * @param {"text" | "reasoning" | null} kind
   */
  const turn = (kind) => {
    /** @type {object[]} */
    const events = call === null ? [] : [{ type: "tool-input-end", id: call.id }, called(call)];
    call = null;
    if (kind === telling) return events;
    if (telling !== null) events.push({ type: `${telling}-end`, id: telling });
    if (kind !== null) events.push({ type: `${kind}-start`, id: kind });
    telling = kind;
    return events;
  };
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
      begun = true;
      const [first] = piece.choices;
      logprobs.push(...(first?.logprobs?.content ?? []));
      const { reasoning_content, content, tool_calls = [] } = first?.delta ?? {};
      for (const [kind, delta] of /** @type {const} */ ([["reasoning", reasoning_content], ["text", content]])) {
        if (!delta) continue;
        yield* turn(kind);
        yield { type: `${kind}-delta`, id: kind, delta };
      }
      for (const { id, function: { name, arguments: more } } of tool_calls) {
        if (id !== undefined && name !== undefined) {
          yield* turn(null);
          call = { id, type: "function", function: { name, arguments: "" } };
          yield { type: "tool-input-start", id, toolName: name };
        }
        if (call === null || more === "") continue;
        call.function.arguments += more;
        yield { type: "tool-input-delta", id: call.id, delta: more };
      }
      reason = first?.finish_reason ?? reason;
      used = piece.usage ?? used;
    }
    yield* turn(null);
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
  const { prompt_tokens: total, completion_tokens: all, ...more } = /** @type {any} */ (used ?? {});
  const { prompt_tokens_details, completion_tokens_details, cached_tokens } = more;
  const reasoning = completion_tokens_details?.reasoning_tokens;
  const cacheRead = prompt_tokens_details?.cached_tokens ?? cached_tokens;
  const noCache = cacheRead === undefined ? undefined : total - cacheRead;
  return {
    inputTokens: { total, noCache, cacheRead, cacheWrite: undefined },
    outputTokens: { total: all, text: reasoning === undefined ? all : all - reasoning, reasoning },
    raw: used ?? undefined,
  };
}
