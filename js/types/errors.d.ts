/** Errors. */

import type { Report } from "./backends.js";

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
 * The worker or the engine in it stopped, during loading twice: a bug, the browser ended it, or the thread's stack was too
 * small. Load the model again. With `worker: false` the engine then starts anew too, and all models on that thread are gone.
 */
export class CrashError extends AnyGpuError {}
