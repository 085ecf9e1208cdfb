/** Facts about a loaded model, and counters of its backend. */

import type { Thread } from "./backends.js";
import type { CacheState } from "./cache.js";

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
