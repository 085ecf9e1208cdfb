/** Structured output. This file, its module and its worker are loaded with the first request that needs them. */

import { DisposedError, OptionsError } from "./common/errors.js";
import { connect, moduleUrl } from "./connect.js";
import { nothing } from "./module/wasm-module.js";
import { serve } from "./workers/serve.js";

/** @import { Connection, Served } from "./connect.js" */
/** @import { OnEvent, Run } from "./openai/completions.js" */
/** @import { Request } from "./openai/request.js" */
/** @import { Call } from "./sessions/sessions.js" */

/** @typedef {{ worker?: boolean, workerUrl?: string, wasmUrl?: string }} Where */

// Bundlers recognise exactly these forms of workers and imports.

const today = () => new Worker(new URL("./format-worker.js", import.meta.url), { type: "module", name: "anygpu-format" });

/** Workers and scripts of structured output. They do not use threads. @type {Served} */
export const FORMAT = {
  worker: {
    today,
    older: () => new Worker(new URL("./format-worker-older.js", import.meta.url), { type: "module", name: "anygpu-format-older" }),
    threads: today,
  },
  script: { today: "format-worker.js", older: "format-worker-older.js", threads: "format-worker.js" },
  here: {
    today: async (port) => serve(port, (await import("./format/format-today.js")).formats()),
    older: async (port) => serve(port, (await import("./format/format-older.js")).formats()),
  },
};

/** Constrains the answers of an engine to formats. */
export class Formats {
  _call;
  _where;
  /** Connection to the module that has the engine's vocabulary. @type {Promise<Connection> | null} */
  _connection = null;

  /**
   * @param {Call} call Calls the engine.
   * @param {Where} where Options that the engine was loaded with.
   */
  constructor(call, where) {
    this._call = call;
    this._where = where;
  }

  /**
   * Generates an answer that follows its request's format.
   *
   * @param {Request} request
   * @param {AbortSignal | undefined} signal
   * @param {OnEvent} onEvent
   * @param {Run} run
   */
  async held(request, signal, onEvent, run) {
    const { held_to, field } = await this._asked(request, signal);
    const { client } = await this._connected();
    const grammar = await client.call("grammar", { source: held_to }, { signal }).catch((/** @type {any} */ cause) => {
      throw cause instanceof OptionsError ? new OptionsError(`${field}: ${cause.message}`, { field, cause }) : cause;
    });
    /**
     * Computes the mask of tokens that may come next, and sends it to the engine, which waits for it.
     *
     * @param {{ id: number, answer: Uint32Array }} mask
     */
    const allow = async ({ id, answer }) => {
      const masked = client.call("allow", { grammar, answer }).then(
        (mask) => ({ id, mask }),
        (error) => ({ id, error: error.message }),
      );
      await this._call("masked", await masked);
    };
    /** @param {any} event */
    const heard = (event) => {
      if (event.mask === undefined) return onEvent(event);
      // The loss of the engine is reported by the engine itself.
      return void allow(event.mask).catch(nothing);
    };
    try {
      return await run({ ...request, generate: { ...request.generate, held_to } }, signal, heard);
    } finally {
      client.call("release", { grammar }).catch(nothing);
    }
  }

  /**
   * @param {Request} request
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<{ held_to: string, field: string }>}
   */
  async _asked({ prompt, generate, wanted, demanded }, signal) {
    if (wanted) {
      // Reasoning models may think before their answer.
      const isChat = "messages" in prompt;
      const held_to = isChat ? await this._call("after", { prompt, generate, wanted: wanted.format }, signal) : wanted.format;
      return { held_to, field: wanted.field };
    }
    if (demanded) return { held_to: await this._call("form", { prompt, generate, ...demanded }, signal), field: "tools" };
    // The request continues an answer; its constraint was saved with it.
    return { held_to: /** @type {string} */ (generate.held_to), field: "response_format" };
  }

  /** Returns the connection to the module that has the engine's vocabulary. */
  _connected() {
    if (this._connection !== null) return this._connection;
    const connection = this._open();
    const forget = () => {
      if (this._connection === connection) this._connection = null;
    };
    // A module that has trapped is started anew for the next answer.
    connection.then((opened) => opened.client.lost.then(() => (forget(), opened.close(ended())))).catch(forget);
    return (this._connection = connection);
  }

  async _open() {
    const { worker, workerUrl: engines, wasmUrl } = this._where;
    const workerUrl = engines === undefined ? undefined : new URL("format-worker.js", engines).href;
    const connection = await connect(FORMAT, { backend: "cpu", threads: 1, worker, workerUrl });
    try {
      const module = moduleUrl(wasmUrl, connection, "constrain");
      await connection.client.call("vocabulary", { module, ...(await this._call("words", {})) });
      return connection;
    } catch (error) {
      await connection.close(ended());
      throw error;
    }
  }

  /** Frees everything that it holds. */
  async close() {
    await this._connection?.then((connection) => connection.close(ended()), nothing);
  }
}

function ended() {
  return new DisposedError("the engine was disposed; load the model again");
}
