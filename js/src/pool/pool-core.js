/**
 * A member of a pool behind a port. It joins, handles messages one after the other, and reports its state until it
 * leaves. Only the wasm module knows the messages' contents.
 */

import { CrashError, fromEngine } from "../common/errors.js";
import { environment } from "../common/runtime.js";
import { features } from "../module/gpu-features.js";
import { Module } from "../module/wasm-module.js";
import { PoolError } from "../pool-error.js";
import { live } from "../workers/exit-detection.js";
import { chunks } from "./chunk-cache.js";
import { link } from "./nats-link.js";
import { describe, models, rate } from "./pool-downloads.js";

/** @import { PoolState, PoolComputes } from "../../pool.d.ts" */
/** @import { Context } from "../workers/serve.js" */
/** @import { Link } from "./nats-link.js" */

/** @typedef {import("../module/wasm-module.js").Functions<typeof import("../../wasm/pool.js")>} Bindings Functions that all builds have. */

/**
 * @typedef {object} Joining
 * @property {string} coordinator
 * @property {string} backend
 * @property {number} memory In bytes.
 * @property {string} [module] Where the wasm module is, if not where the package has it.
 */

/** How long a coordinator may take to answer, and the pause before the next attempt. In milliseconds. */
const PATIENCE = 5_000;
const AGAIN = 500;
/** Number of attempts to join for the first time. */
const ATTEMPTS = 3;

/** Returns a random secret. The worker's name is derived from it, so knowing the secret proves the name. */
function ownSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Serves one member. @extends {Module<import("../../wasm/pool.js").WasmCancel>} */
export class PoolCore extends Module {
  _bindings;
  /** @type {Member | null} */
  _member = null;

  /**
   * @param {Bindings} bindings
   * @param {URL} url Address of the module.
   * @param {typeof link} [connect]
   * @param {import("../opfs/storage.js").Environment} [around]
   */
  constructor(bindings, url, connect = link, around = environment()) {
    super(bindings, url);
    this._bindings = bindings;
    this._connect = connect;
    this._environment = around;
  }

  /**
   * @param {string} method
   * @param {any} params
   * @param {Context} context
   * @returns {Promise<unknown>}
   */
  async call(method, params, { signal, tell }) {
    switch (method) {
      case "features":
        return { ...(await features(params.backend)), alive: await live(params.alive) };
      case "join":
        return this._join(params, signal);
      case "follow":
        return this._member?.follow(tell);
      case "seen":
        return this._member?.see(params.visible);
      case "leave":
      case "dispose":
        return this._member?.leave();
      default:
        throw new CrashError(`the pool's worker does not know ${method}; use files of one version of this package`);
    }
  }

  /**
   * @param {Joining} joining
   * @param {AbortSignal} signal
   */
  async _join({ coordinator, backend, memory, module }, signal) {
    const pool = await describe(coordinator, signal);
    const { address, blocks, bytes } = pool.model;
    const [bandwidth] = await Promise.all([rate(address, bytes, signal), this.start(module)]);
    const offer = { backend, memory, block_bytes: bytes / blocks, bandwidth };
    const wasm = await this.queued(() => this._bindings.member(JSON.stringify(offer)));
    const secret = ownSecret();
    const name = this._bindings.worker_name(secret);
    const connection = await this._connect(pool.websocket, secret, name);
    const member = new Member(this, wasm, connection, name, chunks(this._environment, String(pool.model.digest)));
    signal.addEventListener("abort", () => member.leave());
    try {
      await member.begin(signal);
    } catch (error) {
      await member.leave();
      throw error;
    }
    this._member = member;
    return { pool, state: member.state() };
  }
}

/** A worker that has joined the pool, or is about to. */
class Member {
  _hop = 0;
  _isThere = true;
  _visible = true;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  _timer;
  /** Aborts downloads when the worker leaves. */
  _ending = new AbortController();
  /** @type {Promise<void> | null} */
  _left = null;
  /** Whether a hello is being sent. */
  _greeting = false;
  /** @type {(state: PoolState) => void} */
  _tell = () => {};

  /**
   * @param {Module<any>} module
   * @param {import("../../wasm/pool.js").WasmMember} wasm
   * @param {Link} link
   * @param {string} name
   * @param {import("./chunk-cache.js").Chunks} chunks
   */
  constructor(module, wasm, link, name, chunks) {
    this._name = name;
    this._chunks = chunks;
    this._module = module;
    this._wasm = wasm;
    this._link = link;
    /** @type {PoolComputes} */
    this._computes = JSON.parse(wasm.computes());
    this._leaving = wasm.leaving();
    /** Resolves once the worker has a name; it handles messages from then on. @type {Promise<void>} */
    this._joined = new Promise((resolve) => (this._welcomed = resolve));
    this._inbox = this._listen();
    /** Rejects with the error that ends the worker; resolves when it leaves. @type {Promise<void>} */
    this._end = new Promise((resolve, reject) => {
      this._ended = resolve;
      this._fail = reject;
    });
    // The error is seen by the caller of `follow`.
    this._end.catch(() => {});
  }

