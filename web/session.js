// The engine of the page: loading, switching, generating. There is one, and the other modules listen to its events.
// 
// Events: `loading` (a load began), `progress` (detail: the package's progress), `ready` (an engine is ready), `failed`
// (detail: error, model, backend; the engine from before stays, or is loaded again), `cancelled`, `busy` (generation
// began or ended), `recovered` (detail: the package's event), `figures` (detail: rate, first, prefill, open, compile,
// memory, as far as they are known).

import { AnyGpu } from "./anygpu/src/index.js";

/** The model that comes with the page. */
export const BUILT_IN = { source: new URL("models/gab-q4_0.gguf", document.baseURI).href, name: "gab" };

/** Limit of an engine's memory up to which it stays until the next one is ready. Units: bytes. */
const ROOM_FOR_TWO = 256e6;

/** Options of sessions. They are stored, and a closed page loses at most a second of an answer. */
const SESSIONS = { keep: true, every: 1000 };

const isAbort = (error) => error?.name === "AbortError";

class Session extends EventTarget {
  /** The engine in use, or null. */
  engine = null;
  /** The loaded model, `{ source, name }`, or null. */
  model = null;
  /** The requested backend: auto, webgpu, webgl or cpu. */
  backend = "auto";
  _loading = null;
  _running = null;
  /** Memory of the engine in use when it was last asked. Units: bytes. */
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
   * Loads a model, or the same one on another backend. If that fails, the previous one is used again. Resolves to
   * whether the new one is in use.
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

  /** Updates the memory figure without waiting: a busy engine answers later, a lost or replaced one never. */
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

  /** Cancels the load in progress. */
  cancelLoad() {
    this._loading?.abort(new DOMException("Loading was cancelled.", "AbortError"));
  }

  /** Stops the generation in progress; resolves when it has ended. */
  async stop() {
    this._running?.controller.abort(new DOMException("Generation was stopped.", "AbortError"));
    await this._running?.done;
  }

  /**
   * Generates text. `kind` is "chat" (the request has `messages`) or "completion" (it has `prompt`). `onText` gets each
   * piece, with its reasoning, and its token probabilities if the request asks for them. `onOverflow` gets the report
   * when text was dropped to make room in the context. `kept` is the name of the session, if it has one. Resolves to `{
   * finish, tokens, rate, first, overflow }`; stopping is not an error but the finish `"cancelled"`.
   */
  generate(kind, request, onText, onOverflow, kept) {
    const options = kept === undefined ? {} : { session: kept };
    // A conversation or a continued story may be of any length.
    const all = { ...request, overflow: "shift", stream: true };
    const begin = (completions, signal) => completions.create({ ...all, signal }, options);
    return this._run(begin, kind, onText, onOverflow);
  }

  /** Continues the answer of a stored session, from its beginning; see `generate`. */
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
          // The first tokens say little about the rate.
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
