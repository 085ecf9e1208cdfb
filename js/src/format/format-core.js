/** Structured output behind a port: computes which tokens of a vocabulary may come next. */

import { CrashError } from "../common/errors.js";
import { features } from "../module/gpu-features.js";
import { Module } from "../module/wasm-module.js";
import { live } from "../workers/exit-detection.js";

/** @import { Context } from "../workers/serve.js" */

/** @typedef {import("../module/wasm-module.js").Functions<typeof import("../../wasm/constrain.js")>} Bindings Functions that all builds have. */
/** @typedef {import("../../wasm/constrain.js").WasmVocabulary} WasmVocabulary */
/** @typedef {import("../../wasm/constrain.js").WasmGrammar} WasmGrammar */

/** Serves one vocabulary, and grammars over it. @extends {Module<import("../../wasm/constrain.js").WasmCancel>} */
export class FormatCore extends Module {
  _bindings;
  /** @type {WasmVocabulary | null} */
  _vocabulary = null;
  /** @type {Map<number, WasmGrammar>} */
  _grammars = new Map();
  _lastId = 0;

  /**
   * @param {Bindings} bindings
   * @param {URL} url Address of the module.
   */
  constructor(bindings, url) {
    super(bindings, url);
    this._bindings = bindings;
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
      case "vocabulary":
        return this.queued(() => this._read(params));
      case "grammar":
        return this.queued(() => this._made(params.source));
      case "allow":
        return this.queued(() => this._grammar(params.grammar).allow(params.answer));
      case "release":
        return this.queued(async () => this._release(params.grammar));
      case "dispose":
        return this._dispose();
      default:
        throw new CrashError(`the worker of formats does not know ${method}; use files of one version of this package`);
    }
  }

  /** @param {{ bytes: Uint8Array, lengths: Uint32Array, module?: string }} params */
  async _read({ bytes, lengths, module }) {
    await this.start(module);
    this._vocabulary = new this._bindings.WasmVocabulary(bytes, lengths);
  }

  /** @param {string} source */
  async _made(source) {
    if (this._vocabulary === null) throw new CrashError("there is no vocabulary; give one first");
    this._grammars.set(++this._lastId, this._vocabulary.grammar(source));
    return this._lastId;
  }

  /** @param {number} id */
  _grammar(id) {
    const grammar = this._grammars.get(id);
    if (grammar === undefined) throw new CrashError("the answer has ended that this asks for");
    return grammar;
  }

  /** @param {number} id */
  _release(id) {
    this._grammar(id).free();
    this._grammars.delete(id);
  }

  async _dispose() {
    await this.idle();
    // A module that has trapped cannot free anything.
    if (this.dead !== null) return;
    for (const id of [...this._grammars.keys()]) this._release(id);
    this._vocabulary?.free();
  }
}
