/** Requests and answers in the shapes of OpenAI's API. */

import { reasonOf, throwIfAborted } from "./abort.js";
import { chatRequest, completionRequest, embeddingRequest, resumeRequest } from "./request.js";

/** @import { ChatCompletions, Completions, Embeddings, Overflow } from "../index.d.ts" */
/** @import { EmbeddingRequest, Request } from "./request.js" */

/**
 * @typedef {object} Generated What the engine says of a generation.
 * @property {number} prompt_tokens
 * @property {number} cached_tokens
 * @property {number[]} tokens
 * @property {string} text
 * @property {"stop" | "length"} finish
 * @property {number} prefill_ms
 * @property {number} decode_ms_per_token
 * @property {number} steady_steps
 * @property {import("../index.d.ts").Stats} steady
 * @property {number} drafted_tokens
 * @property {number} accepted_tokens
 * @property {Overflow | null} overflow
 */

/** @typedef {{ token?: number, text: string, overflow?: undefined }} Piece */

/** @typedef {Piece | { overflow: Overflow }} Told A piece, or what was done since the text outgrew the context. */

/** @typedef {(event: Told) => void} OnEvent */

/** @typedef {(request: Request, signal: AbortSignal | undefined, onEvent: OnEvent) => Promise<Generated>} Run */

/** @typedef {(session: string, signal: AbortSignal | undefined) => Promise<Request>} Recall Gives what asks for the rest. */

/** @typedef {{ vectors: Float32Array[], prompt_tokens: number }} Embedded What the engine says of texts. */

/** @typedef {(request: EmbeddingRequest, signal: AbortSignal | undefined) => Promise<Embedded>} Embed */

/**
 * @typedef {object} Shape How one of the two APIs looks.
 * @property {string} prefix Of the ids.
 * @property {string} whole The name of an answer.
 * @property {string} part The name of a chunk.
 * @property {(value: unknown, options: unknown) => Request} parse
 * @property {(text: string) => object} answer The choice's text in an answer,
 * @property {(piece: Piece | null, first: boolean) => object} chunk and in a chunk; null in one without a piece.
 */

/** @type {Shape} */
const CHAT = {
  prefix: "chatcmpl",
  whole: "chat.completion",
  part: "chat.completion.chunk",
  parse: chatRequest,
  answer: (text) => ({ message: { role: "assistant", content: text, refusal: null } }),
  chunk: (piece, first) => ({
    delta: { ...(first ? { role: "assistant" } : {}), ...(piece ? { content: piece.text } : {}) },
  }),
};

/** @type {Shape} */
const PLAIN = {
  prefix: "cmpl",
  whole: "text_completion",
  part: "text_completion",
  parse: completionRequest,
  answer: (text) => ({ text }),
  chunk: (piece) => ({ text: piece?.text ?? "" }),
};

/**
 * @param {Run} run
 * @param {Recall} recall
 * @param {string} model The name that answers have unless the request has one.
 * @returns {ChatCompletions}
 */
export const chatCompletions = (run, recall, model) => /** @type {any} */ (completionsOf(CHAT, run, recall, model));

/**
 * @param {Run} run
 * @param {Recall} recall
 * @param {string} model
 * @returns {Completions}
 */
export const completions = (run, recall, model) => /** @type {any} */ (completionsOf(PLAIN, run, recall, model));

/**
 * @param {Embed} embed
 * @param {string} model
 * @returns {Embeddings}
 */
export const embeddings = (embed, model) => ({
  async create(/** @type {unknown} */ value, /** @type {unknown} */ options) {
    const request = embeddingRequest(value, options);
    const { signal, end } = follow(request.signals);
    const { vectors, prompt_tokens } = await embed(request, signal).finally(end);
    const coded = request.base64 ? base64 : (/** @type {Float32Array} */ vector) => Array.from(vector);
    return /** @type {any} */ ({
      object: "list",
      data: vectors.map((vector, index) => ({ object: "embedding", index, embedding: coded(vector) })),
      model: request.model ?? model,
      usage: { prompt_tokens, total_tokens: prompt_tokens },
    });
  },
});

/** The bytes of 32-bit floats, little-endian. */
function base64(/** @type {Float32Array} */ vector) {
  const view = new DataView(new ArrayBuffer(4 * vector.length));
  vector.forEach((value, index) => view.setFloat32(4 * index, value, true));
  return btoa(Array.from(new Uint8Array(view.buffer), (byte) => String.fromCharCode(byte)).join(""));
}

/**
 * @param {Shape} shape
 * @param {Run} run
 * @param {Recall} recall
 * @param {string} model
 */
function completionsOf(shape, run, recall, model) {
  return {
    resume(/** @type {unknown} */ session, /** @type {unknown} */ options) {
      const request = resumeRequest(session, options);
      /** @type {Run} */
      const again = async (_, signal, onPiece) => run(await recall(request.session, signal), signal, onPiece);
      return stream(shape, again, request, model);
    },
    create(/** @type {unknown} */ value, /** @type {unknown} */ options) {
      if (/** @type {any} */ (value)?.stream === true) return stream(shape, run, shape.parse(value, options), model);
      return whole(shape, run, value, options, model);
    },
  };
}

