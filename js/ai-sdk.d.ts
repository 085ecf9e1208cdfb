/** Models for the AI SDK, version 7 and later. @packageDocumentation */

import type { EmbeddingModel, LanguageModel } from "ai";
import type { AnyGpu, ChatRequest, OptionsError, RequestOptions, TokenLogprob } from "./index.d.ts";

/** Options of a call in `providerOptions.anygpu`. */
export type ProviderOptions = Partial<Omit<ChatRequest, "messages" | "stream" | "signal" | "n">> & Pick<RequestOptions, "session">;

/** Metadata of an answer in `providerMetadata.anygpu`. */
export interface ProviderMetadata {
  /** How likely the answer's tokens were, if that was asked for. */
  logprobs?: TokenLogprob[];
}

/**
 * Wraps an engine as a model for `generateText`, `streamText` and others. Unsupported options are refused with an
 * {@link OptionsError} that names them. Disposing of the engine stays your task.
 *
 * `providerOptions.anygpu` takes the other fields of a {@link ChatRequest} by their own names, and `session`. With
 * `logprobs` there, `providerMetadata.anygpu.logprobs` has how likely each token was.
 */
export function languageModel(engine: AnyGpu): Exclude<LanguageModel, string>;

/** Wraps an engine as a model for `embed` and `embedMany`. */
export function embeddingModel(engine: AnyGpu): Exclude<EmbeddingModel, string>;
