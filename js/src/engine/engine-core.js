/** The engine behind a port: at most one model, and the calls that use it. */

import { mayResume } from "../cache/entry-writer.js";
import { CrashError, reasonOf, throwIfAborted } from "../common/errors.js";
import { openModel } from "../download/model-files.js";
import { features } from "../module/gpu-features.js";
import { Module, nothing } from "../module/wasm-module.js";
import { endDigesters } from "../part-digests.js";
import { SessionSaver } from "../sessions/session-saver.js";
import { live } from "../workers/exit-detection.js";
import { Progress } from "./load-progress.js";
import { readFound, writeFound } from "./tuning-store.js";

/** @import { CacheState } from "../../index.d.ts" */
/** @import { ModelOptions } from "../download/model-files.js" */
/** @import { Prompt } from "../openai/request.js" */
/** @import { Environment } from "../opfs/storage.js" */
/** @import { KeepOptions } from "../sessions/session-saver.js" */
/** @import { Context } from "../workers/serve.js" */

/** @typedef {import("../module/wasm-module.js").Functions<typeof import("../../wasm/bindings.js")>} Bindings Functions that all builds have. */
/** @typedef {import("../../wasm/bindings.js").WasmEngine} WasmEngine */
/** @typedef {Blob | string | (Blob | string)[]} What A file, an absolute URL, or all files of a split model. */
/** @typedef {{ size: number, files: number[], readAt: (offset: number, length: number) => Promise<Uint8Array>, readOn: () => void }} EngineSource */

/** Serves calls for at most one engine. @extends {Module<import("../../wasm/bindings.js").WasmCancel>} */
export class Core extends Module {
  _bindings;
  _environment;
  _share;
  /** @type {WasmEngine | null} */
  _engine = null;
  /** Chains of calls that belong to one session each, by its name; "" is the unnamed one. @type {Map<string, Promise<unknown>>} */
  _chains = new Map();
  /** Stores the engine's sessions; null if they are not kept. @type {SessionSaver | null} */
  _saver = null;
  /** Pending write of the proofs that selection made. @type {Promise<unknown>} */
  _remembering = Promise.resolve();
  /**
   * Request for the mask of tokens that may come next, while the page computes it.
   *
   * @type {{ id: number, signal: AbortSignal, resolve: (mask: Uint32Array) => void, reject: (error: unknown) => void } | null}
   */
  _mask = null;
  _lastMask = 0;
  /** Sessions for which "not kept" was already reported. @type {Set<string>} */
  _unkept = new Set();

