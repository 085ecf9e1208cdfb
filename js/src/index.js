/** The package's API; `index.d.ts` documents it. */

import { cache } from "./cache/model-cache.js";
import { ENGINE, SUITE, connect, moduleUrl } from "./connect.js";
import { BackendError, DisposedError, OptionsError } from "./common/errors.js";
import { chatCompletions, completions, embeddings, reranker } from "./openai/completions.js";
import { report } from "./workers/client.js";
import { conformanceOptions, loadOptions, selectOptions, tuneOptions } from "./engine/options.js";
import { nothing } from "./module/wasm-module.js";
import { persist } from "./opfs/storage.js";
import { patient } from "./workers/hang-detection.js";
import { Recovery, openTwice } from "./engine/recovery.js";
import { sessionName, tokens, written } from "./openai/request.js";
import { runtime } from "./common/runtime.js";
import { recall, sessionsOf } from "./sessions/sessions.js";

/** @import { ConformanceOptions, ConformanceReport, LoadOptions, ModelInfo, ModelSource, Recovered, Report, SelectOptions, Stats, Step, TuneOptions, TuneReport, Unkept } from "../index.d.ts" */
/** @import { Connection } from "./connect.js" */
/** @import { HubOptions } from "./download/hub.js" */
/** @import { Embed, Read, Recall, Run } from "./openai/completions.js" */
/** @import { Opened } from "./engine/recovery.js" */
/** @import { Call } from "./sessions/sessions.js" */

export {
  AnyGpuError,
  BackendError,
  BrowserError,
  CacheError,
  ChecksumError,
  ContextError,
  CrashError,
  DeviceLostError,
  DisposedError,
  FileError,
  NetworkError,
  OptionsError,
  OutOfMemoryError,
  QuotaError,
} from "./common/errors.js";

/** Largest matrix that is reported to listeners of steps, in elements. */
const WATCHED = 16_384;

/** A loaded model. */
export class AnyGpu {
  _recovery;
  /** @type {{ recovered: Set<(event: Recovered) => void>, unkept: Set<(event: Unkept) => void>, step: Set<(event: Step) => void> }} */
  _listeners = { recovered: new Set(), unkept: new Set(), step: new Set() };
  /** @type {Promise<void> | null} */
  _disposed = null;
  /** Structured output; null until a request uses it. @type {Promise<import("./formats.js").Formats> | null} */
  _formats = null;

  /**
   * @param {Opened} opened
   * @param {((without: string[]) => Promise<Opened>) | null} open Opens another like it, if this one is lost, but not on
   * some rungs.
   * @param {import("./formats.js").Where} [where] Options of workers and modules that it was loaded with.
   */
  constructor(opened, open, where = {}) {
    const { facts } = opened;
    this.info = facts.info;
    this.report = facts.report;
    this._recovery = new Recovery(opened, open, (event, { facts }) => {
      this.info = facts.info;
      this.report = facts.report;
      for (const listener of [...this._listeners.recovered]) report(listener, event);
    });
    this.lost = this._recovery.lost;
    /** @type {Run} */
    const answer = (request, signal, onPiece) => {
      const watched = this._listeners.step.size > 0 ? { ...request, generate: { ...request.generate, watch: WATCHED } } : request;
      return this._recovery.generate(watched, { signal, onEvent: (event) => this._heard(event) || onPiece(event) });
    };
    /** @type {Call} */
    const call = (method, params, signal) =>
      this._recovery.call(method, params, { signal, onEvent: (event) => this._heard(event) });
    /** @type {Run} */
    const run = async (request, signal, onPiece) => {
      if (!(request.wanted ?? request.demanded ?? request.generate.held_to)) return answer(request, signal, onPiece);
      this._formats = this._formats ?? import("./formats.js").then(({ Formats }) => new Formats(call, where));
      return (await this._formats).held(request, signal, onPiece, answer);
    };
    /** @type {Recall} */
    const again = (session, signal) => recall(call, session, signal);
    const name = facts.info.name ?? facts.info.architecture;
    /** @type {Embed} */
    const embed = ({ prompts, embed }, signal) => this._recovery.call("embed", { prompts, embed }, { signal });
    /** @type {Read} */
    const read = (api, body, signal) => this._recovery.call("request", { api, body }, { signal });
    const parts = { read, run, recall: again, embed, model: name };
    this.chat = { completions: chatCompletions(parts) };
    this.completions = completions(parts);
    this.embeddings = embeddings(parts);
    this.rerank = reranker((body, signal) => this._recovery.call("rerank", { body, model: name }, { signal }));
    this.sessions = sessionsOf(call);
    this._call = call;
  }

