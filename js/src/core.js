/** The engine behind a port: at most one model, and what can be done with it. */

import { throwIfAborted } from "./abort.js";
import { CrashError } from "./errors.js";
import { features } from "./features.js";
import { openModel } from "./files.js";
import { mayResume } from "./making.js";
import { Module, nothing } from "./module.js";
import { Progress } from "./progress.js";
import { readTuned, writeTuned } from "./tuned.js";

/** @import { CacheState } from "../index.d.ts" */
/** @import { ModelOptions } from "./files.js" */
/** @import { Prompt } from "./request.js" */
/** @import { Context } from "./serve.js" */
/** @import { Environment } from "./store.js" */

/** @typedef {import("./module.js").Functions<typeof import("../wasm/bindings.js")>} Bindings What all builds have. */
/** @typedef {import("../wasm/bindings.js").WasmEngine} WasmEngine */
/** @typedef {Blob | string | (Blob | string)[]} What A file, an absolute URL, or all files of a split model. */
/** @typedef {{ size: number, files: number[], readAt: (offset: number, length: number) => Promise<Uint8Array> }} EngineSource */

/**
 * At most one engine, and what can be done with it.
 *
 * @extends {Module<import("../wasm/bindings.js").WasmCancel>}
 */
export class Core extends Module {
  _bindings;
  _environment;
  /** @type {WasmEngine | null} */
  _engine = null;

