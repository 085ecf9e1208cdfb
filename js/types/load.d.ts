/** Loading: the source of a model, options and progress. */

import type { Rung, RungOutcome, SelectOptions } from "./backends.js";
import type { AnyGpu } from "./engine.js";
import type { CacheError, ChecksumError, OutOfMemoryError } from "./errors.js";
import type { ModelInfo } from "./info.js";
import type { SessionOptions } from "./sessions.js";

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
   * Tokens that the KV cache has room for from the beginning, at most {@link LoadOptions.nCtx}. By default it is small at
   * first and grows with the text, so that a long chat may run out of memory late. With this, `load` takes the memory or
   * fails with an {@link OutOfMemoryError}.
   */
  capacity?: number;
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

/** Progress of a rung: it is being tried, or its result so far. */
export interface RungProgress extends Omit<Rung, "outcome"> {
  /** Result so far. While others are still tried, `chosen` marks the fastest so far. */
  outcome: RungOutcome | { /** Is being tried. */ kind: "trying" };
}
