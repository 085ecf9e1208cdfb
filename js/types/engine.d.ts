/** A model that is ready to run. */

import type { Report, SelectOptions } from "./backends.js";
import type { ModelCache } from "./cache.js";
import type { ChatCompletions, ChatMessage } from "./chat.js";
import type { Completions } from "./completions.js";
import type { ConformanceOptions, ConformanceReport } from "./conformance.js";
import type { Embeddings, Reranking, RerankRequest } from "./embeddings.js";
import type {
  AnyGpuError,
  BackendError,
  CacheError,
  ChecksumError,
  CrashError,
  DeviceLostError,
  DisposedError,
  FileError,
  NetworkError,
  OptionsError,
  OutOfMemoryError,
} from "./errors.js";
import type { Recovered, Step, Unkept } from "./events.js";
import type { RequestOptions } from "./generation.js";
import type { ModelInfo, Stats } from "./info.js";
import type { LoadOptions, ModelSource } from "./load.js";
import type { Sessions } from "./sessions.js";
import type { TuneOptions, TuneReport } from "./tune.js";

/** A model, ready to run. */
export class AnyGpu {
  private constructor();

  /**
   * Loads a model: chooses a backend by a self-test and sends the weights to it as they arrive. For a split model, an
   * array has all files, in any order.
   *
   * Rejects with {@link OptionsError}, {@link NetworkError}, {@link FileError}, {@link ChecksumError},
   * {@link BackendError} (no backend works; it has the report), {@link OutOfMemoryError}, {@link DeviceLostError},
   * {@link CacheError} (only with `cache: "require"`), {@link CrashError}, or the signal's reason. Nothing is left
   * behind then, except the downloaded part of a file that is not at fault: the next load continues from there.
   */
  static load(source: ModelSource | readonly ModelSource[], options?: LoadOptions): Promise<AnyGpu>;

  /**
   * Measures which values of the backend's tunables are fastest on this device, by running a model with one value after
   * another. The browser stores them for all later loads. Results are the same with all values, and tuning is never
   * necessary. Rejects like {@link AnyGpu.load}.
   */
  static tune(source: ModelSource | readonly ModelSource[], options?: TuneOptions): Promise<TuneReport>;

  /** Tries the backends without a model. Rejects with {@link BackendError} if none works. */
  static probe(options?: SelectOptions): Promise<Report>;

  /**
   * Runs the conformance suite in this browser: every operator against the reference. Its code is downloaded when it is
   * run.
   */
  static conformance(options: ConformanceOptions): Promise<ConformanceReport>;

  /** Cache of models in the browser's storage. */
  static readonly cache: ModelCache;

  /** Report of the backend selection. */
  readonly report: Report;
  /** Facts about the model. */
  readonly info: ModelInfo;
  /**
   * Resolves when the engine cannot continue, with the error that later calls reject with. Dispose of the engine then,
   * and load the model again. The loss of a device, context or worker alone does not end an engine: the next call, or
   * the one in progress, opens the best backend that works then, loads the model again, and continues where it was. A
   * rung that is lost three times within two minutes is not used again. The engine ends when none is left, or when the
   * model cannot be loaded any more.
   */
  readonly lost: Promise<AnyGpuError>;
  /** Chat completions. */
  readonly chat: { readonly completions: ChatCompletions };
  /** Plain completions. */
  readonly completions: Completions;
  /** Embeddings, for embedding models. */
  readonly embeddings: Embeddings;
  /**
   * Ranks documents by how well they answer a query, for rerankers.
   *
   * Rejects with {@link OptionsError} (a field is invalid, or the model is no reranker), {@link ContextError} (a
   * document is too long), {@link FileError} (no tokenizer), {@link DeviceLostError}, {@link OutOfMemoryError},
   * {@link DisposedError}, {@link CrashError}, or the signal's reason.
   */
  rerank(request: RerankRequest, options?: RequestOptions): Promise<Reranking>;
  /** Named sessions. */
  readonly sessions: Sessions;

  /** Returns the token ids of a text, or of a conversation up to the beginning of the answer. */
  encode(text: string | ChatMessage[]): Promise<Uint32Array>;
  /** Returns the text of token ids. */
  decode(tokens: ArrayLike<number>): Promise<string>;
  /**
   * Exports the last generated text with its computed state. {@link LoadOptions.session} accepts it on any backend and
   * in any browser; so does `anygpu generate --load-session`. It belongs to the same model file and KV cache. `session`
   * selects the text of a named session; rejects with an {@link OptionsError} if there is none.
   */
  export(options?: { session?: string; signal?: AbortSignal }): Promise<Blob>;
  /**
   * Returns the tokens of the text that was last generated or loaded as a session, without dropped ones. A prompt of
   * these tokens continues where the text ended. `session` selects a named session; the result is empty if there is
   * none.
   */
  tokens(options?: { session?: string }): Promise<Uint32Array>;
  /** Adds a listener for recoveries. Returns a function that removes it. */
  on(name: "recovered", listener: (event: Recovered) => void): () => void;
  /**
   * Adds a listener for sessions that cannot be stored, for example because there is no space. It is called once for
   * each session. Without a listener the console shows a warning.
   */
  on(name: "unkept", listener: (event: Unkept) => void): () => void;
  /**
   * Adds a listener for the results of kernels, for generations that begin while it is registered. It is called after
   * tokens, with each kernel's result that is the state of one token (or attention scores) and has at most 16,384
   * elements. The text is the same, but takes longer. If the device reads more slowly than it computes, only some steps
   * are reported.
   */
  on(name: "step", listener: (event: Step) => void): () => void;
  /** Returns the backend's counters, and the size of the wasm memory (not of the device) in bytes. */
  stats(): Promise<Stats & { wasm_memory: number }>;
  /**
   * Frees the GPU's memory and the worker. Calls in progress and all later calls reject with {@link DisposedError}.
   * Calling it again does nothing.
   */
  dispose(): Promise<void>;
  /** Disposes of the engine, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
