/** Models for the AI SDK, version 7 and later. @packageDocumentation */

import type { EmbeddingModel, LanguageModel } from "ai";
import type { AnyGpu } from "./index.d.ts";

/**
 * A model for `generateText`, `streamText` and others. What the engine does not support is refused with an
 * {@link OptionsError} that names it. The engine stays yours to dispose of.
 */
export function languageModel(engine: AnyGpu): Exclude<LanguageModel, string>;

/** A model for `embed` and `embedMany`. */
export function embeddingModel(engine: AnyGpu): Exclude<EmbeddingModel, string>;
