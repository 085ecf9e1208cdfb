/**
 * One GGUF language model, any GPU a browser has.
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

/** A backend to ask for: `auto` is the fastest that works, `gpu` the best GPU backend that works. */
export type BackendChoice = "auto" | "gpu" | "webgpu" | "webgl" | "cpu";

/** Where the engine runs: in a worker of its own, or on the thread that called. */
export type Thread = "worker" | "main";

/**
 * A file of a model: an address, a file that the user chose or dropped, or the bytes themselves; in Node.js, Deno and Bun
 * also a path or a `file:` URL. The address of one file of a split model, which ends like `-00001-of-00005.gguf`, stands
 * for all of them.
 *
 * `hf:OWNER/REPO:QUANT` is the file of a model on a hub whose name has that quantisation, `hf:OWNER/REPO:FILE.gguf` that
 * file, and `hf:OWNER/REPO` the one in Q4_K_M, else Q4_0, else Q8_0, else the only one; see {@link LoadOptions.hub}. The
 * address of the hub's page about a file stands for the file.
 */
export type ModelSource = string | URL | File | Blob | ArrayBuffer | Uint8Array;

/** What can be set about WebGL2. Left alone, each is chosen for the device. */
export interface WebGlOptions {
  /** Only this layout: four values a texel (`packed`, fast), one (`r32f`), or their bits as integers (`bits`, works everywhere). */
  layout?: "packed" | "r32f" | "bits";
  /** Tensors are folded at this texture size even if the device allows more. In texels. */
  maxTextureSize?: number;
}

/** What can be set about WebGPU. Left alone, each is chosen for the device. */
export interface WebGpuOptions {
  /** Weights whose bindings would be larger are split. In bytes. */
  maxBinding?: number;
  /**
   * What several rows, as of a prompt, are multiplied with quantised weights in: `f32` by default, which is exact but for
   * rounding, or `int8`, which is faster and less exact and needs a browser with packed integer products. The report names
   * what was used.
   */
  products?: "f32" | "int8";
}

