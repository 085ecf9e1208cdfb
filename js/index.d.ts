/**
 * Runs a GGUF language model on any GPU that a browser can use.
 *
 * ```js
 * import { AnyGpu } from "anygpu";
 * const engine = await AnyGpu.load("https://example.org/model.gguf");
 * const messages = [{ role: "user", content: "Tell me a story." }];
 * for await (const part of engine.chat.completions.create({ messages, stream: true })) {
 *   console.log(part.choices[0].delta.content);
 * }
 * ```
 *
 * @packageDocumentation
 */

/** A backend to ask for. `auto` is the fastest that works, `gpu` the fastest that works on a GPU. */
export type BackendChoice = "auto" | "gpu" | "webgpu" | "webgl" | "cpu";

/** The thread that the engine runs on: a worker of its own, or the calling thread. */
export type Thread = "worker" | "main";

/**
 * A file of a model: an address, a file that the user chose or dropped, or its bytes. In Node.js, Deno and Bun also a
 * path or a `file:` URL. For a split model, the address of any part (it ends like `-00001-of-00005.gguf`) stands for
 * all parts.
 *
 * `hf:OWNER/REPO:QUANT` is the file of that quantisation on a model hub, `hf:OWNER/REPO:FILE.gguf` is that file, and
 * `hf:OWNER/REPO` is the Q4_K_M file, else Q4_0, else Q8_0, else the only file; see {@link LoadOptions.hub}. The
 * address of the hub's page about a file also stands for the file.
 */
export type ModelSource = string | URL | File | Blob | ArrayBuffer | Uint8Array;

/** Options of the WebGL2 backend. By default each is chosen for the device. */
export interface WebGlOptions {
  /**
   * Texture layout: four values per texel (`packed`, fast), one (`r32f`), or their bits as integers (`bits`, works
   * everywhere).
   */
  layout?: "packed" | "r32f" | "bits";
  /** Largest texture size to use, even if the device allows more. Larger tensors are folded. In texels. */
  maxTextureSize?: number;
}

/** Options of the WebGPU backend. By default each is chosen for the device. */
export interface WebGpuOptions {
  /** Largest binding to use. Larger weights are split. In bytes. */
  maxBinding?: number;
  /**
   * Precision of prompt matmuls with quantised weights: `f32`, the default, is exact but for rounding; `int8` is faster
   * and less exact, and needs a browser with packed integer dot products. The report names the precision in use.
   */
  products?: "f32" | "int8";
}

