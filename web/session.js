// The one engine of the page: loading, switching, generating. Everything else listens.
//
// Events: `loading` (a load began), `progress` (detail: the package's progress), `ready` (an engine is there), `failed`
// (detail: error, model, backend; the engine from before stays, or is loaded again), `cancelled`, `busy` (generation
// began or ended), `figures` (detail: rate, first, prefill, open, compile, memory: what is known so far).

import { AnyGpu } from "./anygpu/src/index.js";

/** The model that is part of the page. */
export const BUILT_IN = { source: new URL("models/gab-q4_0.gguf", document.baseURI).href, name: "gab" };

/** While the engine in use holds no more than this, it stays until the next one is ready. Units: bytes. */
const ROOM_FOR_TWO = 256e6;

/** Conversations are kept in the browser; what is lost with the page is at most a second of an answer. */
const SESSIONS = { keep: true, every: 1000 };

const isAbort = (error) => error?.name === "AbortError";

class Session extends EventTarget {
  /** The engine in use, or null. */
  engine = null;
  /** What is loaded: `{ source, name }`, or null. */
  model = null;
  /** What the visitor asked for: auto, webgpu, webgl or cpu. */
  backend = "auto";
  _loading = null;
  _running = null;
  /** What the engine in use held when it was last asked. Units: bytes. */
  _memory = 0;

  /** Whether a model is being loaded. */
  get loading() {
    return this._loading !== null;
  }

  /** Whether the loaded model can hold a conversation. */
  get canChat() {
    return Boolean(this.engine?.info.has_chat);
  }

  /** Whether text is being generated. */
  get busy() {
    return this._running !== null;
  }

  _emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /**
   * Loads a model, or the same one on another backend. If that fails, the one from before is in use again; the promise
   * says whether the new one is.
   */
  async load(model, backend = this.backend) {
    this._loading?.abort();
    const loading = new AbortController();
    this._loading = loading;
    const before = { model: this.model, backend: this.backend };
    this.backend = backend;
    this._emit("loading", { model, backend });
    await this.stop();
    try {
      if (this._memory > ROOM_FOR_TWO) await this._release();
      const onProgress = (progress) => this._loading === loading && this._emit("progress", progress);
      const engine = await AnyGpu.load(model.source, { backend, onProgress, signal: loading.signal, sessions: SESSIONS });
      if (this._loading !== loading) {
        await engine.dispose();
        return false;
      }
      await this._release();
      engine.on("recovered", (event) => this.engine === engine && this._emit("recovered", event));
      this.engine = engine;
      this.model = model;
      this._loading = null;
      this._emit("ready");
      this._emit("figures", { open: engine.info.open_ms, compile: engine.info.compile_ms });
      this._readMemory(engine);
      return true;
    } catch (error) {
      if (this._loading !== loading) return false;
      this._loading = null;
      if (before.model) this.backend = before.backend;
      if (isAbort(error)) this._emit("cancelled");
      else this._emit("failed", { error, model, backend });
      if (!this.engine && before.model && (before.model !== model || before.backend !== backend)) {
        await this.load(before.model, before.backend);
      }
      return false;
    }
  }

  /** Asks for a figure that nobody waits for: a busy engine answers later, and one that was lost or replaced never. */
  _readMemory(engine) {
    const keep = ({ memory }) => {
      if (this.engine !== engine) return;
      this._memory = memory;
      this._emit("figures", { memory });
    };
    engine.stats().then(keep, () => {});
  }

  async _release() {
    const engine = this.engine;
    this.engine = null;
    this._memory = 0;
    await engine?.dispose();
  }

  /** Gives up the load under way. */
  cancelLoad() {
    this._loading?.abort(new DOMException("Loading was cancelled.", "AbortError"));
  }

  /** Ends the generation under way; resolves when it has ended. */
  async stop() {
    this._running?.controller.abort(new DOMException("Generation was stopped.", "AbortError"));
    await this._running?.done;
  }

  /**
   * Generates text: `kind` is "chat" (the request has `messages`) or "completion" (it has `prompt`). `onText` gets each
   * piece, and beside it what was thought instead, and how likely it was if the request asks for that; `onOverflow` what made room in a full context. `kept` is the name that the text is kept under, if it is. Resolves
   * to `{ finish, tokens, rate, first, overflow }`; stopping is a finish, `"cancelled"`, not an error.
   */
  generate(kind, request, onText, onOverflow, kept) {
    const options = kept === undefined ? {} : { session: kept };
    // A conversation, and a story that is carried on, may be of any length.
    const all = { ...request, overflow: "shift", stream: true };
    const begin = (completions, signal) => completions.create({ ...all, signal }, options);
    return this._run(begin, kind, onText, onOverflow);
  }

  /** Goes on with the answer that is kept under a name, from its beginning, as `generate` does. */
  resume(kind, kept, onText, onOverflow) {
    return this._run((completions, signal) => completions.resume(kept, { signal }), kind, onText, onOverflow);
  }

  async _run(begin, kind, onText, onOverflow) {
    await this.stop();
    const controller = new AbortController();
    const result = this._stream((completions) => begin(completions, controller.signal), kind, onText, onOverflow);
    const running = {
      controller,
      done: result.then(
        () => {},
        () => {},
      ),
    };
    this._running = running;
    this._emit("busy");
    try {
      return await result;
    } finally {
      if (this._running === running) this._running = null;
      this._emit("busy");
    }
  }

  async _stream(begin, kind, onText, onOverflow) {
    const { engine } = this;
    const completions = kind === "chat" ? engine.chat.completions : engine.completions;
    const started = performance.now();
    const result = { finish: "cancelled", tokens: 0, rate: null, first: null, overflow: null };
    let firstAt = 0;
    try {
      for await (const chunk of begin(completions)) {
        const choice = chunk.choices[0];
        const text = choice?.delta?.content ?? choice?.text ?? "";
        if (chunk.token !== undefined) {
          const now = performance.now();
          if (result.tokens === 0) {
            firstAt = now;
            result.first = now - started;
          }
          result.tokens += 1;
          // The first token says nothing about the pace; a few more do.
          if (result.tokens > 3) result.rate = ((result.tokens - 1) / (now - firstAt)) * 1000;
          this._emit("figures", { rate: result.rate, first: result.first });
        }
        const thought = choice?.delta?.reasoning_content ?? "";
        if (text || thought || choice?.logprobs) onText(text, { thought, logprobs: choice.logprobs });
        if (chunk.overflow) {
          result.overflow = chunk.overflow;
          onOverflow(chunk.overflow);
        }
        if (choice?.finish_reason) result.finish = choice.finish_reason;
        if (chunk.usage) result.tokens = chunk.usage.completion_tokens;
        if (chunk.timings) {
          const { decode_ms_per_token: each, prefill_ms: prefill, ttft_ms: first } = chunk.timings;
          if (each > 0) result.rate = 1000 / each;
          result.first = first;
          this._emit("figures", { rate: result.rate, first, prefill });
        }
      }
    } catch (error) {
      if (!isAbort(error)) throw error;
    }
    this._readMemory(engine);
    return result;
  }
}

/** The session of this page. */
export const session = new Session();