/** Which backends may be chosen, and where they run. */
export interface SelectOptions {
  /** Which backends may be chosen; `auto` by default. */
  backend?: BackendChoice;
  /**
   * Whether to run in a worker, so that the page stays responsive; true by default. Where workers do not work, or lack
   * the GPU interface that the page itself has, the engine runs on the calling thread all the same; see
   * {@link Report.thread}.
   */
  worker?: boolean;
  /**
   * How many threads the CPU computes with, from 1 to 64; by default as many as the machine runs at once, but at most 8. Only
   * in pages that are isolated from other origins (`crossOriginIsolated`), in a worker, and with the backend `auto` or
   * `cpu`; elsewhere there is one. If fewer can be started, there are fewer. The text is the same with any number. The
   * report has the number among the facts of the rung `cpu`, with the reason if there are fewer.
   */
  threads?: number;
  /**
   * The address of the script of the worker, which is the package's `src/worker.js` (`anygpu/worker`) or was built from
   * it, for bundlers that do not bring it along; not in Node.js, Deno and Bun. Older browsers take that with `-older`
   * behind its name, built from `anygpu/worker-older`, and do without a worker where it is missing. Pages that may have
   * threads take that with `-threads` behind its name, built from `anygpu/worker-threads`, and do without threads where it is
   * missing. It may be of another origin, whose server has to allow it.
   */
  workerUrl?: string | URL;
  /** The address of a folder with the contents of the package's `wasm/`, for bundlers that do not bring them along. */
  wasmUrl?: string | URL;
  /**
   * How long a worker may give no sign of life while something is asked of it; 60 000 by default. Then it counts as lost.
   * One that waits for a slow device gives signs, and so does one that computes, between two steps; a worker that answers
   * late has twice as long the next time. In milliseconds.
   */
  workerTimeout?: number;
  /** Options of WebGL2. */
  webgl?: WebGlOptions;
  /** Options of WebGPU. */
  webgpu?: WebGpuOptions;
  /** Aborts. The promise rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** How patient downloads are. */
export interface NetworkOptions {
  /**
   * How often in a row a dropped connection, a server error or a stall is followed by another attempt that brings no
   * progress; 5 by default. The pause before it doubles from a quarter of a second.
   */
  retries?: number;
  /** A connection that brings nothing for so long is given up and made anew; 20 000 by default. In milliseconds. */
  stallTimeout?: number;
}

/** Digests of the pieces of a file, also the contents of a manifest beside it. */
export interface FileDigests {
  /** Size of the file, in bytes. */
  size: number;
  /** Size of all pieces but the last, in bytes: from 64 KiB to 16 MiB. */
  chunk: number;
  /** The SHA-256 of each piece, in hexadecimal digits. */
  chunks: readonly string[];
}

/** A device, context or worker was lost, and another has taken over. */
export interface Recovered {
  /** The backend that was lost. */
  from: string;
  /** The backend that took over; it may be the same. */
  to: string;
  /** What was wrong. */
  reason: string;
  /** From the loss to when calls went on, in milliseconds. */
  ms: number;
}

/** A session cannot be kept in the browser's storage; it goes on all the same. */
export interface Unkept {
  /** The session. */
  session: string;
  /** Why, and what to do. */
  reason: string;
}

/** What the kernels of a decode step made, the same on every backend up to rounding. */
export interface Step {
  /** The position of its token in the text. */
  position: number;
  /** In the order of the kernels; each lay in a buffer or texture that a later kernel took for something else. */
  matrices: readonly StepMatrix[];
}

/** A matrix that a kernel of a step made. */
export interface StepMatrix {
  /** The kernel with its variant. */
  kernel: string;
  /** The weights or states that tell it from others like it, such as `blk.3.ffn_down.weight`; empty if there are none. */
  subject: string;
  /** What the graph calls it; may be empty. */
  name: string;
  rows: number;
  cols: number;
  /** Its values, row by row. */
  values: Float32Array;
}

/** Where sessions are while another one is on the device, and whether they outlive the page. */
export interface SessionOptions {
  /**
   * Most memory for the states of sessions that are not on the device, beside those of the page itself; 256 MiB by
   * default. Those that were not used for longest go first; when they are asked for again, they are computed again. In
   * bytes.
   */
  maxMemory?: number;
  /**
   * Whether sessions with a name are kept in the browser's storage while they grow, so that a tab that ends at any
   * moment loses little: the next engine of the same model and KV cache has them, and {@link ChatCompletions.resume}
   * goes on with an answer in the middle of the sentence. False by default. Where nothing can be kept, as in private
   * windows, sessions work all the same.
   */
  keep?: boolean;
  /** From one snapshot to the next during an answer, at least: 100 and more, 2000 by default. In milliseconds. */
  every?: number;
  /**
   * Most that all sessions of this site may take of the browser's storage; 512 MiB by default. Those that were not used
   * for longest go first. While a session is rewritten, which bounds its files, what it had before stays besides. In
   * bytes.
   */
  maxBytes?: number;
  /** Most sessions of this site; 32 by default. */
  maxCount?: number;
}

/** A session with a name. */
export interface SessionInfo {
  /** Its name. */
  name: string;
  /** Tokens of its text. */
  tokens: number;
  /** How its last answer ended; null if it was under way. `"cancelled"`: aborted. */
  finish: FinishReason | "cancelled" | null;
  /** What it takes of {@link SessionOptions.maxMemory}. In bytes. */
  memory: number;
  /** What it takes of the browser's storage. In bytes. */
  stored: number;
}

/** The sessions of an engine: texts with names, see {@link RequestOptions.session}. */
export interface Sessions {
  /** All, last used first: those that the engine has, and those that the browser keeps for the same model and KV cache. */
  list(): Promise<SessionInfo[]>;
  /** Forgets one, in the browser's storage too; gives whether it was there. Rejects with {@link CacheError} if storage fails. */
  remove(name: string): Promise<boolean>;
  /** Forgets all, and all that the browser keeps, of other models too, but for those that other tabs use. Rejects likewise. */
  clear(): Promise<void>;
}

/** How to load a model. */
export interface LoadOptions extends SelectOptions {
  /**
   * A session that {@link AnyGpu.export} or `anygpu generate --save-session` saved, with the same model file: the text goes on
   * where it was, and nothing of it is computed again.
   */
  session?: Blob | ArrayBuffer | Uint8Array;
  /** Where sessions with names are while they are not on the device, and whether they are kept. */
  sessions?: SessionOptions;
  /** Tokens that the context holds; by default the model's training context, but at most 2048. */
  nCtx?: number;
  /**
   * What the KV cache holds: `"f32"`, floats as they were computed, by default; `"f16"`, rounded to halves, in half the memory
   * of a GPU; or `"q8_0"`, rounded to bytes with a scale for each 32, in about a quarter;
   * or five or four bits for each, down to about a seventh: `_1` has the smallest number of each 32 beside the scale.
   */
  kvCache?: "f32" | "f16" | "q8_0" | "q5_1" | "q5_0" | "q4_1" | "q4_0";
  /**
   * Most memory that weights and states may take, in bytes. Without it states may take at most 512 MiB or four times as much
   * as the weights. What takes more is refused with an {@link OutOfMemoryError} before anything of it is made.
   */
  maxMemory?: number;
  /**
   * Makes it an embedding model that makes one vector of those of a text's tokens in this way: their mean, the first, or the
   * last. By default what the file says; a file that says nothing is a language model, unless it can be none.
   */
  pooling?: "mean" | "cls" | "last";
  /**
   * Takes the device for one that does so many multiply-adds a millisecond, whatever it really does: to test how a page
   * behaves with a slow one. By default the rate is measured. It decides into how many parts the work is cut, so that
   * neither the GPU nor the page's thread is held for more than about 100 ms; the text is the same.
   */
  rate?: number;
  /**
   * Told how loading goes on, at most every 50 ms, at each change of phase, and of each rung that is tried. What it throws
   * is reported, not thrown.
   */
  onProgress?: (progress: LoadProgress) => void;
  /**
   * Whether a model from a URL is kept in the browser's storage, so that it is downloaded once; true by default. Each file
   * of a split model is kept by its own URL. Where it cannot be kept, it is loaded all the same and
   * {@link ModelInfo.cache} says why; with `"require"` that is a {@link CacheError} instead.
   */
  cache?: boolean | "require";
  /** The cache holds at most so much: the entries not used for longest make room. In bytes; no limit by default. */
  maxCacheBytes?: number;
  /** Asks the server whether a cached model is still the same (by `ETag`, `Last-Modified` and size); false by default. */
  revalidate?: boolean;
  /**
   * The file's SHA-256 in hexadecimal digits; of a split model an array of those of all files, in their order. Anything else
   * is a {@link ChecksumError}, and is not kept.
   */
  sha256?: string | readonly string[];
  /**
   * Digests of the pieces of the file; of a split model an array with those of all files, in their order. Each piece
   * is held to its own before it is used, and asked for again if it is not right. `true`: they lie beside each file,
   * in JSON, under its address with `.manifest.json` behind the path. A piece that stays wrong is a
   * {@link ChecksumError}.
   */
  digests?: true | FileDigests | readonly FileDigests[];
  /**
   * The address of the hub that names such as `hf:OWNER/REPO` are looked up on: `https://huggingface.co` by default; in
   * Node.js, Deno and Bun what the environment's `HF_ENDPOINT` says.
   */
  hub?: string | URL;
  /** Headers of the requests for the model. */
  headers?: HeadersInit;
  /** As for `fetch`: whether cookies are sent with the requests for the model; `same-origin` by default. */
  credentials?: RequestCredentials;
  /** How patient downloads are. */
  network?: NetworkOptions;
}

/** How to tune. */
export interface TuneOptions extends LoadOptions {
  /** Told what is being measured. What it throws is reported, not thrown. */
  onTrial?: (what: string) => void;
}

/** What differs from a backend's defaults, by name. */
export type TunedValues = Record<string, number>;

/** What was tried on a device, and what won. */
export interface TuneReport {
  /** The report as a person reads it. */
  text: string;
  /** Tokens of the prompt. */
  prefill_tokens: number;
  /** Tokens decoded after it. */
  decode_tokens: number;
  /** All runs in their order; the first has the defaults. Times in milliseconds. */
  trials: { values: TunedValues; prefill_ms: number; decode_ms_per_token: number }[];
  /** The winner; without values if the defaults are best, or nothing can be tuned. */
  winner: { rung: string; adapter: string; values: TunedValues };
  /** The winner's times over those of the defaults, run in turn: prefill and decode; null if no value helped. */
  ratios: [prefill: number, decode: number] | null;
  /** Whether the browser keeps it, so that loading uses it from now on. */
  kept: boolean;
}

/** A rung that is being tried, or what came of it so far. */
export interface RungProgress extends Omit<Rung, "outcome"> {
  /** What became of it; while others are still tried, `chosen` is the fastest so far. */
  outcome: RungOutcome | { /** It is being tried. */ kind: "trying" };
}

/**
 * How far loading is. `connect`: the server is asked. `download`: bytes come from the network, and go to the device as
 * they come. `select`: backends are tried. `upload`: bytes of a file or of the cache go to the device. `ready`: done.
 */
export interface LoadProgress {
  /** What is being done. */
  phase: "connect" | "download" | "select" | "upload" | "ready";
  /** Bytes done in this phase. */
  loaded: number;
  /** Bytes of the whole; 0 while it is not known. */
  total: number;
  /** How far loading is as a whole: 0 to 1, and it never falls. */
  fraction: number;
  /**
   * In the phase `select`: a rung when it begins to be tried, and each time something has come of one. The last that is
   * told of each is what the report says. If this device was tried before, all are told at once.
   */
  rung?: RungProgress;
}

/** What became of a candidate. */
export type RungOutcome =
  | { /** It runs the model. */ kind: "chosen" }
  | { /** Another one is faster. */ kind: "slower" }
  | { /** It cannot run the model here, or gave wrong results. */ kind: "rejected"; /** Why. */ reason: string }
  | { /** It was not tried. */ kind: "skipped"; /** Why. */ reason: string };

/** One candidate of a selection. */
export interface Rung {
  /** Backend and variant. */
  name: string;
  /** Device and driver as they name themselves; null if it could not be opened. */
  adapter: string | null;
  /** Whether the device is known to be a GPU that the CPU imitates. */
  software: boolean;
  /** Limits and options that matter: pairs of a name and a value. */
  facts: [name: string, value: string][];
  /** The time of the test matvec, in milliseconds; null if it did not come to that. */
  matvec_ms: number | null;
  /** How long opening, timing and testing it took, in milliseconds, as far as it came to that. */
  tried_ms: number | null;
  /** What became of it. */
  outcome: RungOutcome;
}

/** What was chosen, and what was refused and why. */
export interface Report {
  /** The name of the rung chosen; null if all were refused. */
  chosen: string | null;
  /** All rungs, best first. */
  rungs: Rung[];
  /**
   * Whether it is what was chosen by an earlier load, since nothing has changed: what was not opened now is told of as it
   * was then. A changed browser, device or version of this package is tried anew, and everything after seven days.
   */
  remembered: boolean;
  /** How many self-tests were run. */
  proofs: number;
  /** Where the engine runs. */
  thread: Thread;
  /** Why it runs there. */
  thread_reason: string;
  /**
   * SHA-256 of the wasm module that runs, in hexadecimal digits: of the bytes that this visit loaded. `SHA256SUMS` of a
   * release lists it. Absent of a report that comes with an error.
   */
  module_sha256?: string;
}

/** What the cache did for a model. */
export interface CacheState {
  /** `hit`: read from the cache. `stored`: downloaded and kept. `off`: not kept. */
  state: "hit" | "stored" | "off";
  /** Why it is not kept, or why a cached model was not revalidated. */
  reason?: string;
}

/** What a person wants to know of a loaded model. */
export interface ModelInfo {
  /** The architecture's name in the file. */
  architecture: string;
  /** The model's name in the file. */
  name: string | null;
  /** Tokens that the context holds. */
  n_ctx: number;
  /** Size of the vocabulary, in tokens. */
  vocab: number;
  /** Size of the file, or of all files of a split model, in bytes. */
  file_bytes: number;
  /** Whether the file has a tokenizer that can be used; without one only token ids can be completed. */
  has_tokenizer: boolean;
  /** Whether the file brings a chat template that can be used. */
  has_chat: boolean;
  /** How vectors of tokens become one of a text; null of a language model, which makes no embeddings. */
  pooling: "none" | "mean" | "cls" | "last" | null;
  /** The backend it runs on. */
  backend: "webgpu" | "webgl" | "cpu";
  /** Device and driver as they name themselves. */
  adapter: string;
  /** Whether the device is known to be a GPU that the CPU imitates. */
  software: boolean;
  /** How long reading the file's header and choosing the backend took, in milliseconds. */
  open_ms: number;
  /** How long the weights took to load, in milliseconds. */
  load_ms: number;
  /**
   * The same in parts, in milliseconds: waiting for bytes and copying them, repacking them and handing them over, and
   * turns of the event loop and waiting for the device. A server, a disk or a device that works meanwhile takes no time
   * here.
   */
  loading: { bytes: number; read_ms: number; write_ms: number; device_ms: number; total_ms: number };
  /** How long compiling for the backend took after the weights were there, in milliseconds. */
  compile_ms: number;
  /** Where the engine runs. */
  thread: Thread;
  /** What the cache did. */
  cache: CacheState;
}

/** Counters of a backend, since it was opened. */
export interface Stats {
  /** Compute dispatches or draws (on the CPU: kernels run). */
  dispatches: number;
  /** Submissions of encoded work (WebGL: flushes). */
  submits: number;
  /** GPU objects made. */
  objects: number;
  /** Bytes sent to the device. */
  uploaded: number;
  /** Bytes read back. */
  read_back: number;
  /** Bytes of device memory held now. */
  memory: number;
}

/** What decoding cost in the steady state: the counters of so many steps taken together (`memory`: held now). */
export interface SteadyStats extends Stats {
  /** How many steps. */
  steps: number;
}

/**
 * A part of a turn. Only parts of text are read; others are refused with an {@link OptionsError}, and are here so that
 * requests typed for OpenAI's API fit.
 */
export type ContentPart = { /** Text is all that there is. */ type: "text"; /** The text. */ text: string } | { type: string };

/** A function that a model wants to be called. */
export interface ToolCall {
  /** Its name, unlike any other's: nine letters and digits. */
  id: string;
  /** What is called. */
  type: "function";
  /** The function, which is one of those of the request, and its arguments: an object as JSON, of which an answer that was cut off has the beginning. */
  function: { name: string; arguments: string };
}

/** A function that a model may call. */
export interface Tool {
  /** Only functions are called. */
  type: "function";
  /** What the model is told of it: `parameters` is a JSON schema. Calls are not held to it. */
  function: { name: string; description?: string | null; parameters?: object | null; strict?: boolean | null };
}

/** One turn of a conversation. What else OpenAI's API has in one may be there if it is empty or null. */
export interface ChatMessage {
  /** Who speaks: `system`, `user`, `assistant`, or another role that the model's template knows. */
  role: "system" | "user" | "assistant" | (string & {});
  /** What is said: text, or parts of text. Only what an assistant says may be missing: it is empty then. */
  content?: string | readonly ContentPart[] | null;
  /** What the assistant thought before; whether the model is told of it, its template decides. */
  reasoning_content?: string | null;
  /** What the assistant called. */
  tool_calls?: readonly ({ /** Of the call. */ id?: string; type: "function"; function: { name: string; arguments: string } } | { type: string })[] | null;
  /** In a turn of the role `tool`: the call that it answers. */
  tool_call_id?: string | null;
}

/**
 * How to generate; the same for chat and plain completions. Null is the same as leaving a field out. Fields of OpenAI's
 * API that are not supported are there so that requests made for it pass: they may have the values that ask for nothing,
 * which their documentation names. Any other value, and any field that is not here, is an {@link OptionsError}.
 */
export interface GenerateRequest {
  /** Tokens to generate at most; by default 256, or as many as the context has room for if `overflow` makes no more. */
  max_tokens?: number | null;
  /** The same under the name that newer clients use. */
  max_completion_tokens?: number | null;
  /** Randomness: 0, the default, always takes the likeliest token. */
  temperature?: number | null;
  /**
   * Only so many of the likeliest tokens. The device keeps at most 64, so 0, the default, and more than 64 both mean 64.
   */
  top_k?: number | null;
  /** Only the likeliest tokens that together have this probability; 1, the default, means all, 0 the likeliest alone. */
  top_p?: number | null;
  /** The same seed gives the same text again; 0 by default. */
  seed?: number | null;
  /** Strings that end the text and are no part of it, of 32 KiB in all at most. */
  stop?: string | readonly string[] | null;
  /** Goes on after tokens that end a text; false by default. */
  ignore_eos?: boolean | null;
  /**
   * Decode steps under way between two reads, 1 to 64: more keep a GPU busy, fewer show tokens sooner. By default as many
   * as take a few milliseconds on this device.
   */
  fetch_interval?: number | null;
  /**
   * Tokens that may be drafted at most, from what the text has already, and verified in one step: a gain for text that
   * repeats itself, such as a summary or an edit of code. The text is the same. 0 drafts nothing; by default as many as
   * suit the backend (the CPU and WebGPU draft, WebGL does not).
   */
  draft_max?: number | null;
  /**
   * What is done about a text that outgrows the context (`nCtx`). `"error"`, the default: a prompt that does not fit
   * together with `max_tokens` is refused with a {@link ContextError}. `"stop"`: the text ends with the context.
   * `"shift"`: of a conversation the oldest turns are left out until it and its answer fit; a text whose context is
   * full goes on without half of its tokens, the oldest but for the first `keep`, after the others are computed again.
   * It is then what a new text would be that begins with those tokens. {@link Outcome.overflow} tells what was done.
   */
  overflow?: "error" | "stop" | "shift" | null;
  /**
   * With `overflow: "shift"`: how many tokens at the beginning are never dropped. By default the one that begins a
   * text, and of a conversation its system messages.
   */
  keep?: number | null;
  /** Whether the answer comes in pieces. */
  stream?: boolean | null;
  /** Aborts. The promise or the iteration rejects with the signal's reason; the engine stays usable. */
  signal?: AbortSignal | null;
  /** For clients that name one; it is repeated in the answer. */
  model?: string | null;
  /**
   * With `include_usage` a stream ends with one chunk more, which has no choices but the outcome, and `usage` is null in
   * the others. Without it the last chunk of the last answer has the outcome.
   */
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean } | null;
  /**
   * How many answers, 1 to 128; 1 by default. They are made one after the other, each with a seed of its own: that of the
   * answer `index` is `seed + index`. At temperature 0 they are all the same.
   */
  n?: number | null;
  /**
   * -2 to 2: is subtracted from the logits of tokens that the answer has already. The prompt does not count; of a long
   * answer the last 1,024 tokens do, as far as they are in the context.
   */
  presence_penalty?: number | null;
  /** -2 to 2: is subtracted likewise, as often as the answer has the token. */
  frequency_penalty?: number | null;
  /** Divides the logits of tokens among the last 64 of prompt and answer, or multiplies negative ones; 1 by default. */
  repetition_penalty?: number | null;
  /** Drops candidates less likely than so many times the best one, at the temperature; 0 by default. */
  min_p?: number | null;
  /** -100 to 100 for at most 1,024 token ids: is added to their logits. */
  logit_bias?: Readonly<Record<string, number>> | null;
  /** Makes no difference. */
  user?: string | null;
}