/** Options of the selection: the backends that may be chosen, and where they run. */
export interface SelectOptions {
  /** Backends that may be chosen; `auto` by default. */
  backend?: BackendChoice;
  /**
   * Whether to run in a worker, so that the page stays responsive; true by default. The engine still runs on the
   * calling thread where workers do not work, or lack a GPU interface that the page has; see {@link Report.thread}.
   */
  worker?: boolean;
  /**
   * Number of CPU threads, 1 to 64. By default as many as the machine runs at once, at most 8. More than one needs a
   * cross-origin isolated page (`crossOriginIsolated`), a worker, and the backend `auto` or `cpu`. If fewer can be
   * started, fewer are used. The text is the same with any number. The facts of the rung `cpu` in the report have the
   * number, and the reason if there are fewer.
   */
  threads?: number;
  /**
   * Address of the worker script, for bundlers that do not include it: the package's `src/worker.js` (`anygpu/worker`),
   * or a script built from it. Not for Node.js, Deno and Bun. Older browsers load the same name with `-older` added,
   * built from `anygpu/worker-older`; if it is missing they run without a worker. Pages that may use threads load the
   * same name with `-threads` added, built from `anygpu/worker-threads`; if it is missing they run without threads.
   * Another origin may serve it, if its server allows that.
   */
  workerUrl?: string | URL;
  /** Address of a folder with the contents of the package's `wasm/`, for bundlers that do not include them. */
  wasmUrl?: string | URL;
  /**
   * How long a worker may be silent during a call before it counts as lost; 60 000 by default. A worker that waits for
   * a slow device is not silent, and neither is one that computes, between two steps. A worker that answers late has
   * twice as long the next time. In milliseconds.
   */
  workerTimeout?: number;
  /** Options of the WebGL2 backend. */
  webgl?: WebGlOptions;
  /** Options of the WebGPU backend. */
  webgpu?: WebGpuOptions;
  /** Aborts the call. The promise rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Retries and timeouts of downloads. */
export interface NetworkOptions {
  /**
   * Number of attempts in a row without progress after a dropped connection, a server error or a stall; 5 by default.
   * The pause before each attempt starts at a quarter of a second and doubles.
   */
  retries?: number;
  /** How long a connection may bring nothing before it is replaced by a new one; 20 000 by default. In milliseconds. */
  stallTimeout?: number;
}

/** Digests of the pieces of a file. A manifest beside a file has the same contents. */
export interface FileDigests {
  /** Size of the file, in bytes. */
  size: number;
  /** Size of all pieces but the last, in bytes: from 64 KiB to 16 MiB. */
  chunk: number;
  /** SHA-256 of each piece, in hexadecimal digits. */
  chunks: readonly string[];
}

/** Event: a device, context or worker was lost, and another has taken over. */
export interface Recovered {
  /** The backend that was lost. */
  from: string;
  /** The backend that took over; it may be the same. */
  to: string;
  /** Reason for the loss. */
  reason: string;
  /** Time from the loss until calls continued, in milliseconds. */
  ms: number;
}

/** Event: a session cannot be kept in the browser's storage. The session itself continues. */
export interface Unkept {
  /** Name of the session. */
  session: string;
  /** Reason, and what to do about it. */
  reason: string;
}

/** Results of the kernels of a decode step. They are the same on every backend up to rounding. */
export interface Step {
  /** Position of the step's token in the text. */
  position: number;
  /** Matrices in the order of the kernels. Each was copied before a later kernel reused its buffer or texture. */
  matrices: readonly StepMatrix[];
}

/** A matrix that a kernel of a step computed. */
export interface StepMatrix {
  /** Name of the kernel with its variant. */
  kernel: string;
  /** The weights or states that the kernel used, such as `blk.3.ffn_down.weight`; empty if there are none. */
  subject: string;
  /** The matrix's name in the graph; may be empty. */
  name: string;
  rows: number;
  cols: number;
  /** Values of the matrix, row by row. */
  values: Float32Array;
}

/** Options of sessions: where they are while another one is on the device, and whether they outlive the page. */
export interface SessionOptions {
  /**
   * Limit for the states of sessions that are not on the device, held beside the page's own memory; 256 MiB by default.
   * The least recently used go first, and are computed again when they are needed. In bytes.
   */
  maxMemory?: number;
  /**
   * Whether named sessions are saved to the browser's storage while they grow; false by default. A tab that ends at any
   * moment then loses little: the next engine of the same model and KV cache has the sessions, and
   * {@link ChatCompletions.resume} continues an answer mid-sentence. Where nothing can be stored, as in private
   * windows, sessions work without storage.
   */
  keep?: boolean;
  /** Least time between two snapshots during an answer: 100 or more, 2000 by default. In milliseconds. */
  every?: number;
  /**
   * Limit for all stored sessions of this site; 512 MiB by default. The least recently used go first. While a session's
   * files are rewritten to keep them short, the old ones take space as well. In bytes.
   */
  maxBytes?: number;
  /** Largest number of stored sessions of this site; 32 by default. */
  maxCount?: number;
}

/** A session with a name. */
export interface SessionInfo {
  /** Name of the session. */
  name: string;
  /** Length of the session's text, in tokens. */
  tokens: number;
  /** How its last answer ended; null if it is unfinished. `"cancelled"`: aborted. */
  finish: FinishReason | "cancelled" | null;
  /** Memory that it uses of {@link SessionOptions.maxMemory}. In bytes. */
  memory: number;
  /** Space that it uses in the browser's storage. In bytes. */
  stored: number;
}

/** The named sessions of an engine; see {@link RequestOptions.session}. */
export interface Sessions {
  /** Lists all sessions, last used first: those of the engine, and those stored for the same model and KV cache. */
  list(): Promise<SessionInfo[]>;
  /**
   * Removes a session, also from the browser's storage. Resolves to whether it existed. Rejects with {@link CacheError}
   * if storage fails.
   */
  remove(name: string): Promise<boolean>;
  /**
   * Removes all sessions, and all stored ones, including those of other models, except sessions in use by other tabs.
   * Rejects with {@link CacheError} if storage fails.
   */
  clear(): Promise<void>;
}

/** Options of {@link AnyGpu.load}. */
export interface LoadOptions extends SelectOptions {
  /**
   * A session saved by {@link AnyGpu.export} or `anygpu generate --save-session` with the same model file. Its text
   * continues where it ended, and nothing is computed again.
   */
  session?: Blob | ArrayBuffer | Uint8Array;
  /** Options of named sessions: where they are while not on the device, and whether they are stored. */
  sessions?: SessionOptions;
  /** Context size in tokens. By default the model's training context, at most 2048. */
  nCtx?: number;
  /**
   * Data type of the KV cache. `"f32"`, the default, keeps values as computed. `"f16"` rounds them to half precision,
   * in half the GPU memory. `"q8_0"` rounds them to bytes with a scale for each 32, in about a quarter. The others use
   * five or four bits each, down to about a seventh; those ending in `_1` also store the smallest value of each 32.
   */
  kvCache?: "f32" | "f16" | "q8_0" | "q5_1" | "q5_0" | "q4_1" | "q4_0";
  /**
   * Limit for weights and states together, in bytes. By default states may take 512 MiB or four times the size of the
   * weights, whichever is larger. A model that needs more is refused with an {@link OutOfMemoryError} before anything
   * is allocated.
   */
  maxMemory?: number;
  /**
   * Makes it an embedding model that pools the vectors of a text's tokens in this way: their mean, the first, or the
   * last. By default the file decides. A file that does not say is a language model, unless it cannot be one.
   */
  pooling?: "mean" | "cls" | "last";
  /**
   * Assumed rate of the device, in multiply-adds a millisecond, to test how a page behaves on a slow device. By default
   * the rate is measured. It decides into how many parts the work is cut, so that neither the GPU nor the page's thread
   * is busy for more than about 100 ms at once. The text is the same.
   */
  rate?: number;
  /**
   * Called with the progress of loading: at most every 50 ms, at each change of phase, and for each rung that is tried.
   * Exceptions from it are reported, not thrown.
   */
  onProgress?: (progress: LoadProgress) => void;
  /**
   * Whether a model from a URL is kept in the browser's storage, so that it is downloaded once; true by default. Each
   * file of a split model is kept under its own URL. If it cannot be kept, it is loaded without the cache and
   * {@link ModelInfo.cache} says why; with `"require"` loading rejects with a {@link CacheError} instead.
   */
  cache?: boolean | "require";
  /** Limit for the cache; the least recently used entries make room. In bytes; no limit by default. */
  maxCacheBytes?: number;
  /** Asks the server whether a cached model has changed (by `ETag`, `Last-Modified` and size); false by default. */
  revalidate?: boolean;
  /**
   * SHA-256 of the file in hexadecimal digits; for a split model an array with one for each file, in order. A file with
   * another digest is refused with a {@link ChecksumError}, and is not kept.
   */
  sha256?: string | readonly string[];
  /**
   * Digests of the pieces of the file; for a split model an array with those of each file, in order. Each piece is
   * checked before it is used, and downloaded again if it is wrong. `true`: the digests are in a JSON file beside each
   * file, at its address with `.manifest.json` after the path. A piece that stays wrong rejects with a
   * {@link ChecksumError}.
   */
  digests?: true | FileDigests | readonly FileDigests[];
  /**
   * Address of the hub that resolves names such as `hf:OWNER/REPO`; `https://huggingface.co` by default. In Node.js,
   * Deno and Bun the default is the environment variable `HF_ENDPOINT`, if it is set.
   */
  hub?: string | URL;
  /** Headers of the requests for the model. */
  headers?: HeadersInit;
  /** Whether cookies are sent with the requests for the model, as for `fetch`; `same-origin` by default. */
  credentials?: RequestCredentials;
  /** Retries and timeouts of downloads. */
  network?: NetworkOptions;
}

/** Options of {@link AnyGpu.tune}. */
export interface TuneOptions extends LoadOptions {
  /** Called with a description of each measurement. Exceptions from it are reported, not thrown. */
  onTrial?: (what: string) => void;
}

/** Values of a backend's tunables that differ from its defaults, by name. */
export type TunedValues = Record<string, number>;

/** Result of tuning: the values tried on a device, and the best ones. */
export interface TuneReport {
  /** The report as text for people. */
  text: string;
  /** Length of the prompt, in tokens. */
  prefill_tokens: number;
  /** Number of tokens decoded after the prompt. */
  decode_tokens: number;
  /** All runs in order; the first has the defaults. Times in milliseconds. */
  trials: { values: TunedValues; prefill_ms: number; decode_ms_per_token: number }[];
  /** The fastest values; empty if the defaults are best, or nothing can be tuned. */
  winner: { rung: string; adapter: string; values: TunedValues };
  /**
   * Times of the best values divided by those of the defaults, measured in turn: prefill and decode. Null if no value
   * helped.
   */
  ratios: [prefill: number, decode: number] | null;
  /** Whether the browser stored the values, so that loading uses them from now on. */
  kept: boolean;
}

/** Progress of a rung: it is being tried, or its result so far. */
export interface RungProgress extends Omit<Rung, "outcome"> {
  /** Result so far. While others are still tried, `chosen` marks the fastest so far. */
  outcome: RungOutcome | { /** Is being tried. */ kind: "trying" };
}

/**
 * Progress of loading. `connect`: the server is asked. `download`: bytes come from the network, and go to the device as
 * they come. `select`: backends are tried. `upload`: bytes of a file or of the cache go to the device. `ready`: done.
 */
export interface LoadProgress {
  /** Current phase. */
  phase: "connect" | "download" | "select" | "upload" | "ready";
  /** Bytes done in this phase. */
  loaded: number;
  /** Total bytes of this phase; 0 while it is not known. */
  total: number;
  /** Progress of loading as a whole, from 0 to 1. It never decreases. */
  fraction: number;
  /**
   * In the phase `select`: a rung when its trial begins, and again whenever it has a result. The last one of each name
   * is what the report has. If this device was tried before, all are given at once.
   */
  rung?: RungProgress;
}

/** Result of a candidate. */
export type RungOutcome =
  | { /** Runs the model. */ kind: "chosen" }
  | { /** Works, but another one is faster. */ kind: "slower" }
  | { /** Cannot run the model here, or computed wrong results. */ kind: "rejected"; /** Reason. */ reason: string }
  | { /** Was not tried. */ kind: "skipped"; /** Reason. */ reason: string };

/** One candidate of a selection. */
export interface Rung {
  /** Name of the backend and variant. */
  name: string;
  /** Device and driver as they name themselves; null if the device could not be opened. */
  adapter: string | null;
  /** Whether the device is known to be a software GPU, run by the CPU. */
  software: boolean;
  /** Relevant limits and options: pairs of a name and a value. */
  facts: [name: string, value: string][];
  /** Time of the test matvec, in milliseconds; null if it was not run. */
  matvec_ms: number | null;
  /** Time for opening, timing and testing it, in milliseconds, as far as it got; null if it was not tried. */
  tried_ms: number | null;
  /** Result of the candidate. */
  outcome: RungOutcome;
}

/** Result of the selection: the rung that was chosen, and why others were refused. */
export interface Report {
  /** Name of the chosen rung; null if all were refused. */
  chosen: string | null;
  /** All rungs, most preferred first. */
  rungs: Rung[];
  /**
   * Whether the choice of an earlier load was used, since nothing has changed. Rungs that were not opened now are then
   * reported as they were. All are tried again after a change of the browser, the device or this package's version, and
   * after seven days.
   */
  remembered: boolean;
  /** Number of self-tests that were run. */
  proofs: number;
  /** Thread that the engine runs on. */
  thread: Thread;
  /** Reason for that thread. */
  thread_reason: string;
  /**
   * SHA-256 of the wasm module that was loaded, in hexadecimal digits. A release's `SHA256SUMS` lists it. Absent in a
   * report that comes with an error.
   */
  module_sha256?: string;
}

/** How the cache was used for a model. */
export interface CacheState {
  /** `hit`: read from the cache. `stored`: downloaded and kept. `off`: not kept. */
  state: "hit" | "stored" | "off";
  /** Why the model is not kept, or why a cached model was not revalidated. */
  reason?: string;
}

/** Facts about a loaded model. */
export interface ModelInfo {
  /** Name of the architecture, from the file. */
  architecture: string;
  /** Name of the model, from the file. */
  name: string | null;
  /** Context size in tokens. */
  n_ctx: number;
  /** Size of the vocabulary, in tokens. */
  vocab: number;
  /** Size of the file, or of all files of a split model, in bytes. */
  file_bytes: number;
  /** Whether the file has a usable tokenizer. Without one only token ids can be completed. */
  has_tokenizer: boolean;
  /** Whether the file has a usable chat template. */
  has_chat: boolean;
  /**
   * How the vectors of tokens become one vector for a text; null for a language model, which does not compute
   * embeddings.
   */
  pooling: "none" | "mean" | "cls" | "last" | null;
  /** Backend that it runs on. */
  backend: "webgpu" | "webgl" | "cpu";
  /** Device and driver as they name themselves. */
  adapter: string;
  /** Whether the device is known to be a software GPU, run by the CPU. */
  software: boolean;
  /** Time for reading the file's header and choosing the backend, in milliseconds. */
  open_ms: number;
  /** Time for loading the weights, in milliseconds. */
  load_ms: number;
  /**
   * Loading of the weights in parts, in milliseconds: waiting for bytes and copying them (`read_ms`), repacking and
   * uploading them (`write_ms`), turns of the event loop and waiting for the device (`device_ms`). A server, disk or
   * device that works in parallel costs no time here.
   */
  loading: { bytes: number; read_ms: number; write_ms: number; device_ms: number; total_ms: number };
  /** Time for compiling for the backend after the weights were loaded, in milliseconds. */
  compile_ms: number;
  /** Thread that the engine runs on. */
  thread: Thread;
  /** How the cache was used. */
  cache: CacheState;
}

/** Counters of a backend since it was opened. */
export interface Stats {
  /** Compute dispatches or draws (on the CPU: kernels). */
  dispatches: number;
  /** Submissions of encoded work (on WebGL: flushes). */
  submits: number;
  /** GPU objects created. */
  objects: number;
  /** Bytes uploaded to the device. */
  uploaded: number;
  /** Bytes read back from the device. */
  read_back: number;
  /** Device memory in use now, in bytes. */
  memory: number;
}

/** Counters of steady-state decoding, summed over a number of steps (`memory`: in use now). */
export interface SteadyStats extends Stats {
  /** Number of steps. */
  steps: number;
}

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
  /** Id of the call that a turn of the role `tool` answers. */
  tool_call_id?: string | null;
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
  /** Seed of the random numbers; 0 by default. The same seed gives the same text. */
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
  /**
   * Drops candidates less likely than this fraction of the best one's probability, at the temperature; 0 by default.
   */
  min_p?: number | null;
  /** Values from -100 to 100 that are added to the logits of at most 1,024 token ids. */
  logit_bias?: Readonly<Record<string, number>> | null;
  /** Has no effect. */
  user?: string | null;
}

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
  /** Format of the answer; text by default. Other formats load a separate module. */
  response_format?: ResponseFormat | null;
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

