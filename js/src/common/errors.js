/** Error classes, the conversion of the engine's errors to them, their transport from a worker to the page, and aborts. */

/** @typedef {import("../../index.d.ts").ErrorCode} ErrorCode */

/** Base class of all errors of the package. */
export class AnyGpuError extends Error {
  /**
   * @param {string} message
   * @param {{ code?: ErrorCode, cause?: unknown }} [details]
   */
  constructor(message, details = {}) {
    super(message);
    withCause(this, details.cause);
    this.name = "AnyGpuError";
    /** @type {ErrorCode} */
    this.code = details.code ?? "crash";
  }
}

/**
 * Adds a cause to an error. In the oldest browsers constructors do not take one.
 *
 * @template {Error} E
 * @param {E} error
 * @param {unknown} cause
 * @returns {E}
 */
export function withCause(error, cause) {
  const value = { value: cause, writable: true, configurable: true };
  return cause === undefined ? error : Object.defineProperty(error, "cause", value);
}

/**
 * Creates a class that only adds its name and code.
 *
 * @param {string} name Said here, since minifiers rename classes.
 * @param {ErrorCode} code
 * @param {typeof AnyGpuError} [Base]
 */
function subclass(name, code, Base = AnyGpuError) {
  return class extends Base {
    /**
     * @param {string} message
     * @param {{ code?: ErrorCode, cause?: unknown }} [details]
     */
    constructor(message, details = {}) {
      super(message, { code, ...details });
      this.name = name;
    }
  };
}

/** The file cannot be used. */
export const FileError = subclass("FileError", "file");

/** The browser's storage cannot keep the model. */
export const CacheError = subclass("CacheError", "cache");

/** There is no room in the browser's storage. */
export const QuotaError = subclass("QuotaError", "quota", CacheError);

/** The device or its driver was lost. */
export const DeviceLostError = subclass("DeviceLostError", "lost");

/** The device or the page does not have enough memory. */
export const OutOfMemoryError = subclass("OutOfMemoryError", "memory");

/** The prompt does not fit the context. */
export const ContextError = subclass("ContextError", "context");

/** The browser is too old. */
export const BrowserError = subclass("BrowserError", "browser");

/** The engine was disposed. */
export const DisposedError = subclass("DisposedError", "disposed");

/** The worker or the engine in it stopped. */
export const CrashError = subclass("CrashError", "crash");

/** The model could not be downloaded. */
export class NetworkError extends AnyGpuError {
  /**
   * @param {string} message
   * @param {{ cause?: unknown, url?: string, status?: number | null }} [details]
   */
  constructor(message, details = {}) {
    super(message, { code: "network", cause: details.cause });
    this.name = "NetworkError";
    this.url = details.url ?? null;
    this.status = details.status ?? null;
  }
}

/** None of the allowed backends can run the model here. */
export class BackendError extends AnyGpuError {
  /**
   * @param {string} message
   * @param {{ code?: ErrorCode, cause?: unknown, report?: import("../../index.d.ts").Report | null }} [details]
   */
  constructor(message, details = {}) {
    super(message, { code: details.code ?? "driver", cause: details.cause });
    this.name = "BackendError";
    this.report = details.report ?? null;
  }
}

/** An argument is invalid. */
export class OptionsError extends AnyGpuError {
  /**
   * @param {string} message
   * @param {{ cause?: unknown, field?: string }} [details]
   */
  constructor(message, details = {}) {
    super(message, { code: "options", cause: details.cause });
    this.name = "OptionsError";
    this.field = details.field ?? null;
  }
}

/** The file does not have the expected SHA-256. */
export class ChecksumError extends AnyGpuError {
  /**
   * @param {string} message
   * @param {{ cause?: unknown, expected?: string, actual?: string }} [details]
   */
  constructor(message, details = {}) {
    super(message, { code: "checksum", cause: details.cause });
    this.name = "ChecksumError";
    this.expected = details.expected ?? null;
    this.actual = details.actual ?? null;
  }
}

/** @type {Record<string, new (message: string, details?: any) => AnyGpuError>} */
export const CLASSES = {
  AnyGpuError,
  NetworkError,
  FileError,
  CacheError,
  QuotaError,
  BackendError,
  DeviceLostError,
  OutOfMemoryError,
  ContextError,
  OptionsError,
  ChecksumError,
  DisposedError,
  CrashError,
  BrowserError,
};

/**
 * Error classes by the wasm module's codes.
 *
 * @type {Record<string, new (message: string, details?: any) => AnyGpuError>}
 */
export const CODES = {
  file: FileError,
  template: FileError,
  not_a_number: FileError,
  options: OptionsError,
  context: ContextError,
  absent: BackendError,
  no_backend: BackendError,
  unsupported: BackendError,
  limit: BackendError,
  driver: BackendError,
  memory: OutOfMemoryError,
  lost: DeviceLostError,
};