/**
 * The format of an answer. A schema that is not written within the request needs `as const` or `satisfies ResponseFormat`, since
 * TypeScript takes the type of a variable's `type: "json_schema"` for any string.
 */
export type ResponseFormat =
  | { /** Any text. */ type: "text" }
  | { /** Any JSON object. */ type: "json_object" }
  | { /** JSON that follows a schema. */ type: "json_schema"; /** The schema. */ json_schema: JsonSchemaFormat };

/** A schema that an answer follows. Keywords that are not supported are refused by name. */
export interface JsonSchemaFormat {
  /** 1 to 64 letters, digits, `_` and `-`. */
  name: string;
  /** Makes no difference. */
  description?: string | null;
  /** The JSON schema. It is needed, though OpenAI's types let it be left out. */
  schema?: Readonly<Record<string, unknown>> | null;
  /** Makes no difference: answers always follow the schema. */
  strict?: boolean | null;
}

/** A conversation to go on with. */
export interface ChatRequest extends GenerateRequest {
  /** The turns so far. */
  messages: readonly ChatMessage[];
  /**
   * Whether the answer says how likely its tokens were; false by default. Every token is waited for by itself then, which
   * takes longer, and none is drafted.
   */
  logprobs?: boolean | null;
  /** With `logprobs`: how many of the likeliest tokens are told of each place, 0 to 20. */
  top_logprobs?: number | null;
  /**
   * Functions that the model may call, 128 at most: {@link Tool}. Its template has to have a place for them. Calls are
   * read as the template's family writes them; one that is malformed, or of another function, is said as it was written.
   */
  tools?: readonly (Tool | { type: string })[] | null;
  /**
   * `"auto"`, the default: the model decides. `"none"`: it is not told of any. `"required"`: the answer is held to calls,
   * whose arguments follow the functions' schemas; with `{ type: "function", function: { name } }` to a call of that one. Families that write
   * calls in other ways than JSON are refused then.
   */
  tool_choice?: string | object | null;
  /** Whether an answer may have more than one call; true by default, unless `tool_choice` demands a call. */
  parallel_tool_calls?: boolean | null;
  /** Not supported: only `[]`. */
  functions?: readonly unknown[] | null;
  /** Not supported: only `"none"` and `"auto"`. */
  function_call?: string | object | null;
  /** The format of the answer; text by default. A module of its own is loaded for the others. */
  response_format?: ResponseFormat | null;
  /** Only `["text"]`. */
  modalities?: readonly string[] | null;
  /** Not supported: only null. */
  audio?: object | null;
  /** A variable of the model's template, if it reads it; the same as in `chat_template_kwargs`. */
  reasoning_effort?: string | null;
  /** Variables of the model's template, such as `{ enable_thinking: false }`. One that it does not read is refused. */
  chat_template_kwargs?: Readonly<Record<string, unknown>> | null;
  /** Not supported: only `"medium"`. */
  verbosity?: string | null;
  /** Not supported: only null. */
  web_search_options?: object | null;
  /** Not supported: only null. */
  moderation?: object | null;
  /** Only `"auto"` and `"default"`. */
  service_tier?: string | null;
  /** Not supported: only `false`. */
  store?: boolean | null;
  /** Makes no difference. */
  metadata?: object | null;
  /** Makes no difference. */
  prediction?: object | null;
  /** Makes no difference. */
  prompt_cache_key?: string | null;
  /** Makes no difference. */
  prompt_cache_options?: object | null;
  /** Makes no difference. */
  prompt_cache_retention?: string | null;
  /** Makes no difference. */
  safety_identifier?: string | null;
}

