/** Models for the AI SDK, version 7 and later. @packageDocumentation */

import type { EmbeddingModel, LanguageModel } from "ai";
import type { AnyGpu, ChatRequest, OptionsError, RequestOptions, TokenLogprob } from "./index.d.ts";

/** What a call can say in `providerOptions.anygpu`. */
export type ProviderOptions = Partial<Omit<ChatRequest, "messages" | "stream" | "signal" | "n">> & Pick<RequestOptions, "session">;

/** What an answer says in `providerMetadata.anygpu`. */
export interface ProviderMetadata {
  /** How likely its tokens were, if that was asked for. */
  logprobs?: TokenLogprob[];
}

/**
 * A model for `generateText`, `streamText` and others. What the engine does not support is refused with an
 * {@link OptionsError} that names it. The engine stays yours to dispose of.
 *
 * `providerOptions.anygpu` takes the other fields of a {@link ChatRequest} by their own names, and `session`. With
 * `logprobs` there, `providerMetadata.anygpu.logprobs` has how likely each token was.
 */
export function languageModel(engine: AnyGpu): Exclude<LanguageModel, string>;

/** A model for `embed` and `embedMany`. */
export function embeddingModel(engine: AnyGpu): Exclude<EmbeddingModel, string>;
