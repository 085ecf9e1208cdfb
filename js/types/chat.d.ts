/** Chat completions. */

import type { ContextError, CrashError, DeviceLostError, DisposedError, FileError, OptionsError, OutOfMemoryError } from "./errors.js";
import type { FinishReason, GenerateRequest, Outcome, RequestOptions, Stream, TokenLogprob, Usage } from "./generation.js";
import type { SessionOptions } from "./sessions.js";

/**
 * A part of a turn. Only text parts are read. Others are refused with an {@link OptionsError}; the type allows them so
 * that requests typed for OpenAI's API fit.
 */
export type ContentPart = { /** Kind of the part; only text is supported. */ type: "text"; /** The text. */ text: string } | { type: string };

/** A function call by the model. */
export interface ToolCall {
  /** Unique id of the call: nine letters and digits. */
  id: string;
  /** Kind of the call; always a function. */
  type: "function";
  /**
   * Name of the function, which is in the request's `tools`, and its arguments as JSON text of an object. If the answer
   * was cut off, the arguments may be incomplete.
   */
  function: { name: string; arguments: string };
}

/** A function that a model may call. */
export interface Tool {
  /** Kind of the tool; only functions are supported. */
  type: "function";
  /**
   * Description of the function for the model; `parameters` is a JSON schema. Calls are not constrained to it, unless
   * `tool_choice` demands a call.
   */
  function: { name: string; description?: string | null; parameters?: object | null; strict?: boolean | null };
}

/**
 * One turn of a conversation. Other fields that OpenAI's API has in a turn may be present if they are empty or null.
 */
export interface ChatMessage {
  /** Role of the speaker: `system`, `user`, `assistant`, or another role that the model's template knows. */
  role: "system" | "user" | "assistant" | (string & {});
  /** Text of the turn, or text parts. Only an assistant's content may be missing; it is empty then. */
  content?: string | readonly ContentPart[] | null;
  /** Earlier reasoning of the assistant. The model's template decides whether the model sees it. */
  reasoning_content?: string | null;
  /** Function calls of the assistant. */
  tool_calls?: readonly ({ /** Id of the call. */ id?: string; type: "function"; function: { name: string; arguments: string } } | { type: string })[] | null;
  /** Name of the speaker. It is ignored if the model's template does not read it. */
  name?: string | null;
  /** Id of the call that a turn of the role `tool` answers. */
  tool_call_id?: string | null;
}

/** A conversation to continue. */
export interface ChatRequest extends GenerateRequest {
  /** The turns so far. */
  messages: readonly ChatMessage[];
  /**
   * Whether the answer reports how likely its tokens were; false by default. Tokens are then generated one at a time
   * and without drafts, which takes longer.
   */
  logprobs?: boolean | null;
  /** Number of alternatives to report for each token with `logprobs`, 0 to 20. */
  top_logprobs?: number | null;
  /**
   * Functions that the model may call, 128 at most; see {@link Tool}. The model's template must support tools. Calls
   * are parsed in the format of the template's family. A malformed call, or a call of an unknown function, is returned
   * verbatim as content.
   */
  tools?: readonly (Tool | { type: string })[] | null;
  /**
   * Whether functions are called. `"auto"`, the default: the model decides. `"none"`: the model does not see any tools.
   * `"required"`: the answer is constrained to calls whose arguments follow the functions' schemas; `{ type:
   * "function", function: { name } }`: to calls of that function. Families that do not write calls as JSON refuse the
   * last two.
   */
  tool_choice?: string | object | null;
  /** Whether an answer may have several calls; true by default, unless `tool_choice` demands a call. */
  parallel_tool_calls?: boolean | null;
  /** Not supported: only `[]`. */
  functions?: readonly unknown[] | null;
  /** Not supported: only `"none"` and `"auto"`. */
  function_call?: string | object | null;
  /** Not supported: only `["text"]`. */
  modalities?: readonly string[] | null;
  /** Not supported: only null. */
  audio?: object | null;
  /** Variable of the model's template, if the template reads it; the same as in `chat_template_kwargs`. */
  reasoning_effort?: string | null;
  /**
   * Variables of the model's template, such as `{ enable_thinking: false }`. Variables that the template does not read
   * are refused.
   */
  chat_template_kwargs?: Readonly<Record<string, unknown>> | null;
  /** Not supported: only `"medium"`. */
  verbosity?: string | null;
  /** Not supported: only null. */
  web_search_options?: object | null;
  /** Not supported: only null. */
  moderation?: object | null;
  /** Not supported: only `"auto"` and `"default"`. */
  service_tier?: string | null;
  /** Not supported: only `false`. */
  store?: boolean | null;
  /** Has no effect. */
  metadata?: object | null;
  /** Has no effect. */
  prediction?: object | null;
  /** Has no effect. */
  prompt_cache_key?: string | null;
  /** Has no effect. */
  prompt_cache_options?: object | null;
  /** Has no effect. */
  prompt_cache_retention?: string | null;
  /** Has no effect. */
  safety_identifier?: string | null;
}

/** Reason why an answer ended: a {@link FinishReason}, or `"tool_calls"` if it calls functions. */
export type ChatFinishReason = FinishReason | "tool_calls";

/**
 * How likely the tokens of an answer or of a chunk were. The tokens that were there before `resume` continued an answer
 * are missing.
 */
