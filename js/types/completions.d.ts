/** Plain completions. */

import type { ChatCompletions, ChatRequest } from "./chat.js";
import type { FinishReason, GenerateRequest, Outcome, RequestOptions, Stream, TopLogprob, Usage } from "./generation.js";

/** A text to continue. */
export interface CompletionRequest extends GenerateRequest {
  /**
   * The text or its token ids, or an array of either, each of which has `n` answers, one prompt after the other. An empty
   * text, or null, starts a new text.
   */
  prompt: string | ArrayLike<number> | readonly string[] | readonly (readonly number[])[] | null;
  /** Not supported: only 1. */
  best_of?: number | null;
  /** Not supported: only `false`. */
  echo?: boolean | null;
  /**
   * Number of alternatives to report for each token, 0 to 20, beside how likely the token was; see
   * {@link ChatRequest.logprobs}.
   */
  logprobs?: number | false | null;
  /** Not supported: only `""`. */
  suffix?: string | null;
}

/**
 * How likely the tokens of a text or of a chunk were. The tokens that were there before `resume` continued a text are
 * missing. A token that is not a whole character is written as its bytes: `bytes:\xe2\x80`.
 */
export interface TextLogprobs {
  /** Texts of the tokens. */
  tokens: string[];
  /** Natural logarithms of the tokens' probabilities; see {@link TopLogprob.logprob}. */
  token_logprobs: number[];
  /** Logarithms of the likeliest tokens at each place, best first, including the token itself. */
  top_logprobs: Record<string, number>[];
  /** Where each token begins in the text of all tokens so far, in UTF-16 code units. */
  text_offset: number[];
}

/** One of the texts. */
export interface TextChoice {
  /** Index of the text. */
  index: number;
  /** The text that follows the prompt. */
  text: string;
  /** How likely its tokens were; null unless asked for. */
  logprobs: TextLogprobs | null;
  /** Reason why the text ended. */
  finish_reason: FinishReason;
}

/** A complete plain completion. */
export interface Completion extends Outcome {
  /** Unique id of the completion. */
  id: string;
  /** Kind of the object. */
  object: "text_completion";
  /** Time of creation, in seconds since 1970. */
  created: number;
  /** Name of the model. */
  model: string;
  /** Texts; as many as were asked for. */
  choices: [TextChoice, ...TextChoice[]];
}

/**
 * A chunk of a streamed plain completion. The last chunk of each text has a `finish_reason`; the last chunk of all has
 * the outcome.
 */
export interface CompletionChunk extends Partial<Omit<Outcome, "usage">> {
  /** Unique id of the completion. */
  id: string;
  /** Kind of the object. */
  object: "text_completion";
  /** Time when the completion began, in seconds since 1970. */
  created: number;
  /** Name of the model. */
  model: string;
  /** The chunk's part of one text; empty in the chunk that `include_usage` asks for. */
  choices: {
    /** Index of the text. */
    index: number;
    /** New text. An empty one stands for a token whose text is not certain yet. */
    text: string;
    /** How likely the token was; null unless asked for, and in chunks without a token. */
    logprobs: TextLogprobs | null;
    /** Reason why the text ended; null before. */
    finish_reason: FinishReason | null;
  }[];
  /** Token counts, in the chunk with the outcome; null in the others with `include_usage`. */
  usage?: Usage | null;
  /** Token of this chunk. Absent in the last chunk, and in a chunk that only brings text that was held back. */
  token?: number;
}

/** Plain completions. */
export interface Completions {
  /** Continues a text as a stream; see {@link ChatCompletions.create}. */
  create(request: CompletionRequest & { stream: true }, options?: RequestOptions): Stream<CompletionChunk>;
  /** Continues a text; see {@link ChatCompletions.create}. */
  create(request: CompletionRequest & { stream?: false | null }, options?: RequestOptions): Promise<Completion>;
  /** Continues a text; a stream if `stream` is true. */
  create(request: CompletionRequest, options?: RequestOptions): Stream<CompletionChunk> | Promise<Completion>;
  /** Continues the last text of a session that was interrupted; see {@link ChatCompletions.resume}. */
  resume(session: string, options?: Omit<RequestOptions, "session">): Stream<CompletionChunk>;
}