/** A text to go on with. */
export interface CompletionRequest extends GenerateRequest {
  /** The text, or its token ids, or an array with one of either. An empty text, or null, is the begin of one. */
  prompt: string | ArrayLike<number> | readonly string[] | readonly (readonly number[])[] | null;
  /** Only 1. */
  best_of?: number | null;
  /** Not supported: only `false`. */
  echo?: boolean | null;
  /**
   * 0 to 20: the text says how likely its tokens were, and so many of the likeliest of each place; see
   * {@link ChatRequest.logprobs}.
   */
  logprobs?: number | false | null;
  /** Not supported: only `""`. */
  suffix?: string | null;
}

/** Texts to embed. */
export interface EmbeddingRequest {
  /** A text or its token ids, or at most 2048 of either. Each text must fit the context. */
  input: string | ArrayLike<number> | readonly string[] | readonly (readonly number[])[];
  /** The name that the answer has; the model's own by default. */
  model?: string | null;
  /** Whether vectors are arrays of numbers, by default, or 32-bit floats (little-endian) in base64. */
  encoding_format?: "float" | "base64" | null;
  /** Keeps only so many numbers of each vector: for models that were trained for it. */
  dimensions?: number | null;
  /** Whether vectors are brought to length 1; true by default. */
  normalize?: boolean | null;
  /** Aborts between texts. */
  signal?: AbortSignal | null;
  /** Makes no difference. */
  user?: string | null;
}