  /**
   * @param {Bindings} bindings
   * @param {URL} url Of the module itself.
   * @param {Environment} environment
   */
  constructor(bindings, url, environment) {
    super(bindings, url);
    this._bindings = bindings;
    this._environment = environment;
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
        return this.queued(() => this._load(params, context));
      case "generate":
        return this.queued(() => this._generate(params, context));
      case "embed":
        return this.queued(() => this._embed(params, context));
      case "probe":
        return this.queued(() => this._probe(params.engine));
      case "tune":
        return this.queued(() => this._tune(params, context));
      case "export":
        return this.queued(() => this._loaded().export(0));
      case "import":
        return this.queued(() => this._loaded().import(params.bytes));
      case "tokens":
        return this._loaded().text();
      case "encode":
        return this._encode(params.prompt);
      case "decode":
        return this._loaded().decode(params.tokens);
      case "stats":
        return { ...JSON.parse(this._loaded().stats()), wasm_memory: this._bindings.wasm_memory_bytes() };
      case "dispose":
        return this._dispose();
      default:
        throw new CrashError(`the engine knows no ${method}; use files of one version of this package`);
    }
  }

  _loaded() {
    if (this._engine === null) throw new CrashError("no model is loaded; load one first");
    return this._engine;
  }

  /**
   * Opens a model and runs a function with its source.
   *
   * @template T
   * @param {{ what: What, options: ModelOptions }} params
   * @param {Context} context
   * @param {(source: EngineSource, progress: Progress, cache: () => CacheState) => Promise<T>} action
   * @returns {Promise<T>}
   */
  async _opened({ what, options }, { signal, tell }, action) {
    throwIfAborted(signal);
    const ready = this.start();
    // Whoever awaits it sees the error; meanwhile the file may turn out to be missing.
    ready.catch(nothing);
    const progress = new Progress(tell);
    const newDigest = async () => {
      await ready;
      return new this._bindings.Sha256();
    };
    const { source, cache, release } = await openModel(what, options, {
      signal,
      progress,
      newDigest,
      environment: this._environment,
    });
    /** @type {{ error: unknown } | null} */
    let failure = null;
    const readAt = async (/** @type {number} */ offset, /** @type {number} */ length) => {
      try {
        throwIfAborted(signal);
        return await source.readAt(offset, length);
      } catch (error) {
        failure = { error };
        throw error;
      }
    };
    try {
      await ready;
      const result = await action({ size: source.size, files: source.files, readAt }, progress, cache);
      throwIfAborted(signal);
      await source.finish();
      throwIfAborted(signal);
      return result;
    } catch (error) {
      const isSources = /** @type {{ code?: unknown } | null} */ (error)?.code === "source";
      const cause = isSources && failure !== null ? /** @type {{ error: unknown }} */ (failure).error : error;
      await source.abort(mayResume(cause));
      throw cause;
    } finally {
      release();
    }
  }

  /**
   * @param {{ what: What, options: ModelOptions, engine: object }} params
   * @param {Context} context
   */
  async _load({ what, options, engine: engineOptions }, context) {
    /** @type {WasmEngine | null} */
    let engine = null;
    const tuned = readTuned(this._environment);
    try {
      const { facts, ready } = await this._opened({ what, options }, context, async (source, progress, cache) => {
        const onProgress = (/** @type {string} */ phase, /** @type {number} */ done, /** @type {number} */ total) => {
          if (phase === "select") progress.select(total);
          if (phase === "weights") progress.upload(done, total);
        };
        const all = { ...engineOptions, tuned: await tuned };
        engine = await this._bindings.load(source, JSON.stringify(all), onProgress);
        const [info, report] = [JSON.parse(engine.info()), JSON.parse(engine.report())];
        return { facts: () => ({ info: { ...info, cache: cache() }, report }), ready: () => progress.ready(source.size) };
      });
      this._engine = engine;
      ready();
      return facts();
    } catch (error) {
      if (this.dead === null) /** @type {WasmEngine | null} */ (engine)?.free();
      throw error;
    }
  }

  /**
   * Tries the tunables of a backend, and keeps what is fastest for the next time.
   *
   * @param {{ what: What, options: ModelOptions, engine: object }} params
   * @param {Context} context
   */
  async _tune({ what, options, engine }, context) {
    const known = await readTuned(this._environment);
    const { tuned, ...report } = await this._opened({ what, options }, context, async (source) => {
      const onTrial = (/** @type {string} */ trial) => context.tell({ trial });
      return JSON.parse(await this._bindings.tune(source, JSON.stringify({ ...engine, tuned: known }), onTrial));
    });
    return { ...report, kept: await writeTuned(this._environment, tuned) };
  }

  /**
   * @param {{ prompt: Prompt, generate: { done?: number[] } }} params
   * @param {Context} context
   */
  async _generate({ prompt, generate }, { signal, tell }) {
    throwIfAborted(signal);
    const done = generate.done ?? [];
    const { tokens: given, keep, dropped_messages = 0 } = this._prompt(prompt, generate);
    const tokens = Uint32Array.from([...given, ...done]);
    const none = { policy: "shift", dropped_tokens: 0, times: 0, ms: 0 };
    const full = (/** @type {object | null} */ overflow) =>
      overflow === null && dropped_messages === 0 ? null : { dropped_messages, ...(overflow ?? none) };
    if (dropped_messages > 0 && done.length === 0) tell({ overflow: full(null) });
    /** @param {number | undefined} token @param {string} text @param {string} [overflow] */
    const onPiece = (token, text, overflow) =>
      tell(overflow === undefined ? { token, text } : { overflow: full(JSON.parse(overflow)) });
    const options = JSON.stringify({ ...generate, usual_keep: keep });
    const answer = await this.cancellable(signal, async (cancel) =>
      JSON.parse(await this._loaded().generate(tokens, options, onPiece, cancel)),
    );
    const prompt_tokens = answer.prompt_tokens - done.length;
    const cached_tokens = Math.min(answer.cached_tokens, prompt_tokens);
    return { ...answer, prompt_tokens, cached_tokens, overflow: full(answer.overflow) };
  }

  /**
   * The tokens of a prompt that is to be generated from, and of a conversation what was left out of it.
   *
   * @param {Prompt} prompt
   * @param {object} generate
   * @returns {{ tokens: ArrayLike<number> & Iterable<number>, keep?: number, dropped_messages?: number }}
   */
  _prompt(prompt, generate) {
    if (!("messages" in prompt)) return { tokens: this._encode(prompt) };
    return JSON.parse(this._loaded().chat_prompt(JSON.stringify(prompt.messages), JSON.stringify(generate)));
  }

  /**
   * @param {{ prompts: Prompt[], embed: { dimensions?: number, normalize?: boolean } }} params
   * @param {Context} context
   */
  async _embed({ prompts, embed: { dimensions = 0, normalize = true } }, { signal }) {
    /** @type {Float32Array[]} */
    const vectors = [];
    let prompt_tokens = 0;
    for (const prompt of prompts) {
      throwIfAborted(signal);
      const tokens = this._encode(prompt);
      vectors.push(await this._loaded().embed(tokens, dimensions, normalize));
      prompt_tokens += tokens.length;
    }
    return { vectors, prompt_tokens };
  }

  /** @param {Prompt} prompt */
  _encode(prompt) {
    if ("tokens" in prompt) return prompt.tokens;
    if ("text" in prompt) return this._loaded().encode(prompt.text);
    return this._loaded().encode_chat(JSON.stringify(prompt.messages));
  }

  /** @param {object} options */
  async _probe(options) {
    await this.start();
    const tuned = await readTuned(this._environment);
    return JSON.parse(await this._bindings.probe(JSON.stringify({ ...options, tuned })));
  }

  async _dispose() {
    // A module that has trapped cannot free anything any more.
    if (this.dead !== null) return;
    await this.idle();
    this._engine?.free();
    this._engine = null;
  }
}
