/** Requests and answers in the format of OpenAI's API. */

import { reasonOf, throwIfAborted } from "../common/errors.js";
import { Stream } from "./answer-stream.js";
import { ChatParts } from "./chat-parts.js";
import { chatLogprobs, textLogprobs } from "./logprobs.js";
import { Clock, outcome } from "./outcome.js";
import { chatRequest, completionRequest, embeddingRequest, resumeRequest } from "./request.js";

/** @import { ChatCompletions, Completions, Embeddings, Overflow, TokenLogprob } from "../../index.d.ts" */
/** @import { Part } from "./chat-parts.js" */
/** @import { EmbeddingRequest, Request } from "./request.js" */

/**
 * @typedef {object} Generated The engine's result of a generation.
 * @property {number} prompt_tokens
 * @property {number} cached_tokens
 * @property {number[]} tokens
 * @property {string} text
 * @property {"stop" | "length"} finish
 * @property {number} prefill_ms
 * @property {number} decode_ms_per_token
 * @property {number} steady_steps
 * @property {import("../../index.d.ts").Stats} steady
 * @property {number} drafted_tokens
 * @property {number} accepted_tokens
 * @property {number} [thought_tokens] Reasoning tokens of a chat answer.
 * @property {Overflow | null} overflow
 */

/** @typedef {{ token?: number, text: string, logprob?: TokenLogprob, parts?: Part[], overflow?: undefined }} Piece */

/** @typedef {Piece | { overflow: Overflow }} Told A piece, or what was dropped because the text outgrew the context. */

/** @typedef {(event: Told) => void} OnEvent */

/** @typedef {(request: Request, signal: AbortSignal | undefined, onEvent: OnEvent) => Promise<Generated>} Run */

/** @typedef {(session: string, signal: AbortSignal | undefined) => Promise<Request>} Recall Returns the request for the rest of a session's answer. */

/** @typedef {{ vectors: Float32Array[], prompt_tokens: number }} Embedded The engine's result for texts. */

/** @typedef {(request: EmbeddingRequest, signal: AbortSignal | undefined) => Promise<Embedded>} Embed */

/**
 * @typedef {object} Shape The format of one of the two APIs.
 * @property {string} prefix Prefix of ids.
 * @property {string} whole Kind of the object of an answer.
 * @property {string} part Kind of the object of a chunk.
 * @property {(value: unknown, options: unknown) => Request} parse
 * @property {(text: string, parts: ChatParts) => object} answer Fields of a choice in an answer.
 * @property {(piece: Piece | null, parts: ChatParts) => object} chunk Fields of a choice in a chunk; the piece is null in one without.
 * @property {object | null} first Fields of an answer's first chunk, if that is one without a piece.
 * @property {() => (tokens: TokenLogprob[]) => object} logprobs Returns a formatter of one answer's token probabilities.
 */

/** @type {Shape} */
const CHAT = {
  prefix: "chatcmpl",
  whole: "chat.completion",
  part: "chat.completion.chunk",
  parse: chatRequest,
  answer: (_, parts) => ({ message: parts.message() }),
  chunk: (piece, parts) => ({ delta: piece ? parts.add(piece) : {} }),
  first: { delta: { role: "assistant", content: "", refusal: null } },
  logprobs: chatLogprobs,
};

/** @type {Shape} */
const PLAIN = {
  prefix: "cmpl",
  whole: "text_completion",
  part: "text_completion",
  parse: completionRequest,
  answer: (text) => ({ text }),
  chunk: (piece) => ({ text: piece?.text ?? "" }),
  first: null,
  logprobs: textLogprobs,
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

/** Encodes vectors as little-endian 32-bit floats in base64. */
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
      return streamed(shape, again, request, model);
    },
    create(/** @type {unknown} */ value, /** @type {unknown} */ options) {
      if (/** @type {any} */ (value)?.stream === true) return streamed(shape, run, shape.parse(value, options), model);
      return whole(shape, run, value, options, model);
    },
  };
}

/**
 * Asks for all answers at once, so that no other request comes between them. The engine makes one after the other.
 *
 * @template T
 * @param {Request} request
 * @param {(request: Request, index: number) => T} ask
 */
const each = (request, ask) =>
  Array.from({ length: request.n }, (_, index) => ask({ ...request, generate: seeded(request.generate, index) }, index));

/**
 * Returns the request of one of several answers, whose seed is larger by its index.
 *
 * @param {Record<string, unknown>} generate
 * @param {number} index
 */