/** The embedding of a text. */
export interface Embedding<E = number[]> {
  object: "embedding";
  /** The place of the text in the request. */
  index: number;
  /** The vector, as `encoding_format` says. */
  embedding: E;
}

/** The embeddings of a request's texts, in their order. */
export interface EmbeddingList<E = number[]> {
  object: "list";
  data: Embedding<E>[];
  /** The name of the request, or else of the model. */
  model: string;
  /** Tokens of all texts. */
  usage: { prompt_tokens: number; total_tokens: number };
}

/** What goes with a request, as OpenAI's client takes it. */
export interface RequestOptions {
  /** Aborts, as the request's own signal does. */
  signal?: AbortSignal | null;
  /**
   * The name of the session that the request belongs to, of 1 to 64 characters. What sessions have computed is not lost
   * when another one has its turn, and a new one begins with what any of them has of the same beginning, such as a
   * system prompt: {@link Usage.cached_tokens} says how much. Without a name it is the session of all requests without
   * one. Of several answers it has the last.
   */
  session?: string | null;
  /** Makes no difference: nothing is sent. */
  headers?: unknown;
  /** Makes no difference. */
  query?: unknown;
  /** Makes no difference. */
  maxRetries?: number;
  /** Makes no difference. */
  idempotencyKey?: string;
}

/** Tokens used. */
export interface Usage {
  /** Tokens of the prompt, without messages that were left out. */
  prompt_tokens: number;
  /** Tokens generated. */
  completion_tokens: number;
  /** Both. */
  total_tokens: number;
  /** Tokens of the prompt that were computed before and used again. */
  cached_tokens: number;
  /** The same, where OpenAI's API has it. */
  prompt_tokens_details: { cached_tokens: number };
  /** Tokens that were thought, in a chat; drafted tokens (`draft_max`): those that the text took over, and the others. */
  completion_tokens_details: { reasoning_tokens: number; accepted_prediction_tokens: number; rejected_prediction_tokens: number };
}

/** How long it took. */
export interface Timings {
  /** Computing the prompt, in milliseconds. */
  prefill_ms: number;
  /** A token after the first, in milliseconds. */
  decode_ms_per_token: number;
  /** From the call to the first token, in milliseconds; waiting for earlier generations included. */
  ttft_ms: number;
}

/** What ended a text: a stop token or string, or `max_tokens` or the end of the context. */
export type FinishReason = "stop" | "length";

/** What ended an answer: the same, or that it calls functions. */
export type ChatFinishReason = FinishReason | "tool_calls";

/** What was done about a text that outgrew the context. */
export interface Overflow {
  /** `"stop"`: the text ended there, as with `"error"` if there was no `max_tokens`. `"shift"`: old text made room. */
  policy: "stop" | "shift";
  /** Messages that were left out of the conversation. */
  dropped_messages: number;
  /** Tokens that were dropped while the text was generated, or since the prompt was too long. */
  dropped_tokens: number;
  /** How often tokens were dropped. */
  times: number;
  /** What it took to compute again what was left, in milliseconds. */
  ms: number;
}

/** What an answer and the last chunk of a stream say of the whole generation: of several answers in all. */
export interface Outcome {
  /** Tokens used. */
  usage: Usage;
  /** How long it took. */
  timings: Timings;
  /** What decoding cost. */
  stats: SteadyStats;
  /** The ids of all tokens generated, without stop tokens: those of several answers one after the other. */
  tokens: number[];
  /**
   * What was done if the text outgrew the context, else null; of several answers what was done for the first of them that
   * did. While a text is streamed, a chunk without text has what was done so far, before what is left is computed again.
   */
  overflow: Overflow | null;
}

/** A token, and how likely the model found it. */
export interface TopLogprob {
  /** Its text; U+FFFD stands for bytes that are no whole character. */
  token: string;
  /**
   * The natural logarithm of its probability, as the model has it: before temperature, penalties and biases. -9999 stands
   * for less than numbers can hold.
   */
  logprob: number;
  /** Its bytes: several tokens may make one character. */
  bytes: number[];
}

/** A token of an answer, and how likely the model found it. */
export interface TokenLogprob extends TopLogprob {
  /** The likeliest tokens in its place, best first: as many as were asked for. */
  top_logprobs: TopLogprob[];
}

/**
 * How likely the tokens of an answer were, or of a chunk. Of tokens that were there before an answer was gone on with
 * nothing is known any more.
 */
export interface ChatLogprobs {
  /** The tokens. */
  content: TokenLogprob[];
  /** Nothing is refused. */
  refusal: null;
}

