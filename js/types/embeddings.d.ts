/** Embeddings. */

import type { ContextError, CrashError, DeviceLostError, DisposedError, FileError, OptionsError, OutOfMemoryError } from "./errors.js";
import type { RequestOptions } from "./generation.js";

/** Texts to embed. */
export interface EmbeddingRequest {
  /** A text or its token ids, or an array of at most 2048 of either. Each text must fit the context. */
  input: string | ArrayLike<number> | readonly string[] | readonly (readonly number[])[];
  /** Name of the model, repeated in the answer; the model's own name by default. */
  model?: string | null;
  /** Encoding of vectors: arrays of numbers (the default), or 32-bit little-endian floats in base64. */
  encoding_format?: "float" | "base64" | null;
  /** Number of values to keep of each vector, from the first on; for models that were trained for it. */
  dimensions?: number | null;
  /** Whether vectors are scaled to length 1; true by default. */
  normalize?: boolean | null;
  /** Aborts between texts. */
  signal?: AbortSignal | null;
  /** Has no effect. */
  user?: string | null;
}

/** The embedding of a text. */
export interface Embedding<E = number[]> {
  object: "embedding";
  /** Index of the text in the request. */
  index: number;
  /** The vector, encoded as `encoding_format` says. */
  embedding: E;
}

/** Embeddings of a request's texts, in order. */
export interface EmbeddingList<E = number[]> {
  object: "list";
  data: Embedding<E>[];
  /** Name from the request, or else the model's own. */
  model: string;
  /** Tokens of all texts together. */
  usage: { prompt_tokens: number; total_tokens: number };
}

/** Embeddings: vectors whose similarity reflects similarity of meaning. */
export interface Embeddings {
  /**
   * Computes the embeddings of texts, with vectors in base64. Rejects with the same errors as without
   * `encoding_format`.
   */
  create(request: EmbeddingRequest & { encoding_format: "base64" }, options?: RequestOptions): Promise<EmbeddingList<string>>;
  /**
   * Computes the embeddings of texts.
   *
   * Rejects with {@link OptionsError} (a field is invalid, or the model is a language model), {@link ContextError} (a
   * text is too long), {@link FileError} (no tokenizer), {@link DeviceLostError}, {@link OutOfMemoryError},
   * {@link DisposedError}, {@link CrashError}, or the signal's reason.
   */
  create(request: EmbeddingRequest, options?: RequestOptions): Promise<EmbeddingList>;
}

/** A query, and the documents to rank. */
export interface RerankRequest {
  query: string;
  /** At most 2048 documents. Each must fit the context, together with the query. */
  documents: readonly (string | { text: string })[];
  /** Number of results, the best ones; all by default. */
  top_n?: number | null;
  /** Whether results have their documents; false by default. */
  return_documents?: boolean | null;
  /** Name of the model, repeated in the answer; the model's own name by default. */
  model?: string | null;
  /** Aborts between documents. */
  signal?: AbortSignal | null;
  /** Has no effect. */
  user?: string | null;
}

/** Ranked documents, the best first. */
export interface Reranking {
  object: "list";
  model: string;
  results: {
    /** Index of the document in the request. */
    index: number;
    /** Score by the model: a logit or a probability, as its family has it. */
    relevance_score: number;
    document?: { text: string };
  }[];
  /** Tokens of all pairs together. */
  usage: { prompt_tokens: number; total_tokens: number };
}
