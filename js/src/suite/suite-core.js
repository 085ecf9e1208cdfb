/** The conformance suite behind a port. Nothing else loads its wasm module. */

import { CrashError } from "../common/errors.js";
import { features } from "../module/gpu-features.js";
import { Module } from "../module/wasm-module.js";
import { live } from "../workers/exit-detection.js";

/** @import { Context } from "../workers/serve.js" */

/** @typedef {import("../module/wasm-module.js").Functions<typeof import("../../wasm/conformance.js")>} Bindings Functions that all builds have. */

/**
 * Runs the suite.
 *
 * @extends {Module<import("../../wasm/conformance.js").WasmCancel>}
 */
export class Suite extends Module {
  _bindings;
  _share;

  /**
   * @param {Bindings} bindings
   * @param {URL} url Address of the module.
   * @param {((threads: number) => Promise<void>) | null} share Makes this many threads share the CPU's work.
   */
  constructor(bindings, url, share = null) {
    super(bindings, url);
    this._bindings = bindings;
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
      case "conformance":
        return this.queued(() => this._conformance(params, context));
      case "dispose":
        return this.idle();
      default:
        throw new CrashError(`the suite does not know ${method}; use files of one version of this package`);
    }
  }

  /**
   * @param {{ options: object, module?: string, threads?: number }} params
   * @param {Context} context
   */
  async _conformance({ options, module, threads = 1 }, { signal, tell }) {
    await this.start(module);
    if (threads > 1) await this._share?.(threads);
    const onCase = (/** @type {string} */ json) => tell(JSON.parse(json));
    return this.cancellable(signal, async (cancel) =>
      JSON.parse(await this._bindings.conformance(JSON.stringify(options), onCase, cancel.share())),
    );
  }
}