function seeded(generate, index) {
  if (index === 0) return generate;
  const { seed = 0 } = /** @type {{ seed?: number }} */ (generate);
  const left = Number.MAX_SAFE_INTEGER - seed;
  return { ...generate, seed: index <= left ? seed + index : index - left - 1 };
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
  const answer = async (/** @type {Request} */ request, /** @type {number} */ index) => {
    /** @type {TokenLogprob[]} */
    const likely = [];
    const parts = new ChatParts();
    const result = await run(request, signal, (event) => {
      clock.told(event);
      if (event.overflow !== undefined) return;
      parts.add(event);
      if (event.logprob !== undefined) likely.push(event.logprob);
    });
    const logprobs = request.generate.log_probs === undefined ? null : shape.logprobs()(likely);
    return { result, choice: { index, ...shape.answer(result.text, parts), logprobs, finish_reason: parts.finish(result.finish) } };
  };
  const answers = await Promise.all(each(request, answer)).finally(end);
  const [choices, results] = [answers.map(({ choice }) => choice), answers.map(({ result }) => result)];
  return { ...head(shape, request, model), object: shape.whole, choices, ...outcome(results, clock) };
}

/**
 * @param {Shape} shape
 * @param {Run} run
 * @param {Request} request
 * @param {string} model
 */
const streamed = (shape, run, request, model) => new Stream((stop) => pieces(shape, run, request, model, stop));

/** @typedef {{ index: number, event?: Told, result?: Generated, failure?: { error: unknown } }} News An event, the result or the failure of one answer. */

/**
 * @param {Shape} shape
 * @param {Run} run
 * @param {Request} request
 * @param {string} model
 * @param {AbortSignal} stop Ends it, too.
 * @returns {AsyncGenerator<object, undefined>}
 */
async function* pieces(shape, run, request, model, stop) {
  const clock = new Clock();
  const { signal, end } = follow([...request.signals, stop]);
  /** @type {News[]} */
  const news = [];
  let wake = () => {};
  const tell = (/** @type {News} */ one) => {
    if (one.event !== undefined) clock.told(one.event);
    news.push(one);
    wake();
  };
  const more = () => new Promise((resolve) => (wake = () => resolve(undefined)));
  each(request, (request, index) =>
    run(request, signal, (event) => tell({ index, event })).then(
      (result) => tell({ index, result }),
      (error) => tell({ index, failure: { error } }),
    ),
  );
  const common = { ...head(shape, request, model), object: shape.part, ...(request.usage ? { usage: null } : {}) };
  /** Formatters of token probabilities, one for each answer that has begun. @type {ReturnType<Shape["logprobs"]>[]} */
  const likely = [];
  /** Parsed parts of each answer. @type {ChatParts[]} */
  const parts = Array.from({ length: request.n }, () => new ChatParts());
  const choice = (/** @type {number} */ index, /** @type {Piece | null} */ piece, /** @type {string | null} */ finish_reason) => {
    const logprobs = piece?.logprob === undefined ? null : likely[index]([piece.logprob]);
    return { index, ...shape.chunk(piece, parts[index]), logprobs, finish_reason };
  };
  /** @type {Generated[]} */
  const results = [];
  try {
    for (;;) {
      // Chunks from before the abort no longer matter.
      throwIfAborted(signal);
      const { index = 0, event, result, failure } = news[0] ?? {};
      if (failure !== undefined) throw failure.error;
      if (news.length > 0 && likely[index] === undefined) {
        likely[index] = shape.logprobs();
        if (shape.first) yield { ...common, choices: [{ index, ...shape.first, logprobs: null, finish_reason: null }] };
        continue;
      }
      news.shift();
      if (event?.overflow !== undefined) {
        yield { ...common, choices: [choice(index, null, null)], overflow: event.overflow };
      } else if (event !== undefined) {
        const token = event.token === undefined ? {} : { token: event.token };
        yield { ...common, choices: [choice(index, event, null)], ...token };
      } else if (result !== undefined) {
        results[index] = result;
        const last = { ...common, choices: [choice(index, null, parts[index].finish(result.finish))] };
        const ended = Object.keys(results).length === request.n;
        yield ended && !request.usage ? { ...last, ...outcome(results, clock) } : last;
        if (ended && request.usage) yield { ...common, choices: [], ...outcome(results, clock) };
        if (ended) return;
      } else {
        await more();
      }
    }
  } finally {
    end();
  }
}

/** Returns a signal that is aborted with any of several others, or by `end`. @param {AbortSignal[]} signals */
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