  /**
   * @param {Bindings} bindings
   * @param {URL} url Address of the module.
   * @param {Environment} environment
   * @param {((threads: number) => void) | null} share Makes this many threads share the CPU backend's work once it is opened.
   */
  constructor(bindings, url, environment, share = null) {
    super(bindings, url);
    this._bindings = bindings;
    this._environment = environment;
    this._share = share;
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
        return { ...(await features(params.backend)), alive: await live(params.alive) };
      case "load":
        return this.queued(() => this._load(params, context));
      case "generate":
        return this._inSession(params.session ?? "", () => this._generate(params, context));
      case "request":
        return JSON.parse(this._bindings.read_request(params.api, params.body));
      case "masked":
        return this._masked(params);
      case "words":
        return { bytes: this._loaded().words(), lengths: this._loaded().word_lengths() };
      case "after":
        return this._loaded().format_after(JSON.stringify(params.prompt.messages), JSON.stringify(params.generate), params.wanted);
      case "form":
        return this._loaded().call_form(JSON.stringify(params.prompt.messages), JSON.stringify(params.generate), params.name);
      case "embed":
        return this.queued(() => this._embed(params, context));
      case "rerank":
        return this.queued(() => this._rerank(params, context));
      case "probe":
        return this.queued(() => this._probe(params));
      case "tune":
        return this.queued(() => this._tune(params, context));
      case "export":
        return this._brought(params, context, () => this._loaded().export(params.session));
      case "import":
        return this._inSession("", () => this.queued(() => this._loaded().import("", params.bytes, false)));
      case "tokens":
        return this._brought(params, context, () => this._loaded().text(params.session));
      case "asked":
        return this._brought(params, context, () => this._asked(params.session));
      case "sessions":
        return this._sessions();
      case "remove":
        return this._inSession(params.session, () => this._remove(params.session));
      case "clear":
        return this._afterAll(() => this._clear());
      case "encode":
        return this._encode(params.prompt);
      case "decode":
        return this._loaded().decode(params.tokens);
      case "stats":
        return { ...JSON.parse(this._loaded().stats()), wasm_memory: this._bindings.wasm_memory_bytes() };
      case "dispose":
        return this._dispose();
      default:
        throw new CrashError(`the engine does not know ${method}; use files of one version of this package`);
    }
  }

  /**
   * Starts the module, and lets it start threads when it opens the CPU backend.
   *
   * @param {string} [url]
   * @param {number} [threads]
   */
  async _started(url, threads = 1) {
    await this.start(url);
    if (threads > 1) this._share?.(threads);
  }

  _loaded() {
    if (this._engine === null) throw new CrashError("no model is loaded; load one first");
    return this._engine;
  }

  /**
   * Opens a model and runs a function with its source.
   *
   * @template T
   * @param {{ what: What, options: ModelOptions, module?: string, threads?: number }} params
   * @param {Context} context
   * @param {(source: EngineSource, progress: Progress, cache: () => CacheState) => Promise<T>} action
   * @returns {Promise<T>}
   */
  async _opened({ what, options, module, threads }, { signal, tell }, action) {
    throwIfAborted(signal);
    const ready = this._started(module, threads);
    // Awaited further down. Until then the file may turn out to be missing, and a rejection here is not unhandled.
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
      const readOn = () => source.readOn();
      const result = await action({ size: source.size, files: source.files, readAt, readOn }, progress, cache);
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
   * @param {{ what: What, options: ModelOptions, module?: string, threads?: number, engine: object, sessions?: KeepOptions, again?: boolean }} params
   * `again` after a loss: then nothing counts as proven.
   * @param {Context} context
   */
  async _load({ what, options, module, threads, engine: engineOptions, sessions, again = false }, context) {
    /** @type {WasmEngine | null} */
    let engine = null;
    const found = readFound(this._environment);
    try {
      const { facts, ready } = await this._opened({ what, options, module, threads }, context, async (source, progress, cache) => {
        /** @type {(phase: string, done: number, total: number, rung?: string) => void} */
        const onProgress = (phase, done, total, rung) => {
          if (phase === "select") progress.select(total, rung === undefined ? undefined : JSON.parse(rung));
          if (phase === "select" && rung === undefined) source.readOn();
          if (phase === "weights") progress.upload(done, total);
        };
        const { tuned, proven } = await found;
        const proofs = again || proven?.module !== (await this.digest()) ? undefined : proven.proofs;
        const all = { ...engineOptions, tuned, proven: proofs };
        engine = await this._bindings.load(source, JSON.stringify(all), onProgress);
        const [info, chosen] = [JSON.parse(engine.info()), JSON.parse(engine.report())];
        const report = { ...chosen, module_sha256: await this.digest() };
        return { facts: () => ({ info: { ...info, cache: cache() }, report }), ready: () => progress.ready(source.size) };
      });
      this._saver = await SessionSaver.start(this._texts(/** @type {any} */ (engine)), sessions, this._environment);
      this._engine = engine;
      this._remember(/** @type {any} */ (engine), facts().report.module_sha256);
      ready();
      return facts();
    } catch (error) {
      if (this.dead === null) /** @type {WasmEngine | null} */ (engine)?.free();
      throw error;
    }
  }

  /**
   * Stores the proofs that selection made, unless they are stored already. Only `dispose` waits for it.
   *
   * @param {WasmEngine} engine
   * @param {string} module
   */
  _remember(engine, module) {
    const proofs = engine.proven();
    if (proofs === undefined) return;
    this._remembering = writeFound(this._environment, { proven: { module, proofs: JSON.parse(proofs) } });
  }

  /**
   * Tries the tunables of a backend, and stores the fastest values for later loads.
   *
   * @param {{ what: What, options: ModelOptions, module?: string, threads?: number, engine: object }} params
   * @param {Context} context
   */
  async _tune({ what, options, module, threads, engine }, context) {
    const { tuned: known } = await readFound(this._environment);
    const { tuned, ...report } = await this._opened({ what, options, module, threads }, context, async (source) => {
      const onTrial = (/** @type {string} */ trial) => context.tell({ trial });
      return JSON.parse(await this._bindings.tune(source, JSON.stringify({ ...engine, tuned: known }), onTrial));
    });
    return { ...report, kept: await writeFound(this._environment, { tuned }) };
  }

  /**
   * Runs an action after those of its session before it. Those of other sessions may run meanwhile.
   *
   * @template T
   * @param {string} session
   * @param {() => Promise<T>} action
   * @returns {Promise<T>}
   */
  _inSession(session, action) {
    const result = (this._chains.get(session) ?? Promise.resolve()).then(action);
    const ended = result.then(nothing, nothing).then(() => {
      if (this._chains.get(session) === ended) this._chains.delete(session);
    });
    this._chains.set(session, ended);
    return result;
  }

  /** Runs an action after those of all sessions before it. @template T @param {() => Promise<T>} action */
  async _afterAll(action) {
    await Promise.all(this._chains.values());
    return action();
  }

  /**
   * Returns the engine's texts, as they are read and written between turns.
   *
   * @param {WasmEngine} engine
   * @returns {import("../sessions/session-saver.js").Texts}
   */
  _texts(engine) {
    return {
      identity: () => engine.identity(),
      has: (name) => this.queued(async () => engine.text(name) !== undefined),
      import: (name, bytes) => this.queued(() => engine.import(name, bytes, true)),
      kept: (name, isKept, isReady) => engine.kept(name, isKept, isReady),
    };
  }

  /**
   * Imports a session into the engine if the browser stores it, then runs an action. Without a session it comes after
   * everything that is under way.
   *
   * @template T
   * @param {{ session?: string }} params
   * @param {Context} context
   * @param {() => T | Promise<T>} action
   */
  _brought({ session }, { tell }, action) {
    const last = () => this.queued(async () => action());
    if (session === undefined) return this._afterAll(last);
    return this._inSession(session, async () => {
      await this._saver?.bring(session, this._onUnkept(tell));
      return last();
    });
  }

  /** Returns a listener that reports each session once as not kept. @param {(event: unknown) => void} tell */
  _onUnkept(tell) {
    return (/** @type {string} */ session, /** @type {unknown} */ error) => {
      if (this._unkept.has(session)) return;
      this._unkept.add(session);
      tell({ unkept: { session, reason: error instanceof Error ? error.message : String(error) } });
    };
  }

  /** @param {string} session */
  _asked(session) {
    const asked = this._loaded().asked(session);
    return asked === undefined ? null : JSON.parse(asked);
  }

  /** Lists all named sessions, last used first: those in the engine, then those that are only stored. */
  async _sessions() {
    const kept = (await this._saver?.list()) ?? [];
    const here = await this.queued(async () => this._named());
    const stored = new Map(kept.map((one) => [one.name, one.bytes]));
    const names = new Set(here.map(({ name }) => name));
    const others = kept.filter(({ name }) => !names.has(name)).map(({ name, bytes, newest: { tokens, finish } }) => {
      return { name, tokens, finish, memory: 0, stored: bytes };
    });
    const own = here.map(({ name, tokens, finish, bytes }) => {
      return { name, tokens, finish, memory: bytes, stored: stored.get(name) ?? 0 };
    });
    return [...own, ...others];
  }

  /** @param {string} session */
  async _remove(session) {
    const kept = await this._saver?.remove(session);
    return (await this.queued(async () => this._loaded().remove(session))) || kept === true;
  }

  async _clear() {
    await this._saver?.clear();
    await this.queued(async () => this._named().forEach(({ name }) => this._loaded().remove(name)));
  }

  /**
   * Lists the named sessions in the engine.
   *
   * @returns {{ name: string, tokens: number, finish: string | null, bytes: number }[]}
   */
  _named() {
    return JSON.parse(this._loaded().sessions()).filter((/** @type {{ name: string }} */ { name }) => name !== "");
  }

  /**
   * @param {{ prompt: Prompt, generate: { done?: number[] }, session?: string }} params
   * @param {Context} context
   */
  async _generate({ prompt, generate, session = "" }, { signal, tell }) {
    throwIfAborted(signal);
    if (this.dead !== null) throw this.dead;
    const done = generate.done ?? [];
    const { tokens: given, keep, dropped_messages = 0 } = this._prompt(prompt, generate);
    const tokens = Uint32Array.from([...given, ...done]);
    const none = { policy: "shift", dropped_tokens: 0, times: 0, ms: 0 };
    const full = (/** @type {object | null} */ overflow) =>
      overflow === null && dropped_messages === 0 ? null : { dropped_messages, ...(overflow ?? none) };
    if (dropped_messages > 0 && done.length === 0) tell({ overflow: full(null) });
    /** @type {(token: number | undefined, text: string, overflow?: string, logprob?: string, parts?: string, step?: string, values?: Float32Array) => unknown} */
    const onPiece = (token, text, overflow, logprob, parts, step, values) => {
      if (step !== undefined) return tell({ step: { ...JSON.parse(step), values } });
      if (overflow !== undefined) return tell({ overflow: full(JSON.parse(overflow)) });
      const likely = logprob === undefined ? {} : { logprob: JSON.parse(logprob) };
      return tell({ token, text, ...likely, ...(parts === undefined ? {} : { parts: JSON.parse(parts) }) });
    };
    const onMask = (/** @type {Uint32Array} */ answer) =>
      new Promise((resolve, reject) => {
        throwIfAborted(signal);
        this._mask = { id: ++this._lastMask, signal, resolve, reject };
        tell({ mask: { id: this._lastMask, answer } });
      });
    signal.addEventListener("abort", () => {
      if (this._mask?.signal === signal) this._mask.reject(reasonOf(signal));
    });
    const run = (/** @type {import("../sessions/session-saver.js").Saving | undefined} */ saving) => {
      const kept = session === "" ? {} : { session, save_every: saving?.every };
      const request = JSON.stringify({ ...generate, usual_keep: keep, ...kept });
      return this.cancellable(signal, async (cancel) => {
        const text = this._loaded().begin(tokens, request, onPiece, onMask, cancel, saving?.onSnapshot);
        try {
          for (;;) {
            const answer = await this.queued(() => text.turn(() => this.waiting > 0));
            if (answer !== undefined) return JSON.parse(answer);
          }
        } finally {
          if (this.dead === null) text.free();
        }
      });
    };
    const saver = session === "" ? null : this._saver;
    const answer = await (saver ? saver.during(session, this._onUnkept(tell), run) : run(undefined));
    const prompt_tokens = answer.prompt_tokens - done.length;
    const cached_tokens = Math.min(answer.cached_tokens, prompt_tokens);
    return { ...answer, prompt_tokens, cached_tokens, overflow: full(answer.overflow) };
  }

  /**
   * Continues generation with the page's mask of the tokens that may come next.
   *
   * @param {{ id: number, mask?: Uint32Array, error?: string }} told
   */
  _masked({ id, mask, error }) {
    if (this._mask?.id !== id) return;
    if (mask === undefined) this._mask.reject(new Error(error));
    else this._mask.resolve(mask);
    this._mask = null;
  }

  /**
   * Returns the tokens of a prompt; for a conversation also what was left out of it.
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
   * @param {{ prompts: Prompt[], embed: { dimensions: number | null, normalize: boolean, scores: boolean } }} params
   * @param {Context} context
   */
  async _embed({ prompts, embed: { dimensions, normalize, scores } }, { signal }) {
    /** @type {Float32Array[]} */
    const vectors = [];
    let prompt_tokens = 0;
    for (const prompt of prompts) {
      throwIfAborted(signal);
      const tokens = this._encode(prompt);
      vectors.push(await this._loaded().embed(tokens, dimensions ?? 0, normalize, scores));
      prompt_tokens += tokens.length;
    }
    return { vectors, prompt_tokens };
  }

  /**
   * @param {{ body: string, model: string }} params
   * @param {Context} context
   */
  async _rerank({ body, model }, context) {
    const { vectors, prompt_tokens } = await this._embed(JSON.parse(this._bindings.read_request("rerank", body)), context);
    // Of several scores, the first says how well a document answers the query.
    const scores = Float32Array.from(vectors, ([score]) => score);
    return JSON.parse(this._bindings.rerank_answer(body, scores, model, prompt_tokens));
  }

  /** @param {Prompt} prompt */
  _encode(prompt) {
    if ("tokens" in prompt) return Uint32Array.from(prompt.tokens);
    if ("text" in prompt) return this._loaded().encode(prompt.text);
    if ("pair" in prompt) return this._loaded().encode_pair(...prompt.pair);
    return this._loaded().encode_chat(JSON.stringify(prompt.messages));
  }

  /** @param {{ engine: object, module?: string, threads?: number }} params */
  async _probe({ engine, module, threads }) {
    await this._started(module, threads);
    const { tuned } = await readFound(this._environment);
    const report = JSON.parse(await this._bindings.probe(JSON.stringify({ ...engine, tuned })));
    return { ...report, module_sha256: await this.digest() };
  }

  async _dispose() {
    const ended = endDigesters();
    const saver = this._saver;
    this._saver = null;
    if (this.dead !== null) saver?.abandon();
    // A module that has trapped cannot free anything.
    if (this.dead !== null) return ended;
    await this._afterAll(() => this.idle());
    await this._remembering;
    await saver?.close();
    this._engine?.free();
    this._engine = null;
    await ended;
  }
}