/**
 * Whether an error went through the wasm module, or began in it. What the module held at that time is never released,
 * so nothing in it may be called again. Errors that the module returns have a code.
 *
 * @param {unknown} error
 */
export function throughModule(error) {
  if (typeof WebAssembly === "object" && error instanceof WebAssembly.RuntimeError) return true;
  if (!(error instanceof Error) || error instanceof AnyGpuError || isAbort(error)) return false;
  // All browsers name wasm functions like this in stacks.
  return typeof (/** @type {any} */ (error).code) !== "string" && /wasm-function\[/.test(error.stack ?? "");
}

/**
 * Whether the thread's stack was too small. That is a RangeError, as is lack of memory, or an InternalError in Firefox.
 *
 * @param {unknown} error
 */
function isOverflow(error) {
  const { name, message } = /** @type {{ name?: unknown, message?: unknown }} */ (error) ?? {};
  return /^(RangeError|InternalError)$/.test(String(name)) && /call stack|recursion/i.test(String(message));
}

/**
 * Whether the wasm module stopped in the middle of a call, so that nothing in it may be called again.
 *
 * @param {unknown} error The error that a call of the module threw.
 */
export function isTrap(error) {
  return isOverflow(error) || throughModule(error);
}

/**
 * Converts an error thrown by the wasm module.
 *
 * @param {unknown} thrown
 * @returns {unknown} An {@link AnyGpuError}; aborts stay as they are.
 */
export function fromEngine(thrown) {
  if (thrown instanceof AnyGpuError || isAbort(thrown)) return thrown;
  const { code, message, report, field } = /** @type {any} */ (thrown) ?? {};
  const Class = typeof code === "string" ? CODES[code] : undefined;
  if (Class !== undefined) {
    return new Class(message, { code, field, report: typeof report === "string" ? JSON.parse(report) : undefined });
  }
  const isRuntimeError = typeof WebAssembly === "object" && thrown instanceof WebAssembly.RuntimeError;
  if (isRuntimeError || isOverflow(thrown)) {
    return new CrashError(`the engine stopped (${message}); load the model again, and report this`, { cause: thrown });
  }
  // JavaScript throws this if neither the wasm memory nor an array can grow.
  if (thrown instanceof RangeError) {
    return new OutOfMemoryError(`the page is out of memory (${message}); close other pages or use a smaller model`, {
      cause: thrown,
    });
  }
  return new AnyGpuError(`the engine failed (${message ?? thrown}); report this`, { cause: thrown });
}

/**
 * Why a signal was aborted. The oldest browsers do not say why.
 *
 * @param {AbortSignal} signal
 * @returns {unknown}
 */
export function reasonOf(signal) {
  return signal.reason === undefined ? new DOMException("aborted", "AbortError") : signal.reason;
}

/**
 * Throws the reason of a signal that was aborted.
 *
 * @param {AbortSignal | undefined} signal
 * @returns {void}
 */
export function throwIfAborted(signal) {
  if (signal !== undefined && signal.aborted) throw reasonOf(signal);
}

/** Whether an error is an abort by the caller and not a failure. @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/**
 * @typedef {object} WireError An error as a message carries it: structured cloning keeps neither classes nor fields.
 * @property {string} name
 * @property {string} message
 * @property {string} [stack]
 * @property {Record<string, unknown>} fields
 * @property {WireError} [cause]
 */

/**
 * @param {unknown} error
 * @returns {WireError}
 */
export function toWire(error) {
  if (!(error instanceof Error)) return { name: "AnyGpuError", message: String(error), fields: {} };
  const { name, message, stack, cause } = /** @type {Error & { cause?: unknown }} */ (error);
  const fields = error instanceof AnyGpuError ? { ...error, name: undefined, cause: undefined } : {};
  return { name, message, stack, fields, cause: cause instanceof Error ? toWire(cause) : undefined };
}

/**
 * @param {WireError} wire
 * @returns {Error}
 */
export function fromWire(wire) {
  const cause = wire.cause && fromWire(wire.cause);
  if (wire.name === "AbortError" || wire.name === "TimeoutError") return new DOMException(wire.message, wire.name);
  const Class = CLASSES[wire.name];
  if (Class !== undefined) return withStack(new Class(wire.message, { ...wire.fields, cause }), wire.stack);
  const plain = withCause(new Error(wire.message), cause);
  plain.name = wire.name;
  return withStack(plain, wire.stack);
}

/**
 * @template {Error} E
 * @param {E} error
 * @param {string | undefined} stack Where it was thrown, which is what a developer wants to see.
 * @returns {E}
 */
function withStack(error, stack) {
  if (stack !== undefined) error.stack = stack;
  return error;
}
