/** Generation, for chat and plain completions: options, token counts, times and streams. */

import type { ContextError, OptionsError } from "./errors.js";
import type { SteadyStats } from "./info.js";

/**
 * Format of an answer. A schema that is not written within the request needs `as const` or `satisfies ResponseFormat`,
 * since TypeScript widens the type of a variable's `type: "json_schema"` to `string`.
 */
export type ResponseFormat =
  | { /** Any text. */ type: "text" }
  | { /** Any JSON object. */ type: "json_object" }
  | { /** JSON that follows a schema. */ type: "json_schema"; /** The schema. */ json_schema: JsonSchemaFormat };

/** A schema that an answer follows. Unsupported keywords are refused by name. */
export interface JsonSchemaFormat {
  /** Name of the schema: 1 to 64 letters, digits, `_` and `-`. */
  name: string;
  /** Has no effect. */
  description?: string | null;
  /** The JSON schema. It is required, though OpenAI's types let it be left out. */
  schema?: Readonly<Record<string, unknown>> | null;
  /** Has no effect: answers always follow the schema. */
  strict?: boolean | null;
}

/**
 * Options of generation, for chat and plain completions. Null is the same as leaving a field out. Fields of OpenAI's
 * API that are not supported are present so that requests made for it pass: they accept only the values that ask for
 * nothing, which their documentation names. Any other value, and any unknown field, is an {@link OptionsError}.
 */
export interface GenerateRequest {
  /**
   * Largest number of tokens to generate. By default 256, or as many as the context has room for if `overflow` does not
   * make more.
   */
  max_tokens?: number | null;
  /** Newer name of `max_tokens`. */
  max_completion_tokens?: number | null;
  /** Randomness: 0, the default, always takes the likeliest token. */
  temperature?: number | null;
  /**
   * Number of the likeliest tokens to choose from. The device keeps at most 64, so 0, the default, and values above 64
   * mean 64.
   */
  top_k?: number | null;
  /**
   * Keeps only the likeliest tokens that together have this probability. 1, the default, means all; 0 means the
   * likeliest alone.
   */
  top_p?: number | null;
  /** Seed of the random numbers; 0 by default, and -1 is a random one. The same seed gives the same text. */
  seed?: number | null;
  /** Strings that end the text and are not part of it; 32 KiB in all at most. */
  stop?: string | readonly string[] | null;
  /** Continues after end-of-text tokens; false by default. */
  ignore_eos?: boolean | null;
  /**
   * Number of decode steps between two reads, 1 to 64. More keep a GPU busy, fewer show tokens sooner. By default as
   * many as take a few milliseconds on this device.
   */
  fetch_interval?: number | null;
  /**
   * Largest number of tokens to draft from earlier text and verify in one step (prompt-lookup). It speeds up text that
   * repeats itself, such as a summary or an edit of code. The text is the same. 0 drafts nothing. By default as many as
   * suit the backend (the CPU and WebGPU draft, WebGL does not).
   */
  draft_max?: number | null;
  /**
   * Behaviour when a text outgrows the context (`nCtx`). `"error"`, the default: a prompt that does not fit together
   * with `max_tokens` is refused with a {@link ContextError}. `"stop"`: the text ends when the context is full.
   * `"shift"`: the oldest turns of a conversation are dropped until it and its answer fit. If the context fills up
   * during generation, half of its tokens are dropped, starting after the first `keep`, and the rest is computed again.
   * The output is then that of a new text that begins with the remaining tokens. {@link Outcome.overflow} reports what
   * was done.
   */
  overflow?: "error" | "stop" | "shift" | null;
  /**
   * Number of tokens at the beginning that `overflow: "shift"` never drops. By default the begin-of-text token, and in
   * a conversation its system messages.
   */
  keep?: number | null;
  /** Whether the answer is streamed. */
  stream?: boolean | null;
  /** Aborts the generation. The promise or the iteration rejects with the signal's reason; the engine stays usable. */
  signal?: AbortSignal | null;
  /** Name of the model, for clients that send one. It is repeated in the answer. */
  model?: string | null;
  /**
   * Options of a stream. With `include_usage` the stream ends with an additional chunk that has the outcome and no
   * choices, and `usage` is null in the other chunks. Without it the last chunk of the last answer has the outcome.
   */
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean } | null;
  /**
   * Number of answers, 1 to 128; 1 by default. They are generated one after the other; answer `index` has the seed
   * `seed + index`. At temperature 0 they are all the same.
   */
  n?: number | null;
  /**
   * Penalty from -2 to 2 that is subtracted from the logits of tokens that the answer already has. The prompt does not
   * count. Of a long answer only the last 1,024 tokens count, as far as they are in the context.
   */
  presence_penalty?: number | null;
  /**
   * Penalty from -2 to 2 that is subtracted from a token's logit once for each time that the answer has it; counted as
   * for `presence_penalty`.
   */
  frequency_penalty?: number | null;
  /** Divides the logits of tokens among the last 64 of prompt and answer, or multiplies negative ones; 1 by default. */
  repetition_penalty?: number | null;
  /** Another name of `repetition_penalty`. */
  repeat_penalty?: number | null;
  /** Format of the answer; text by default. Other formats load a separate module. */
  response_format?: ResponseFormat | null;
  /** Holds the answer to a JSON schema. */
  json_schema?: Readonly<Record<string, unknown>> | null;
  /** Holds the answer to a regular expression. */
  regex?: string | null;
  /** Holds the answer to a JSON schema: an object, or its text. */
  guided_json?: object | string | null;
  /** Holds the answer to a regular expression. */
  guided_regex?: string | null;
  /** Holds the answer to one of these texts. */
  guided_choice?: readonly string[] | null;
  /** Holds the answer to a format, as vLLM names it. */
  structured_outputs?: {
    json?: object | string | null;
    regex?: string | null;
    choice?: readonly string[] | null;
    json_object?: boolean | null;
  } | null;
  /**
   * Drops candidates less likely than this fraction of the best one's probability, at the temperature; 0 by default.
   */
  min_p?: number | null;
  /** Values from -100 to 100 that are added to the logits of at most 1,024 token ids. */
  logit_bias?: Readonly<Record<string, number>> | null;
  /** Has no effect. */
  user?: string | null;
}