  static cache = cache;

  /**
   * @param {ModelSource | readonly ModelSource[]} source
   * @param {LoadOptions} [options]
   */
  static async load(source, options) {
    const { signal, onProgress, session, sessions, hub, ...given } = loadOptions(options);
    const { backend = "auto", worker, threads, workerUrl, wasmUrl, workerTimeout, nCtx, capacity, kvCache, maxMemory, pooling, rate, webgl, webgpu, ...rest } =
      given;
    const patience = patient(workerTimeout);
    const what = await sources(source, { hub, signal, ...rest });
    const load = { nCtx, capacity, kvCache, maxMemory, pooling, rate };
    const engine = { ...engineOptions({ backend, webgl, webgpu }, load), session_memory: sessions?.maxMemory };
    const open = async (
      /** @type {Pick<LoadOptions, "signal" | "onProgress" | "session"> & { again?: boolean }} */ { signal, onProgress, session, again },
      /** @type {string[]} */ without,
    ) => {
      const connection = await connect(ENGINE, { backend, worker, threads, workerUrl, signal, patience });
      try {
        const module = moduleUrl(wasmUrl, connection);
        const params = { what, options: rest, module, threads: connection.threads, engine: { ...engine, without }, sessions, again };
        const facts = await connection.client.call("load", params, { signal, onEvent: onProgress });
        if (facts.info.cache.state === "stored") persist();
        if (session !== undefined) {
          await connection.client.call("import", { bytes: await bytesOf(session) }, { signal });
        }
        const info = { ...facts.info, thread: connection.thread };
        return { connection, facts: { info, report: withThread(facts.report, connection) } };
      } catch (error) {
        await connection.close(disposed());
        throw named(error, connection);
      }
    };
    const opened = await openTwice(() => open({ signal, onProgress, session }, []), signal);
    return new AnyGpu(opened, (without) => open({ again: true }, without), { worker, workerUrl, wasmUrl });
  }

  /**
   * @param {ModelSource | readonly ModelSource[]} source
   * @param {TuneOptions} [options]
   * @returns {Promise<TuneReport>}
   */
  static async tune(source, options) {
    const { onTrial, ...load } = tuneOptions(options);
    const { backend = "auto", worker, threads, workerUrl, wasmUrl, workerTimeout, signal, onProgress, ...others } = load;
    const { nCtx, capacity, kvCache, maxMemory, pooling, webgl, webgpu, hub, ...rest } = others;
    const engine = engineOptions({ backend, webgl, webgpu }, { nCtx, capacity, kvCache, maxMemory, pooling });
    const what = await sources(source, { hub, signal, ...rest });
    const connection = await connect(ENGINE, { backend, worker, threads, workerUrl, signal, patience: patient(workerTimeout) });
    const params = { what, options: rest, module: moduleUrl(wasmUrl, connection), threads: connection.threads, engine };
    const onEvent = (/** @type {any} */ event) => ("trial" in event ? onTrial?.(event.trial) : onProgress?.(event));
    try {
      return await connection.client.call("tune", params, { signal, onEvent });
    } catch (error) {
      throw named(error, connection);
    } finally {
      await connection.close(disposed());
    }
  }