/**
 * How likely the tokens of a text were, or of a chunk; likewise. The text of a token that is no whole character is written
 * as its bytes: `bytes:\xe2\x80`.
 */
export interface TextLogprobs {
  /** The tokens. */
  tokens: string[];
  /** The natural logarithms of their probabilities; see {@link TopLogprob.logprob}. */
  token_logprobs: number[];
  /** Those of the likeliest tokens in their places, best first, and of the tokens themselves. */
  top_logprobs: Record<string, number>[];
  /** Where they begin in the text that all tokens told so far make, in UTF-16 code units. */
  text_offset: number[];
}

/** An answer. */
export interface AssistantMessage {
  /** Who speaks. */
  role: "assistant";
  /** What is said; null if it only calls functions. */
  content: string | null;
  /** Nothing is refused. */
  refusal: null;
  /** What was thought before, if the model's template has marks for that. */
  reasoning_content?: string;
  /** The functions to call. */
  tool_calls?: ToolCall[];
}

/** What a piece adds to an answer. */
export interface ChatDelta {
  /** Who speaks, in the first piece. */
  role?: "assistant";
  /** What is said. */
  content?: string;
  /** Nothing is refused. */
  refusal?: null;
  /** What is thought. */
  reasoning_content?: string;
  /** Functions to call, and more of the arguments of the last one. */
  tool_calls?: ToolCallDelta[];
}

/** What a piece adds to a call: its id, its type and its name with the first piece of it, and more of its arguments. */
export interface ToolCallDelta {
  /** Which of the answer's calls. */
  index: number;
  /** Its name, unlike any other's. */
  id?: string;
  /** What is called. */
  type?: "function";
  /** The function's name, and a part of its arguments. */
  function: { name?: string; arguments: string };
}

/** One of the answers. */
export interface ChatChoice {
  /** Which one. */
  index: number;
  /** The answer. */
  message: AssistantMessage;
  /** How likely its tokens were; null unless that was asked for. */
  logprobs: ChatLogprobs | null;
  /** What ended it. */
  finish_reason: ChatFinishReason;
}

/** A chat completion as a whole. */
export interface ChatCompletion extends Outcome {
  /** Its name, unlike any other's. */
  id: string;
  /** What this is. */
  object: "chat.completion";
  /** When it was made, in seconds since 1970. */
  created: number;
  /** The model. */
  model: string;
  /** The answers: as many as were asked for. */
  choices: [ChatChoice, ...ChatChoice[]];
}

/** A piece of a streamed chat completion. The last one of an answer has a `finish_reason`, that of all the outcome. */
export interface ChatCompletionChunk extends Partial<Omit<Outcome, "usage">> {
  /** The completion's name. */
  id: string;
  /** What this is. */
  object: "chat.completion.chunk";
  /** When the completion was begun, in seconds since 1970. */
  created: number;
  /** The model. */
  model: string;
  /** The piece, of one answer; none in the chunk that `include_usage` asks for. */
  choices: {
    /** Of which answer. */
    index: number;
    /** What is new. The first piece of an answer has only the role; one with nothing stands for a token of which nothing is certain yet. */
    delta: ChatDelta;
    /** How likely the token was; null unless that was asked for, and without one. */
    logprobs: ChatLogprobs | null;
    /** What ended the answer; null before. */
    finish_reason: ChatFinishReason | null;
  }[];
  /** Tokens used, with the outcome; with `include_usage` null before. */
  usage?: Usage | null;
  /** The token that this piece stands for; absent if it only brings text that was held back, and in the first and last one. */
  token?: number;
}

/** One of the texts. */
export interface TextChoice {
  /** Which one. */
  index: number;
  /** The text that follows the prompt. */
  text: string;
  /** How likely its tokens were; null unless that was asked for. */
  logprobs: TextLogprobs | null;
  /** What ended it. */
  finish_reason: FinishReason;
}

/** A plain completion as a whole. */
export interface Completion extends Outcome {
  /** Its name, unlike any other's. */
  id: string;
  /** What this is. */
  object: "text_completion";
  /** When it was made, in seconds since 1970. */
  created: number;
  /** The model. */
  model: string;
  /** The texts: as many as were asked for. */
  choices: [TextChoice, ...TextChoice[]];
}

/** A piece of a streamed plain completion. The last one of a text has a `finish_reason`, that of all the outcome. */
export interface CompletionChunk extends Partial<Omit<Outcome, "usage">> {
  /** The completion's name. */
  id: string;
  /** What this is. */
  object: "text_completion";
  /** When the completion was begun, in seconds since 1970. */
  created: number;
  /** The model. */
  model: string;
  /** The piece, of one text; none in the chunk that `include_usage` asks for. */
  choices: {
    /** Of which text. */
    index: number;
    /** What is new. Empty text stands for a token whose text is not certain yet. */
    text: string;
    /** How likely the token was; null unless that was asked for, and without one. */
    logprobs: TextLogprobs | null;
    /** What ended the text; null before. */
    finish_reason: FinishReason | null;
  }[];
  /** Tokens used, with the outcome; with `include_usage` null before. */
  usage?: Usage | null;
  /** The token that this piece stands for; absent if it only brings text that was held back, and in the last one. */
  token?: number;
}

/**
 * A generation to iterate over, once. It begins with the first call of `next`; leaving a `for await` loop early ends it.
 */
export interface Stream<Chunk> extends AsyncIterableIterator<Chunk> {
  /** The next piece. */
  next(): Promise<IteratorResult<Chunk, undefined>>;
  /** Ends the generation. */
  return(): Promise<IteratorResult<Chunk, undefined>>;
  /** The stream itself. */
  [Symbol.asyncIterator](): Stream<Chunk>;
  /** Ends the generation with `abort()`: iterating ends then, without an error. */
  controller: AbortController;
  /**
   * The pieces as lines of JSON, for an answer of a service worker or another page: what `Stream.fromReadableStream` of
   * OpenAI's client reads. It begins at once; cancelling it ends the generation.
   */
  toReadableStream(): ReadableStream<Uint8Array>;
}