  /** Joins for the first time. @param {AbortSignal} signal */
  async begin(signal) {
    const answered = await this._hello(ATTEMPTS, signal);
    if (!answered) throw new PoolError("the pool's coordinator does not answer; make sure that it runs, in the version of this page");
    this._link.watch((isThere) => this._changed(isThere)).then(
      () => this._ended?.(),
      (error) => this._lose(error),
    );
  }

  _listen() {
    return this._link.subscribe(`pool.w.${this._name}.>`, (subject, data, reply) => this._came(subject, data, reply));
  }

  /**
   * Says hello until it is answered, with a limited number of attempts.
   *
   * @param {number} attempts
   * @param {AbortSignal} signal
   */
  async _hello(attempts, signal) {
    for (let attempt = 0; attempt < attempts && !signal.aborted; attempt += 1) {
      if (attempt > 0) await pause(AGAIN);
      this._hop = Math.max(1, Math.round(1000 * (await this._link.hop())));
      const hello = this._wasm.hello(this._name, this._link.name(), this._hop);
      const answer = await this._link.request("pool.hello", hello, PATIENCE);
      if (answer === null) continue;
      const welcomed = async () => JSON.parse(this._wasm.welcomed(answer, models(this._ending.signal, this._chunks)));
      const { worker, heartbeat_millis } = await this._module.queued(welcomed);
      if (worker !== this._name) {
        this._inbox.unsubscribe();
        this._name = worker;
        this._inbox = this._listen();
      }
      this._welcomed?.();
      clearInterval(this._timer);
      this._timer = setInterval(() => this._beat(), heartbeat_millis);
      return true;
    }
    return false;
  }

  /** Says hello again: the coordinator does not know this worker any more. */
  async _greet() {
    if (this._greeting) return;
    this._greeting = true;
    try {
      await this._hello(Infinity, this._ending.signal);
    } catch (error) {
      this._lose(error);
    } finally {
      this._greeting = false;
    }
  }

  /**
   * @param {string} subject
   * @param {Uint8Array} data
   * @param {string | undefined} reply
   */
  _came(subject, data, reply) {
    if (this._left !== null) return;
    if (subject === `pool.w.${this._name}.hello`) return void this._greet();
    const send = (/** @type {string} */ to, /** @type {Uint8Array} */ payload) => {
      this._say(to, payload);
      if (to === `pool.up.${this._name}.at`) this._show();
    };
    const work = async () => {
      if (this._left !== null) return;
      const answer = await this._wasm.deliver(subject, data, send);
      if (answer !== undefined && reply !== undefined) this._say(reply, answer);
      if (reply !== undefined) this._show();
    };
    // A task may arrive before the welcome was handled.
    this._joined.then(() => this._module.queued(work)).catch((error) => this._lose(error));
  }

  /**
   * Publishes a message. A message that is sent while the connection is broken is lost, and asked for again.
   *
   * @param {string} subject @param {Uint8Array} payload
   */
  _say(subject, payload) {
    try {
      this._link.publish(subject, payload);
    } catch (error) {
      console.warn(`anygpu: ${subject} could not be told: ${error}`);
    }
  }

  _beat() {
    if (this._module.dead !== null || !this._isThere) return;
    this._say(`pool.up.${this._name}.hb`, this._wasm.heartbeat(this._link.name(), this._hop, this._visible));
    this._show();
  }

  /** @param {boolean} isThere */
  _changed(isThere) {
    this._isThere = isThere;
    // The heartbeat tells the coordinator of the new connection.
    if (isThere && this._left === null) this._beat();
    this._show();
  }

  /** Notes whether the page is visible. The pool prefers workers in visible pages. @param {boolean} visible */
  see(visible) {
    this._visible = visible;
    this._beat();
  }

  /** @returns {PoolState} */
  state() {
    const shown = JSON.parse(this._wasm.shown());
    return { ...shown, worker: this._name, computes: this._computes, hopMicros: this._hop, connected: this._isThere };
  }

  _show() {
    if (this._module.dead === null && this._left === null) this._tell(this.state());
  }

  /** Reports the state until the worker leaves. @param {(state: PoolState) => void} tell @returns {Promise<void>} */
  follow(tell) {
    this._tell = tell;
    this._show();
    return this._end;
  }

  /** Ends with an error. @param {unknown} error */
  _lose(error) {
    if (this._left !== null) return;
    this._fail?.(fromEngine(error));
    this.leave();
  }

  /** Says goodbye, and leaves. */
  leave() {
    this._left = this._left ?? this._leave();
    return this._left;
  }

  async _leave() {
    clearInterval(this._timer);
    this._ending.abort(new DOMException("left the pool", "AbortError"));
    this._say(`pool.up.${this._name}.at`, this._leaving);
    await this._link.close();
    this._ended?.();
  }
}