export interface ChatLogprobs {
  /** Tokens of the answer or chunk. */
  content: TokenLogprob[];
  /** Always null: nothing is refused. */
  refusal: null;
}

/** An answer. */
export interface AssistantMessage {
  /** Role of the speaker; always the assistant. */
  role: "assistant";
  /** Text of the answer; null if it only calls functions. */
  content: string | null;
  /** Always null: nothing is refused. */
  refusal: null;
  /** Reasoning before the answer, if the model's template marks it. */
  reasoning_content?: string;
  /** Functions that the answer calls. */
  tool_calls?: ToolCall[];
}

/** New content of an answer in a chunk. */
export interface ChatDelta {
  /** Role of the speaker, in the first chunk. */
  role?: "assistant";
  /** New text. */
  content?: string;
  /** Always null: nothing is refused. */
  refusal?: null;
  /** New reasoning. */
  reasoning_content?: string;
  /** New function calls, and more arguments of the last one. */
  tool_calls?: ToolCallDelta[];
}

/** New content of a call in a chunk. The first chunk of a call has its id, type and name; arguments follow. */
export interface ToolCallDelta {
  /** Index of the call in the answer. */
  index: number;
  /** Unique id of the call. */
  id?: string;
  /** Kind of the call; always a function. */
  type?: "function";
  /** Name of the function, and a part of its arguments. */
  function: { name?: string; arguments: string };
}

/** One of the answers. */
export interface ChatChoice {
  /** Index of the answer. */
  index: number;
  /** The answer. */
  message: AssistantMessage;
  /** How likely its tokens were; null unless asked for. */
  logprobs: ChatLogprobs | null;
  /** Reason why the answer ended. */
  finish_reason: ChatFinishReason;
}

/** A complete chat completion. */
export interface ChatCompletion extends Outcome {
  /** Unique id of the completion. */
  id: string;
  /** Kind of the object. */
  object: "chat.completion";
  /** Time of creation, in seconds since 1970. */
  created: number;
  /** Name of the model. */
  model: string;
  /** Answers; as many as were asked for. */
  choices: [ChatChoice, ...ChatChoice[]];
}

/**
 * A chunk of a streamed chat completion. The last chunk of each answer has a `finish_reason`; the last chunk of all has
 * the outcome.
 */
export interface ChatCompletionChunk extends Partial<Omit<Outcome, "usage">> {
  /** Unique id of the completion. */
  id: string;
  /** Kind of the object. */
  object: "chat.completion.chunk";
  /** Time when the completion began, in seconds since 1970. */
  created: number;
  /** Name of the model. */
  model: string;
  /** The chunk's part of one answer; empty in the chunk that `include_usage` asks for. */
  choices: {
    /** Index of the answer. */
    index: number;
    /**
     * New content. The first chunk of an answer has only the role. An empty one stands for a token whose text is not
     * certain yet.
     */
    delta: ChatDelta;
    /** How likely the token was; null unless asked for, and in chunks without a token. */
    logprobs: ChatLogprobs | null;
    /** Reason why the answer ended; null before. */
    finish_reason: ChatFinishReason | null;
  }[];
  /** Token counts, in the chunk with the outcome; null in the others with `include_usage`. */
  usage?: Usage | null;
  /**
   * Token of this chunk. Absent in the first and the last chunk, and in a chunk that only brings text that was held
   * back.
   */
  token?: number;
}

/** Chat completions. */
export interface ChatCompletions {
  /**
   * Continues a conversation as a stream. Nothing is computed before the first chunk is asked for.
   *
   * @throws {OptionsError} The request is not an object, or an option beside it is invalid. Iterating throws the errors that the form
   * without `stream` rejects with.
   */
  create(request: ChatRequest & { stream: true }, options?: RequestOptions): Stream<ChatCompletionChunk>;
  /**
   * Continues a conversation. Requests of different sessions take turns, a moment each; those of one session, or without one,
   * run one after the other. The prefix that a conversation shares with another is not computed again.
   *
   * Rejects with {@link OptionsError}, {@link ContextError}, {@link FileError} (no tokenizer or chat template, or the
   * template refuses the conversation), {@link DeviceLostError}, {@link OutOfMemoryError}, {@link DisposedError},
   * {@link CrashError}, or the signal's reason.
   */
  create(request: ChatRequest & { stream?: false | null }, options?: RequestOptions): Promise<ChatCompletion>;
  /** Continues a conversation; a stream if `stream` is true. */
  create(request: ChatRequest, options?: RequestOptions): Stream<ChatCompletionChunk> | Promise<ChatCompletion>;
  /**
   * Continues the last answer of a session that was interrupted: by an abort, or because the tab ended, if the browser
   * stores the session ({@link SessionOptions.keep}). The same request is made again, so the answer is that of an
   * uninterrupted request. The chunks that it already had come first, at once, then the rest. An answer that was
   * complete is returned as it was.
   *
   * Iterating throws {@link OptionsError} if there is no such answer, and the errors that
   * {@link ChatCompletions.create} rejects with.
   *
   * @throws {OptionsError} The name is not valid.
   */
  resume(session: string, options?: Omit<RequestOptions, "session">): Stream<ChatCompletionChunk>;
}
