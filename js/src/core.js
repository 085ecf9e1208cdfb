/**
 * Runs the engine for whoever is at the other end of a port: the same code in a worker and on the page's own thread.
 *
 * Messages in: `{ id, method, params }` and `{ id, cancel: true }`. Messages out: `{ id, event }`, then one of
 * `{ id, result }` and `{ id, error }`.
 */

import { CrashError, fromEngine, isTrap, toWire } from "./errors.js";
import { features } from "./features.js";
import { open } from "./open.js";
import { Progress } from "./progress.js";
import { readTuned, writeTuned } from "./tuned.js";

/** @import { BackendChoice } from "../index.d.ts" */
/** @import { Environment } from "./store.js" */
/** @import { OpenOptions } from "./open.js" */
/** @import { Prompt } from "./options.js" */

/** @typedef {typeof import("../wasm/bindings.js")} Bindings */
/** @typedef {InstanceType<typeof CrashError>} Crash */
/** @typedef {import("../wasm/bindings.js").WasmEngine} WasmEngine */

/**
 * @typedef {object} Port Where messages come and go: a worker's own global, or a `MessagePort`.
 * @property {(message: any) => void} postMessage
 * @property {((event: MessageEvent) => void) | null} onmessage
 */

/**
 * @typedef {object} Context What a method is called with besides its parameters.
 * @property {AbortSignal} signal
 * @property {(event: unknown) => void} tell
 */

/**
 * Modules that trapped. A worker's ends with it, but the page's own thread has no other.
 *
 * @type {WeakSet<object>}
 */
const trapped = new WeakSet();

/**
 * Serves a port until its `dispose` is called.
 *
 * @param {Port} port
 * @param {Bindings} bindings
 * @param {Environment} environment
 */
export function serve(port, bindings, environment) {
  const core = new Core(bindings, environment);
  if (trapped.has(bindings)) core.dead = new CrashError("the engine stopped on this thread before; reload the page");
  /** @type {Map<number, AbortController>} */
  const running = new Map();

  /** @param {number} id @param {unknown} error */
  const fail = (id, error) => {
    if (!running.delete(id)) return;
    port.postMessage({ id, error: toWire(fromEngine(error)) });
  };

  /** After a trap nothing in the module may be called again, and what waits for it would wait for ever. */
  const crash = (/** @type {unknown} */ error) => {
    trapped.add(bindings);
    core.dead = /** @type {Crash} */ (fromEngine(error));
    for (const id of [...running.keys()]) fail(id, error);
  };

  // A trap in the middle of a promise of the module is nobody's rejection: only these events tell of it.
  const uncaught = (/** @type {Event & { error?: unknown, reason?: unknown }} */ event) => {
    const error = event.error ?? event.reason;
    if (!isTrap(error) || running.size === 0) return;
    event.preventDefault();
    crash(error);
  };
  globalThis.addEventListener?.("error", uncaught);
  globalThis.addEventListener?.("unhandledrejection", uncaught);

  /** @param {{ id: number, method: string, params: any }} request */
  const answer = async ({ id, method, params }) => {
    const controller = new AbortController();
    const { signal } = controller;
    if (method === "dispose") {
      running.forEach((other) => other.abort(new DOMException("disposed of", "AbortError")));
      globalThis.removeEventListener?.("error", uncaught);
      globalThis.removeEventListener?.("unhandledrejection", uncaught);
    }
    running.set(id, controller);
    try {
      if (core.dead !== null && method !== "dispose") throw core.dead;
      const tell = (/** @type {unknown} */ event) => running.has(id) && port.postMessage({ id, event });
      const result = await core.call(method, params, { signal, tell });
      if (running.delete(id)) port.postMessage({ id, result });
    } catch (error) {
      if (isTrap(error)) crash(error);
      fail(id, error);
    }
  };

  port.onmessage = ({ data }) => {
    if (data.cancel) running.get(data.id)?.abort(new DOMException("aborted", "AbortError"));
    else answer(data);
  };
}

/** At most one engine, and what can be done with it. */
class Core {
  /**
   * Set once the module has trapped.
   *
   * @type {Crash | null}
   */
  dead = null;
  #bindings;
  #environment;
  /** @type {Promise<unknown> | null} */
  #ready = null;
  /** @type {WasmEngine | null} */
  #engine = null;
  /** Generations and loading: one after the other. */
  #queue = Promise.resolve();