/** A text to continue. */
export interface CompletionRequest extends GenerateRequest {
  /** The text or its token ids, or an array with one of either. An empty text, or null, starts a new text. */
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
  prompt_tokens_details: { cached_tokens: number };
  /** Reasoning tokens in a chat, and drafted tokens (`draft_max`) that were accepted and rejected. */
  completion_tokens_details: { reasoning_tokens: number; accepted_prediction_tokens: number; rejected_prediction_tokens: number };
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

/** Reason why an answer ended: a {@link FinishReason}, or `"tool_calls"` if it calls functions. */
export type ChatFinishReason = FinishReason | "tool_calls";

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
 * How likely the tokens of an answer or of a chunk were. The tokens that were there before `resume` continued an answer
 * are missing.
 */
export interface ChatLogprobs {
  /** Tokens of the answer or chunk. */
  content: TokenLogprob[];
  /** Always null: nothing is refused. */
  refusal: null;
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

/** Chat completions. */
export interface ChatCompletions {
  /**
   * Continues a conversation as a stream. Nothing is computed before the first chunk is asked for.
   *
   * @throws {OptionsError} A field is invalid; thrown at once. Iterating throws the errors that the form without `stream` rejects
   * with.
   */
  create(request: ChatRequest & { stream: true }, options?: RequestOptions): Stream<ChatCompletionChunk>;
  /**
   * Continues a conversation. Generations of one engine run one after the other. The prefix that a conversation shares
   * with the previous one is not computed again.
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

/** A backend of the conformance suite, or a variant of one. */
export type ConformanceBackend =
  | "webgpu"
  | "webgpu-core"
  | "webgpu-split"
  | "webgpu-software"
  | "webgpu-int8"
  | "webgl"
  | "webgl-r32f"
  | "webgl-bits"
  | "webgl-fold"
  | "webgl-split"
  | "cpu";

/** Options of {@link AnyGpu.conformance}. */
export interface ConformanceOptions {
  /** Backend or variant to test. */
  backend: ConformanceBackend;
  /** Runs only this operator. */
  op?: string;
  /** Runs only one in this many cases of each operator, beginning with the first; 1, the default, runs all. */
  every?: number;
  /** Called with the result of each case. Exceptions from it are reported, not thrown. */
  onCase?: (result: ConformanceCase) => void;
  /** Aborts the run. The promise rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Whether to run in a worker, as for {@link SelectOptions.worker}. */
  worker?: boolean;
  /** Number of CPU threads, as for {@link SelectOptions.threads}. */
  threads?: number;
  /**
   * Address of the suite's own worker script, as for {@link SelectOptions.workerUrl}: the package's
   * `src/suite-worker.js` (`anygpu/suite-worker`; for older browsers `anygpu/suite-worker-older`, and
   * `anygpu/suite-worker-threads`).
   */
  workerUrl?: string | URL;
  /** Address of the wasm folder, as for {@link SelectOptions.wasmUrl}. */
  wasmUrl?: string | URL;
  /** Known failures, which do not count. */
  expectations?: {
    expect: { backend: string; adapter?: string; op: string; case?: string; reason: string }[];
  };
}

/** Result of one case. */
export interface ConformanceCase {
  /** Index of the case, from 0. */
  index: number;
  /** Number of cases that will be run. */
  total: number;
  /** Name of the operator. */
  op: string;
  /** Name of the case. */
  case: string;
  /** Whether the case passed. */
  ok: boolean;
  /** Normalised mean squared error against the reference; null if the case failed. */
  nmse: number | null;
  /** Reason for the failure; null if the case passed. */
  message: string | null;
}

/** Results of one operator. */
export interface ConformanceOp {
  /** Name of the operator. */
  op: string;
  /** Number of cases that were run. */
  cases: number;
  /** Number of cases of a fused operator that ran as primitives. */
  expanded: number;
  /** Largest error of the cases that passed. */
  worst_nmse: number;
  /** Cases that failed. */
  failures: {
    /** Name of the case. */
    case: string;
    /** Reason for the failure. */
    why: string;
    /** The reason if it was expected to fail; it does not count then. */
    expected: string | null;
  }[];
}

/** Results of the conformance suite on one backend. */
export interface ConformanceReport {
  /** Name of the backend or variant. */
  name: string;
  /** Device and driver as they name themselves. */
  adapter: string;
  /** Number of cases that passed, or failed as expected. */
  passed: number;
  /** Number of cases that failed. */
  failed: number;
  /** Number of cases left out by `every`. */
  not_run: number;
  /** Results of each operator. */
  ops: ConformanceOp[];
  /** Thread that the suite ran on. */
  thread: Thread;
}

/** A model in the browser's cache. */
export interface CacheEntry {
  /** Key of the entry: the address without credentials and fragment. */
  key: string;
  /** Size of the file, in bytes. */
  size: number;
  /**
   * Size of the part that is stored: less than `size` if a download was interrupted, which the next load continues. In
   * bytes.
   */
  stored: number;
  /** The server's `ETag` of this version; null if it had none. */
  etag: string | null;
  /** SHA-256 of the file in hexadecimal digits, if it was computed. */
  sha256: string | null;
  /** Time when it was stored. */
  created: Date;
  /** Time when it was last loaded. */
  used: Date;
}

/** Use of the browser's storage. */
export interface CacheUsage {
  /** Whether this browser and page can store models at all: it takes a secure context, and not a private window. */
  supported: boolean;
  /** Size of the stored models, in bytes. */
  bytes: number;
  /** Number of stored models. */
  entries: number;
  /** Storage that the browser grants this site in all, in bytes; null if it does not say. */
  quota: number | null;
  /** Storage that this site uses in all, in bytes; null if the browser does not say. */
  used: number | null;
}

/** The models that the browser stores for this site. Each method rejects with {@link CacheError} if storage fails. */
export interface ModelCache {
  /** Lists all models, last used first. */
  list(): Promise<CacheEntry[]>;
  /**
   * Removes a model by its key or address. Resolves to whether it existed. A model that is being read is removed when
   * that is done.
   */
  delete(keyOrUrl: string | URL): Promise<boolean>;
  /** Removes all models. */
  clear(): Promise<void>;
  /** Returns how much is stored. */
  usage(): Promise<CacheUsage>;
}

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

/** Kind of an error, for programs. */
export type ErrorCode =
  | "network"
  | "file"
  | "template"
  | "not_a_number"
  | "cache"
  | "quota"
  | "absent"
  | "no_backend"
  | "unsupported"
  | "limit"
  | "driver"
  | "lost"
  | "memory"
  | "context"
  | "options"
  | "checksum"
  | "disposed"
  | "crash"
  | "browser"
  | "pool";

/** Base class of all errors. Each message names the cause and the remedy. */
export class AnyGpuError extends Error {
  constructor(message: string, details?: { code?: ErrorCode; cause?: unknown });
  /** Kind of the error, for programs. */
  readonly code: ErrorCode;
}

/** The model could not be downloaded, after all retries. */
export class NetworkError extends AnyGpuError {
  constructor(message: string, details?: { cause?: unknown; url?: string; status?: number | null });
  /** Address that was requested. */
  readonly url: string | null;
  /** HTTP status of the last response; null if there was none. */
  readonly status: number | null;
}

/**
 * The file is not a GGUF file, is damaged, or has a model, tokenizer or chat template (`code: "template"`) that cannot
 * be used. Or numbers became NaN or infinite (`code: "not_a_number"`), so there is no next token: the message names
 * where that begins.
 */
export class FileError extends AnyGpuError {}

/** The browser's storage cannot keep the model. */
export class CacheError extends AnyGpuError {}

/** There is no room for the model in the browser's storage. */
export class QuotaError extends CacheError {}

/** None of the allowed backends can run the model here. */
export class BackendError extends AnyGpuError {
  constructor(message: string, details?: { code?: ErrorCode; cause?: unknown; report?: Report | null });
  /** All backends that were tried, and why they were refused; null if the failure was not in the selection. */
  readonly report: Report | null;
}

/** The device or its driver was lost; load the model again. */
export class DeviceLostError extends AnyGpuError {}

/** The device or the page does not have enough memory. */
export class OutOfMemoryError extends AnyGpuError {}

/** The prompt does not fit the context. */
export class ContextError extends AnyGpuError {}

/** An argument is invalid, or asks for something that is not supported. */
export class OptionsError extends AnyGpuError {
  constructor(message: string, details?: { cause?: unknown; field?: string });
  /** Name of the invalid field. */
  readonly field: string | null;
}

/** The file does not have the expected SHA-256. */
export class ChecksumError extends AnyGpuError {
  constructor(message: string, details?: { cause?: unknown; expected?: string; actual?: string });
  /** Expected digest. */
  readonly expected: string | null;
  /** Actual digest. */
  readonly actual: string | null;
}

/** The browser is too old; the message says what it lacks. */
export class BrowserError extends AnyGpuError {}

/** The engine was disposed. */
export class DisposedError extends AnyGpuError {}

/**
 * The worker or the engine in it stopped: a bug, the browser ended it, or the thread's stack was too small. Load the
 * model again. With `worker: false` the engine then starts anew too, and all models on that thread are gone.
 */
export class CrashError extends AnyGpuError {}