/** Options beside a request, as OpenAI's client takes them. */
export interface RequestOptions {
  /** Aborts the request, like the request's own signal. */
  signal?: AbortSignal | null;
  /**
   * Name of the session that the request belongs to, 1 to 64 characters. A session keeps what it has computed while
   * others have their turn. A new session reuses the prefix that it shares with any other, such as a system prompt;
   * {@link Usage.cached_tokens} counts the reused tokens. Requests without a name share one unnamed session. With
   * several answers the session keeps the last.
   */
  session?: string | null;
  /** Has no effect: nothing is sent. */
  headers?: unknown;
  /** Has no effect. */
  query?: unknown;
  /** Has no effect. */
  maxRetries?: number;
  /** Has no effect. */
  idempotencyKey?: string;
}

/** Token counts of a generation. */
export interface Usage {
  /** Tokens of the prompt, without dropped messages. */
  prompt_tokens: number;
  /** Tokens generated. */
  completion_tokens: number;
  /** Sum of prompt and completion tokens. */
  total_tokens: number;
  /** Tokens of the prompt that were reused from earlier computation. */
  cached_tokens: number;
  /** Number of `cached_tokens`, where OpenAI's API has it. */
  prompt_tokens_details: { cached_tokens: number; audio_tokens: number };
  /** Reasoning tokens in a chat, and drafted tokens (`draft_max`) that were accepted and rejected. */
  completion_tokens_details: { reasoning_tokens: number; audio_tokens: number; accepted_prediction_tokens: number; rejected_prediction_tokens: number };
}

/** Times of a generation. */
export interface Timings {
  /** Time for computing the prompt (prefill), in milliseconds. */
  prefill_ms: number;
  /** Time per token after the first, in milliseconds. */
  decode_ms_per_token: number;
  /** Time from the call to the first token, in milliseconds, including the wait for earlier generations. */
  ttft_ms: number;
}

/** Reason why a text ended. `"stop"`: a stop token or string. `"length"`: `max_tokens`, or the end of the context. */
export type FinishReason = "stop" | "length";

/** Report of what was dropped when a text outgrew the context. */
export interface Overflow {
  /**
   * Policy that was applied. `"stop"`: the text ended there; also with `overflow: "error"` if there was no
   * `max_tokens`. `"shift"`: old text was dropped.
   */
  policy: "stop" | "shift";
  /** Number of messages dropped from the conversation. */
  dropped_messages: number;
  /** Number of tokens dropped during generation, or because the prompt was too long. */
  dropped_tokens: number;
  /** How often tokens were dropped. */
  times: number;
  /** Time for computing the rest again, in milliseconds. */
  ms: number;
}

/**
 * Result of a generation as a whole, in an answer or in the last chunk of a stream. With several answers it covers all
 * of them.
 */
export interface Outcome {
  /** Token counts. */
  usage: Usage;
  /** Times of the generation. */
  timings: Timings;
  /** Counters of decoding. */
  stats: SteadyStats;
  /** Ids of all tokens generated, without stop tokens; with several answers one after the other. */
  tokens: number[];
  /**
   * Report of what was dropped if the text outgrew the context, else null; with several answers that of the first such
   * answer. In a stream, a chunk without text has the report so far, before the rest is computed again.
   */
  overflow: Overflow | null;
}

/** A token, and how likely the model found it. */
export interface TopLogprob {
  /** Text of the token; U+FFFD stands for bytes that are not a whole character. */
  token: string;
  /**
   * Natural logarithm of the token's probability by the model, before temperature, penalties and biases. -9999 stands
   * for values too small for a number.
   */
  logprob: number;
  /** Bytes of the token; several tokens may make one character. */
  bytes: number[];
}

/** A token of an answer, and how likely the model found it. */
export interface TokenLogprob extends TopLogprob {
  /** Likeliest tokens at this place, best first; as many as were asked for. */
  top_logprobs: TopLogprob[];
}

/**
 * A generation to iterate over once. It begins with the first call of `next`. Leaving a `for await` loop early ends it.
 */
export interface Stream<Chunk> extends AsyncIterableIterator<Chunk> {
  /** Returns the next chunk. */
  next(): Promise<IteratorResult<Chunk, undefined>>;
  /** Ends the generation. */
  return(): Promise<IteratorResult<Chunk, undefined>>;
  /** Returns the stream itself. */
  [Symbol.asyncIterator](): Stream<Chunk>;
  /** Controller whose `abort()` ends the generation. Iterating then ends without an error. */
  controller: AbortController;
  /**
   * Returns the chunks as lines of JSON, for the response of a service worker or for another page;
   * `Stream.fromReadableStream` of OpenAI's client reads it. Generation begins at once; cancelling the stream ends it.
   */
  toReadableStream(): ReadableStream<Uint8Array>;
}