  /**
   * @param {Bindings} bindings
   * @param {Environment} environment
   */
  constructor(bindings, environment) {
    this.#bindings = bindings;
    this.#environment = environment;
  }

  /**
   * @param {string} method
   * @param {any} params
   * @param {Context} context
   * @returns {Promise<unknown>}
   */
  async call(method, params, context) {
    switch (method) {
      case "features":
        return features(params.backend);
      case "load":
        return this.#queued(() => this.#load(params, context));
      case "generate":
        return this.#queued(() => this.#generate(params, context));
      case "probe":
        return this.#queued(() => this.#probe(params.engine));
      case "tune":
        return this.#queued(() => this.#tune(params, context));
      case "conformance":
        return this.#queued(() => this.#conformance(params, context));
      case "encode":
        return this.#encode(params.prompt);
      case "decode":
        return this.#loaded().decode(params.tokens);
      case "stats":
        return { ...JSON.parse(this.#loaded().stats()), wasm_memory: this.#bindings.wasm_memory_bytes() };
      case "dispose":
        return this.#dispose();
      default:
        throw new CrashError(`the engine knows no ${method}; use files of one version of this package`);
    }
  }

  /**
   * @template T
   * @param {() => Promise<T>} action
   * @returns {Promise<T>}
   */
  #queued(action) {
    const result = this.#queue.then(async () => {
      if (this.dead !== null) throw this.dead;
      try {
        return await action();
      } catch (error) {
        // At once: what is next in the queue must not begin.
        if (isTrap(error)) this.dead = /** @type {Crash} */ (fromEngine(error));
        throw error;
      }
    });
    this.#queue = result.then(nothing, nothing);
    return result;
  }

  /** The module, started. */
  #start() {
    // Bundlers know this very form.
    const module_or_path = new URL("../wasm/bindings_bg.wasm", import.meta.url);
    this.#ready ??= this.#bindings.default({ module_or_path }).catch((cause) => {
      this.#ready = null;
      const why = cause instanceof Error ? cause.message : String(cause);
      const remedy = "see that bindings_bg.wasm is served, and that the page's Content-Security-Policy allows wasm";
      throw new CrashError(`the engine's wasm module does not start (${why}); ${remedy}`, { cause });
    });
    return this.#ready;
  }

  #loaded() {
    if (this.#engine === null) throw new CrashError("no model is loaded; load one first");
    return this.#engine;
  }

  /**
   * Opens a model, and does something with what reads it.
   *
   * @template T
   * @param {{ what: Blob | string, options: OpenOptions }} params
   * @param {Context} context
   * @param {(source: { size: number, readAt: (offset: number, length: number) => Promise<Uint8Array> }, progress: Progress, cache: any) => Promise<T>} action
   * @returns {Promise<T>}
   */
  async #opened({ what, options }, { signal, tell }, action) {
    signal.throwIfAborted();
    const ready = this.#start();
    // Whoever waits for it is told; meanwhile the file may be found missing.
    ready.catch(nothing);
    const progress = new Progress(tell);
    const newDigest = async () => {
      await ready;
      return new this.#bindings.Sha256();
    };
    const { source, cache, release } = await open(what, options, {
      signal,
      progress,
      newDigest,
      environment: this.#environment,
    });
    /** @type {{ error: unknown } | null} */
    let failure = null;
    const readAt = async (/** @type {number} */ offset, /** @type {number} */ length) => {
      try {
        signal.throwIfAborted();
        return await source.readAt(offset, length);
      } catch (error) {
        failure = { error };
        throw error;
      }
    };
    try {
      await ready;
      const result = await action({ size: source.size, readAt }, progress, cache);
      signal.throwIfAborted();
      await source.finish();
      signal.throwIfAborted();
      return result;
    } catch (error) {
      await source.abort();
      const isSources = /** @type {{ code?: unknown } | null} */ (error)?.code === "source";
      throw isSources && failure !== null ? /** @type {{ error: unknown }} */ (failure).error : error;
    } finally {
      release();
    }
  }

  /**
   * @param {{ what: Blob | string, options: OpenOptions, engine: object }} params
   * @param {Context} context
   */
  async #load({ what, options, engine: engineOptions }, context) {
    /** @type {WasmEngine | null} */
    let engine = null;
    const tuned = readTuned(this.#environment);
    try {
      const { facts, ready } = await this.#opened({ what, options }, context, async (source, progress, cache) => {
        const onProgress = (/** @type {string} */ phase, /** @type {number} */ done, /** @type {number} */ total) => {
          if (phase === "select") progress.select(total);
          if (phase === "weights") progress.upload(done, total);
        };
        const all = { ...engineOptions, tuned: await tuned };
        engine = await this.#bindings.load(source, JSON.stringify(all), onProgress);
        const facts = { info: { ...JSON.parse(engine.info()), cache }, report: JSON.parse(engine.report()) };
        return { facts, ready: () => progress.ready(source.size) };
      });
      this.#engine = engine;
      ready();
      return facts;
    } catch (error) {
      if (this.dead === null) /** @type {WasmEngine | null} */ (engine)?.free();
      throw error;
    }
  }

  /**
   * Tries the tunables of a backend, and keeps what is fastest for the next time.
   *
   * @param {{ what: Blob | string, options: OpenOptions, engine: object }} params
   * @param {Context} context
   */
  async #tune({ what, options, engine }, context) {
    const known = await readTuned(this.#environment);
    const { tuned, ...report } = await this.#opened({ what, options }, context, async (source) => {
      const onTrial = (/** @type {string} */ trial) => context.tell({ trial });
      return JSON.parse(await this.#bindings.tune(source, JSON.stringify({ ...engine, tuned: known }), onTrial));
    });
    return { ...report, kept: await writeTuned(this.#environment, tuned) };
  }

  /**
   * @param {{ prompt: Prompt, generate: object }} params
   * @param {Context} context
   */
  async #generate({ prompt, generate }, { signal, tell }) {
    signal.throwIfAborted();
    const tokens = this.#encode(prompt);
    const onPiece = (/** @type {number | undefined} */ token, /** @type {string} */ text) => tell({ token, text });
    return this.#cancellable(signal, async (cancel) =>
      JSON.parse(await this.#loaded().generate(tokens, JSON.stringify(generate), onPiece, cancel)),
    );
  }

  /** @param {Prompt} prompt */
  #encode(prompt) {
    if ("tokens" in prompt) return prompt.tokens;
    if ("text" in prompt) return this.#loaded().encode(prompt.text);
    return this.#loaded().encode_chat(JSON.stringify(prompt.messages));
  }

  /** @param {object} options */
  async #probe(options) {
    await this.#start();
    const tuned = await readTuned(this.#environment);
    return JSON.parse(await this.#bindings.probe(JSON.stringify({ ...options, tuned })));
  }

  /**
   * @param {{ options: object }} params
   * @param {Context} context
   */
  async #conformance({ options }, { signal, tell }) {
    await this.#start();
    const onCase = (/** @type {string} */ json) => tell(JSON.parse(json));
    return this.#cancellable(signal, async (cancel) =>
      JSON.parse(await this.#bindings.conformance(JSON.stringify(options), onCase, cancel.share())),
    );
  }

  /**
   * Does something that the module ends early when the signal says so.
   *
   * @template T
   * @param {AbortSignal} signal
   * @param {(cancel: import("../wasm/bindings.js").WasmCancel) => Promise<T>} action
   * @returns {Promise<T>}
   */
  async #cancellable(signal, action) {
    signal.throwIfAborted();
    const cancel = new this.#bindings.WasmCancel();
    const onAbort = () => cancel.cancel();
    signal.addEventListener("abort", onAbort);
    try {
      const result = await action(cancel);
      signal.throwIfAborted();
      return result;
    } finally {
      signal.removeEventListener("abort", onAbort);
      if (this.dead === null) cancel.free();
    }
  }

  async #dispose() {
    // A module that trapped ends nothing any more.
    if (this.dead !== null) return;
    await this.#queue;
    this.#engine?.free();
    this.#engine = null;
  }
}

function nothing() {}