/** Chat completions. */
export interface ChatCompletions {
  /**
   * Goes on with a conversation, piece by piece. Nothing is computed before the first piece is asked for.
   *
   * @throws {OptionsError} A field makes no sense; thrown at once. Iterating throws what the form without `stream` rejects with.
   */
  create(request: ChatRequest & { stream: true }, options?: RequestOptions): Stream<ChatCompletionChunk>;
  /**
   * Goes on with a conversation. Generations of one engine run one after the other; what a conversation has in common
   * with the one before is not computed again.
   *
   * Rejects with {@link OptionsError}, {@link ContextError}, {@link FileError} (no tokenizer or chat template, or the
   * template refuses the conversation), {@link DeviceLostError}, {@link OutOfMemoryError}, {@link DisposedError},
   * {@link CrashError}, or the signal's reason.
   */
  create(request: ChatRequest & { stream?: false | null }, options?: RequestOptions): Promise<ChatCompletion>;
  /** Either, as `stream` says. */
  create(request: ChatRequest, options?: RequestOptions): Stream<ChatCompletionChunk> | Promise<ChatCompletion>;
  /**
   * Goes on with the last answer of a session, which was broken off: by an abort, or since the tab ended, if the
   * browser keeps the session ({@link SessionOptions.keep}). The same is asked again, so that the answer is that of an
   * undisturbed request; the pieces that it had already come first, at once, then the rest. An answer that had ended
   * comes as it was.
   *
   * Iterating throws {@link OptionsError} if there is no such answer, and what {@link ChatCompletions.create} rejects
   * with.
   *
   * @throws {OptionsError} That is no name.
   */
  resume(session: string, options?: Omit<RequestOptions, "session">): Stream<ChatCompletionChunk>;
}

/** Plain completions. */
export interface Completions {
  /** Goes on with a text, piece by piece; see {@link ChatCompletions.create}. */
  create(request: CompletionRequest & { stream: true }, options?: RequestOptions): Stream<CompletionChunk>;
  /** Goes on with a text; see {@link ChatCompletions.create}. */
  create(request: CompletionRequest & { stream?: false | null }, options?: RequestOptions): Promise<Completion>;
  /** Either, as `stream` says. */
  create(request: CompletionRequest, options?: RequestOptions): Stream<CompletionChunk> | Promise<Completion>;
  /** Goes on with the last text of a session, which was broken off; see {@link ChatCompletions.resume}. */
  resume(session: string, options?: Omit<RequestOptions, "session">): Stream<CompletionChunk>;
}

/** Embeddings: vectors that point in like directions where texts mean like things. */
export interface Embeddings {
  /** Those of texts, with vectors in base64. Rejects like the other form. */
  create(request: EmbeddingRequest & { encoding_format: "base64" }, options?: RequestOptions): Promise<EmbeddingList<string>>;
  /**
   * Those of texts.
   *
   * Rejects with {@link OptionsError} (a field makes no sense, or the model is a language model), {@link ContextError} (a
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

/** What to run of the conformance suite. */
export interface ConformanceOptions {
  /** The backend or variant. */
  backend: ConformanceBackend;
  /** This operator only. */
  op?: string;
  /** Of each operator the first of so many cases, and so on; 1, the default, means all. */
  every?: number;
  /** Told of each case. What it throws is reported, not thrown. */
  onCase?: (result: ConformanceCase) => void;
  /** Aborts. The promise rejects with the signal's reason. */
  signal?: AbortSignal;
  /** As in {@link SelectOptions.worker}. */
  worker?: boolean;
  /** As in {@link SelectOptions.threads}. */
  threads?: number;
  /**
   * As in {@link SelectOptions.workerUrl}, for the suite's own worker, which is the package's `src/suite-worker.js`
   * (`anygpu/suite-worker`; for older browsers `anygpu/suite-worker-older`, and `anygpu/suite-worker-threads`).
   */
  workerUrl?: string | URL;
  /** As in {@link SelectOptions.wasmUrl}. */
  wasmUrl?: string | URL;
  /** Known failures, which do not count. */
  expectations?: {
    expect: { backend: string; adapter?: string; op: string; case?: string; reason: string }[];
  };
}

/** The result of one case. */
export interface ConformanceCase {
  /** Its place, from 0. */
  index: number;
  /** How many will be run. */
  total: number;
  /** The operator. */
  op: string;
  /** The case. */
  case: string;
  /** Whether it passed. */
  ok: boolean;
  /** Normalised mean squared error against the reference; null if it failed. */
  nmse: number | null;
  /** Why it failed; null if it passed. */
  message: string | null;
}

/** The results of one operator. */
export interface ConformanceOp {
  /** The operator. */
  op: string;
  /** Cases run. */
  cases: number;
  /** Cases of a fused operator that ran as primitives. */
  expanded: number;
  /** The largest error of the cases that passed. */
  worst_nmse: number;
  /** What failed. */
  failures: {
    /** The case. */
    case: string;
    /** What happened. */
    why: string;
    /** The reason if it was expected to fail; it does not count then. */
    expected: string | null;
  }[];
}

/** The results of the conformance suite on one backend. */
export interface ConformanceReport {
  /** The backend or variant. */
  name: string;
  /** Device and driver as they name themselves. */
  adapter: string;
  /** Cases that passed, or failed as expected. */
  passed: number;
  /** Cases that failed. */
  failed: number;
  /** Cases left out by `every`. */
  not_run: number;
  /** One for each operator. */
  ops: ConformanceOp[];
  /** Where it ran. */
  thread: Thread;
}

/** A model that the browser keeps. */
export interface CacheEntry {
  /** Its key: the address without credentials and fragment. */
  key: string;
  /** Size of the file, in bytes. */
  size: number;
  /** How much of it is here: less than `size` if a download was interrupted, which loading goes on with. In bytes. */
  stored: number;
  /** What the server named this version of it. */
  etag: string | null;
  /** The file's SHA-256 in hexadecimal digits, if it was computed. */
  sha256: string | null;
  /** When it was kept. */
  created: Date;
  /** When it was last loaded. */
  used: Date;
}

/** How much is kept. */
export interface CacheUsage {
  /** Whether this browser and page can keep models at all: it takes a secure context and no private window. */
  supported: boolean;
  /** What the models take, in bytes. */
  bytes: number;
  /** How many models there are. */
  entries: number;
  /** What the browser grants this site in all, in bytes; null if it does not say. */
  quota: number | null;
  /** What this site uses in all, in bytes; null if the browser does not say. */
  used: number | null;
}

/** The models that the browser keeps for this site. Each method rejects with {@link CacheError} if storage fails. */
export interface ModelCache {
  /** All, last used first. */
  list(): Promise<CacheEntry[]>;
  /** Removes one, by its key or address; gives whether it was there. One that is being read goes when that is done. */
  delete(keyOrUrl: string | URL): Promise<boolean>;
  /** Removes all. */
  clear(): Promise<void>;
  /** How much is kept. */
  usage(): Promise<CacheUsage>;
}

/** A model, ready to run. */
export class AnyGpu {
  private constructor();