/**
 * @param {Shape} shape
 * @param {Run} run
 * @param {unknown} value
 * @param {unknown} options
 * @param {string} model
 */
async function whole(shape, run, value, options, model) {
  const request = shape.parse(value, options);
  const clock = new Clock();
  const { signal, end } = follow(request.signals);
  const result = await run(request, signal, (event) => clock.told(event)).finally(end);
  const choice = { index: 0, ...shape.answer(result.text), logprobs: null, finish_reason: result.finish };
  return { ...head(shape, request, model), object: shape.whole, choices: [choice], ...outcome(result, clock) };
}

/**
 * @param {Shape} shape
 * @param {Run} run
 * @param {Request} request
 * @param {string} model
 */
async function* stream(shape, run, request, model) {
  const clock = new Clock();
  const common = { ...head(shape, request, model), object: shape.part };
  const choices = (/** @type {Piece | null} */ piece, /** @type {string | null} */ finish_reason, first = false) => [
    { index: 0, ...shape.chunk(piece, first), logprobs: null, finish_reason },
  ];
  const { signal, end } = follow(request.signals);
  /** @type {Told[]} */
  const events = [];
  /** @type {{ result?: Generated, error?: unknown } | null} */
  let ended = null;
  let wake = () => {};
  const onEvent = (/** @type {Told} */ event) => {
    clock.told(event);
    events.push(event);
    wake();
  };
  run(request, signal, onEvent)
    .then(
      (result) => (ended = { result }),
      (error) => (ended = { error }),
    )
    .then(() => wake());
  const more = () => new Promise((resolve) => (wake = () => resolve(undefined)));
  try {
    let first = true;
    for (;;) {
      // Pieces from before the abort no longer matter.
      throwIfAborted(signal);
      const event = events.shift();
      const { result, error } = /** @type {{ result?: Generated, error?: unknown }} */ (ended ?? {});
      if (event?.overflow !== undefined) {
        yield { ...common, choices: choices(null, null, first), overflow: event.overflow };
        first = false;
      } else if (event !== undefined) {
        const token = event.token === undefined ? {} : { token: event.token };
        yield { ...common, choices: choices(event, null, first), ...token };
        first = false;
      } else if (result !== undefined) {
        yield { ...common, choices: choices(null, result.finish, first), ...outcome(result, clock) };
        return;
      } else if (ended !== null) {
        throw error;
      } else {
        await more();
      }
    }
  } finally {
    end();
  }
}

/**
 * A signal that is aborted with any of some others, or by `end`.
 *
 * @param {AbortSignal[]} signals
 */
function follow(signals) {
  const controller = new AbortController();
  const onAbort = (/** @type {Event} */ event) => controller.abort(reasonOf(/** @type {AbortSignal} */ (event.target)));
  for (const signal of signals) {
    if (signal.aborted) controller.abort(reasonOf(signal));
    signal.addEventListener("abort", onAbort);
  }
  const end = () => {
    for (const signal of signals) signal.removeEventListener("abort", onAbort);
    controller.abort();
  };
  return { signal: controller.signal, end };
}

let lastId = 0;

/**
 * @param {Shape} shape
 * @param {Request} request
 * @param {string} model
 */
function head({ prefix }, request, model) {
  const now = Date.now();
  const id = `${prefix}-${now.toString(36)}-${(++lastId).toString(36)}`;
  return { id, created: Math.floor(now / 1000), model: request.model ?? model };
}

/**
 * @param {Generated} result
 * @param {Clock} clock
 */
function outcome(result, clock) {
  const { prompt_tokens, cached_tokens, tokens, overflow, drafted_tokens, accepted_tokens } = result;
  const { prefill_ms, decode_ms_per_token, steady_steps, steady } = result;
  return {
    usage: {
      prompt_tokens,
      completion_tokens: tokens.length,
      total_tokens: prompt_tokens + tokens.length,
      cached_tokens,
      prompt_tokens_details: { cached_tokens },
      completion_tokens_details: {
        accepted_prediction_tokens: accepted_tokens,
        rejected_prediction_tokens: drafted_tokens - accepted_tokens,
      },
    },
    timings: { prefill_ms, decode_ms_per_token, ttft_ms: clock.firstMs() },
    stats: { steps: steady_steps, ...steady },
    tokens,
    overflow,
  };
}

/** From the call to the first piece. */
class Clock {
  _start = performance.now();
  /** @type {number | null} */
  _first = null;

  /** @param {Told} event */
  told({ overflow }) {
    if (this._first === null && overflow === undefined) this._first = performance.now();
  }

  /** In milliseconds; if nothing came, all of the time. */
  firstMs() {
    return (this._first ?? performance.now()) - this._start;
  }
}