  /**
   * @param {SelectOptions} [options]
   * @returns {Promise<Report>}
   */
  static async probe(options) {
    const { backend = "auto", worker, threads, workerUrl, wasmUrl, workerTimeout, signal, webgl, webgpu } = selectOptions(options);
    const engine = engineOptions({ backend, webgl, webgpu });
    const connection = await connect(ENGINE, { backend, worker, threads, workerUrl, signal, patience: patient(workerTimeout) });
    try {
      const params = { engine, module: moduleUrl(wasmUrl, connection), threads: connection.threads };
      return withThread(await connection.client.call("probe", params, { signal }), connection);
    } catch (error) {
      throw named(error, connection);
    } finally {
      await connection.close(disposed());
    }
  }

  /**
   * @param {ConformanceOptions} options
   * @returns {Promise<ConformanceReport>}
   */
  static async conformance(options) {
    const { worker, threads, workerUrl, wasmUrl, signal, onCase, ...suite } = conformanceOptions(options);
    // The names of the suite's variants begin with their backend.
    const family = /^webg(pu|l)/.exec(suite.backend)?.[0] ?? "cpu";
    const backend = /** @type {"webgpu" | "webgl" | "cpu"} */ (family);
    const connection = await connect(SUITE, { backend, worker, threads, workerUrl, signal });
    try {
      const params = { options: suite, module: moduleUrl(wasmUrl, connection, "conformance"), threads: connection.threads };
      const report = await connection.client.call("conformance", params, { signal, onEvent: onCase });
      return { ...report, thread: connection.thread };
    } catch (error) {
      throw named(error, connection);
    } finally {
      await connection.close(disposed());
    }
  }

  /**
   * @param {string | import("../index.d.ts").ChatMessage[]} text
   * @returns {Promise<Uint32Array>}
   */
  async encode(text) {
    const prompt = typeof text === "string" ? { text } : { messages: JSON.parse(written(text ?? null)) };
    return this._recovery.call("encode", { prompt });
  }

  /**
   * @param {ArrayLike<number>} ids
   * @returns {Promise<string>}
   */
  async decode(ids) {
    return this._recovery.call("decode", { tokens: tokens("tokens", ids) });
  }

  /** @returns {Promise<Stats & { wasm_memory: number }>} */
  stats() {
    return this._recovery.call("stats", {});
  }

  /**
   * @param {{ session?: string, signal?: AbortSignal }} [options]
   * @returns {Promise<Blob>}
   */
  async export({ session, signal } = {}) {
    if (session !== undefined) sessionName("session", session);
    const bytes = await this._call("export", { session }, signal);
    if (bytes === undefined) throw new OptionsError(`there is no session ${session}`, { field: "session" });
    return new Blob([bytes]);
  }

  /**
   * @param {{ session?: string }} [options]
   * @returns {Promise<Uint32Array>}
   */
  async tokens({ session } = {}) {
    if (session !== undefined) sessionName("session", session);
    return (await this._call("tokens", { session })) ?? new Uint32Array(0);
  }

  /**
   * @param {"recovered" | "unkept" | "step"} name
   * @param {(event: any) => void} listener
   * @returns {() => void}
   */
  on(name, listener) {
    /** @type {Map<string, Set<unknown>>} */
    const known = new Map(Object.entries(this._listeners));
    const all = known.get(name);
    if (all === undefined) {
      throw new OptionsError(`there is no event ${name}; listen to recovered, unkept or step`, { field: "name" });
    }
    if (typeof listener !== "function") throw new OptionsError("listener must be a function", { field: "listener" });
    all.add(listener);
    return () => all.delete(listener);
  }

  /**
   * Passes on a step, or a session that is not kept. Returns whether the event was one of these.
   *
   * @param {any} event
   * @returns {boolean}
   */
  _heard({ unkept, step }) {
    if (step !== undefined) {
      for (const listener of [...this._listeners.step]) report(listener, withValues(step));
      return true;
    }
    if (unkept === undefined) return false;
    const listeners = [...this._listeners.unkept];
    for (const listener of listeners) report(listener, unkept);
    if (listeners.length === 0) console.warn(`anygpu: the session ${unkept.session} is not kept: ${unkept.reason}`);
    return true;
  }

