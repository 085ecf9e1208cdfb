/** The conformance suite: options and results. */

import type { SelectOptions, Thread } from "./backends.js";
import type { AnyGpu } from "./engine.js";

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
