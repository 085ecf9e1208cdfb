/** Selection of a backend: its options, and the report of what was tried. */

/** A backend to ask for. `auto` is the fastest that works, `gpu` the fastest that works on a GPU. */
export type BackendChoice = "auto" | "gpu" | "webgpu" | "webgl" | "cpu";

/** The thread that the engine runs on: a worker of its own, or the calling thread. */
export type Thread = "worker" | "main";

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