  /** @returns {Promise<void>} */
  dispose() {
    if (this._disposed === null) {
      const formats = this._formats?.then((formats) => formats.close(), nothing);
      this._disposed = this._recovery.close(disposed()).then(() => formats);
    }
    return this._disposed;
  }

  /**
   * Disposes of the engine, for `await using`. Without this symbol the method's name is "undefined", and nobody calls
   * it.
   *
   * @returns {Promise<void>}
   */
  [Symbol.asyncDispose]() {
    return this.dispose();
  }
}

function disposed() {
  return new DisposedError("the engine was disposed; load the model again");
}

/** Returns the bytes of an exported session. @param {Blob | ArrayBuffer | Uint8Array} session */
async function bytesOf(session) {
  if (session instanceof Uint8Array) return session;
  return new Uint8Array(session instanceof Blob ? await session.arrayBuffer() : session);
}

/**
 * Resolves a source, or each of several.
 *
 * @param {unknown} source
 * @param {HubOptions} options
 */
async function sources(source, options) {
  const one = async (/** @type {unknown} */ given) => {
    const what = blobOrUrl(given);
    if (typeof what !== "string" || !/^hf:|\/blob\//.test(what)) return what;
    // Most models are given by an address, so the hub's code is loaded only if needed.
    const { located } = await import("./download/hub.js");
    return located(what, options);
  };
  if (!Array.isArray(source)) return one(source);
  if (source.length > 0) return Promise.all(source.map(one));
  throw new OptionsError("source has no files; give all files of the model", { field: "source" });
}

/**
 * Returns a source as it is sent to a worker: an absolute URL, since relative ones differ there, or a blob, which is
 * not copied.
 *
 * @param {unknown} source
 * @returns {Blob | string}
 */
function blobOrUrl(source) {
  if (source instanceof Blob) return source;
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) {
    return new Blob([/** @type {ArrayBuffer | Uint8Array<ArrayBuffer>} */ (source)]);
  }
  if (typeof source === "string" || source instanceof URL) {
    try {
      return runtime.meant(source).href;
    } catch (cause) {
      throw new OptionsError(`source is not a URL: ${String(source).slice(0, 200)}`, { field: "source", cause });
    }
  }
  const message = "source must be a URL, a File, a Blob, an ArrayBuffer or a Uint8Array, or an array of them";
  throw new OptionsError(message, { field: "source" });
}

/**
 * Returns the options under the engine's own names.
 *
 * @param {Pick<SelectOptions, "backend" | "webgl" | "webgpu">} select
 * @param {Pick<LoadOptions, "nCtx" | "capacity" | "kvCache" | "maxMemory" | "pooling" | "rate">} [load]
 */
function engineOptions({ backend, webgl, webgpu }, { nCtx, capacity, kvCache, maxMemory, pooling, rate } = {}) {
  return {
    backend,
    n_ctx: nCtx,
    capacity,
    kv_cache: kvCache,
    max_memory: maxMemory,
    pooling,
    rate,
    webgl_layout: webgl?.layout,
    webgl_max_texture_size: webgl?.maxTextureSize,
    webgpu_max_binding: webgpu?.maxBinding,
    webgpu_products: webgpu?.products,
  };
}

/**
 * @param {Report} report
 * @param {Connection} connection
 * @returns {Report}
 */
function withThread(report, { thread, reason }) {
  return { ...report, thread, thread_reason: reason };
}

/**
 * Adds the thread to the report of an error.
 *
 * @param {unknown} error
 * @param {Connection} connection
 */
function named(error, connection) {
  if (error instanceof BackendError && error.report) error.report = withThread(error.report, connection);
  return error;
}

/**
 * Returns a step with its values distributed to its matrices.
 *
 * @param {{ position: number, matrices: any[], values: Float32Array }} step
 * @returns {Step}
 */
function withValues({ position, matrices, values }) {
  let end = 0;
  const valued = matrices.map((matrix) => ({ ...matrix, values: values.subarray(end, (end += matrix.rows * matrix.cols)) }));
  return { position, matrices: valued };
}