  /**
   * Loads a model: chooses a backend by proof and sends the weights to it as they come. Of a split model, an array has all
   * files, in any order.
   *
   * Rejects with {@link OptionsError}, {@link NetworkError}, {@link FileError}, {@link ChecksumError},
   * {@link BackendError} (nothing works; it has the report), {@link OutOfMemoryError}, {@link DeviceLostError},
   * {@link CacheError} (only with `cache: "require"`), {@link CrashError}, or the signal's reason. Nothing is left
   * behind then, but what arrived of a file if it is not to blame: the next load goes on with that.
   */
  static load(source: ModelSource | readonly ModelSource[], options?: LoadOptions): Promise<AnyGpu>;

  /**
   * Finds out what is fastest on this device, by running a model with one value after another of the backend's tunables,
   * and keeps it in the browser for all that is loaded afterwards. Results are the same with all values; it is never
   * needed. Rejects like {@link AnyGpu.load}.
   */
  static tune(source: ModelSource | readonly ModelSource[], options?: TuneOptions): Promise<TuneReport>;

  /** Tries the backends without a model. Rejects with {@link BackendError} if none works. */
  static probe(options?: SelectOptions): Promise<Report>;

  /** Runs the conformance suite: every operator against the reference, in this browser. It is downloaded when it is run. */
  static conformance(options: ConformanceOptions): Promise<ConformanceReport>;

  /** The models that the browser keeps. */
  static readonly cache: ModelCache;

  /** What was chosen, and what was refused and why. */
  readonly report: Report;
  /** What a person wants to know of the model. */
  readonly info: ModelInfo;
  /**
   * Resolves when the engine turns out to be unable to go on, with the error that calls reject with from then on: dispose of
   * it, and load the model again. A device, context or worker that is lost is not the end: the next call, or the one under
   * way, opens the best backend that works then, loads the model again, and goes on where it was. A rung that is lost three
   * times within two minutes is left out from then on. The end is when none is left, or when the model cannot be loaded
   * any more.
   */
  readonly lost: Promise<AnyGpuError>;
  /** Chat. */
  readonly chat: { readonly completions: ChatCompletions };
  /** Plain completions. */
  readonly completions: Completions;
  /** Embeddings, of models that are made for them. */
  readonly embeddings: Embeddings;
  /** Texts with names. */
  readonly sessions: Sessions;

  /** The token ids of a text, or of a conversation up to where the answer begins. */
  encode(text: string | ChatMessage[]): Promise<Uint32Array>;
  /** The text of token ids. */
  decode(tokens: ArrayLike<number>): Promise<string>;
  /**
   * The text that was generated last, with all that was computed of it. {@link LoadOptions.session} takes it, on any backend
   * and in any browser; so does `anygpu generate --load-session`. It is for the same model file and KV cache. With
   * `session` it is the text of that session; an {@link OptionsError} if there is none.
   */
  export(options?: { session?: string; signal?: AbortSignal }): Promise<Blob>;
  /**
   * The tokens of the text that was generated last, or loaded as a session, without those that were dropped: a prompt that
   * goes on where it ended. With `session` those of that session; none if there is no such session.
   */
  tokens(options?: { session?: string }): Promise<Uint32Array>;
  /** Listens to recoveries. Gives a function that stops listening. */
  on(name: "recovered", listener: (event: Recovered) => void): () => void;
  /**
   * Listens to sessions that cannot be kept, such as for want of room; told once of each. Without a listener it is a
   * warning of the console.
   */
  on(name: "unkept", listener: (event: Unkept) => void): () => void;
  /**
   * Watches generations that begin while somebody listens: after tokens, told of what the kernels of a step made, where that is
   * the state of one token (or the scores of attention) and has no more than 16,384 elements. Texts are the same, but take
   * longer; of a device that reads more slowly than it computes, only some steps are told.
   */
  on(name: "step", listener: (event: Step) => void): () => void;
  /** The backend's counters, and the size of the wasm memory (not of the device) in bytes. */
  stats(): Promise<Stats & { wasm_memory: number }>;
  /**
   * Gives back the GPU's memory and the worker. What is under way rejects with {@link DisposedError}, and so does
   * everything afterwards. Further calls do nothing.
   */
  dispose(): Promise<void>;
  /** The same, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What went wrong, for programs. */
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

/** Anything that goes wrong. Each message names the cause and the remedy. */
export class AnyGpuError extends Error {
  constructor(message: string, details?: { code?: ErrorCode; cause?: unknown });
  /** What went wrong, for programs. */
  readonly code: ErrorCode;
}

/** The model could not be downloaded, though it was tried again. */
export class NetworkError extends AnyGpuError {
  constructor(message: string, details?: { cause?: unknown; url?: string; status?: number | null });
  /** The address asked for. */
  readonly url: string | null;
  /** The status of the last answer; null if there was none. */
  readonly status: number | null;
}

/**
 * The file is not a GGUF file, is damaged, or has a model, tokenizer or chat template (`code: "template"`) that cannot be used;
 * or there is no next token, since numbers are NaN or infinite (`code: "not_a_number"`): the message names where it begins.
 */
export class FileError extends AnyGpuError {}

/** The browser's storage cannot keep the model. */
export class CacheError extends AnyGpuError {}

/** There is no room for the model in the browser's storage. */
export class QuotaError extends CacheError {}

/** No backend, or not the one asked for, can run the model here. */
export class BackendError extends AnyGpuError {
  constructor(message: string, details?: { code?: ErrorCode; cause?: unknown; report?: Report | null });
  /** All that was tried, and why it was refused; null if it was not the selection that failed. */
  readonly report: Report | null;
}

/** The device or its driver was lost; load the model again. */
export class DeviceLostError extends AnyGpuError {}

/** Memory of the device or of the page is not enough. */
export class OutOfMemoryError extends AnyGpuError {}

/** The prompt does not fit the context. */
export class ContextError extends AnyGpuError {}

/** An argument makes no sense, or asks for what is not supported. */
export class OptionsError extends AnyGpuError {
  constructor(message: string, details?: { cause?: unknown; field?: string });
  /** The field that is meant. */
  readonly field: string | null;
}

/** The file is not the one that its SHA-256 says. */
export class ChecksumError extends AnyGpuError {
  constructor(message: string, details?: { cause?: unknown; expected?: string; actual?: string });
  /** The digest asked for. */
  readonly expected: string | null;
  /** The digest found. */
  readonly actual: string | null;
}

/** The browser is too old: the message says what it lacks. */
export class BrowserError extends AnyGpuError {}

/** The engine was disposed. */
export class DisposedError extends AnyGpuError {}

/**
 * The worker or the engine in it stopped: a bug, the browser ended it, or the thread's stack was too small. Load the model
 * again: with `worker: false`, too, the engine then starts anew, and all models that were on that thread are gone.
 */
export class CrashError extends AnyGpuError {}
