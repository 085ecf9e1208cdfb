/** Requests and answers in the format of OpenAI's API. */

import { reasonOf, throwIfAborted } from "../common/errors.js";
import { Stream } from "./answer-stream.js";
import { ChatParts } from "./chat-parts.js";
import { chatLogprobs, textLogprobs } from "./logprobs.js";
import { Clock, outcome } from "./outcome.js";
import { given, resumed } from "./request.js";

/** @import { ChatCompletions, Completions, Embeddings, Overflow, TokenLogprob } from "../../index.d.ts" */
/** @import { Part } from "./chat-parts.js" */
/** @import { Api, Asked, EmbeddingRequest, Given, Request } from "./request.js" */

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

/** @typedef {(api: Api, body: string, signal: AbortSignal | undefined) => Promise<any>} Read Reads the fields of a request. */

/** @typedef {(session: string, signal: AbortSignal | undefined) => Promise<Request>} Recall Returns the request for the rest of a session's answer. */

/** @typedef {{ vectors: Float32Array[], prompt_tokens: number }} Embedded The engine's result for texts. */

/** @typedef {(request: EmbeddingRequest, signal: AbortSignal | undefined) => Promise<Embedded>} Embed */

/**
 * @typedef {object} Shape The format of one of the two APIs.
 * @property {string} prefix Prefix of ids.
 * @property {string} whole Kind of the object of an answer.
 * @property {string} part Kind of the object of a chunk.
 * @property {Api} api
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
  api: "chat",
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
  api: "text",
  answer: (text) => ({ text }),
  chunk: (piece) => ({ text: piece?.text ?? "" }),
  first: null,
  logprobs: textLogprobs,
};

/**
 * @typedef {object} Parts The engine, as these APIs use it.
 * @property {Read} read
 * @property {Run} run
 * @property {Recall} recall
 * @property {Embed} embed
 * @property {string} model The name that answers have unless the request has one.
 */

/** @param {Parts} engine @returns {ChatCompletions} */
export const chatCompletions = (engine) => /** @type {any} */ (completionsOf(CHAT, engine));

/** @param {Parts} engine @returns {Completions} */
export const completions = (engine) => /** @type {any} */ (completionsOf(PLAIN, engine));

/** @param {Parts} engine @returns {Embeddings} */
export const embeddings = ({ read, embed, model }) => ({
  async create(/** @type {unknown} */ value, /** @type {unknown} */ options) {
    const { body, signals } = given(value, options);
    const { signal, end } = follow(signals);
    const asked = async () => {
      /** @type {EmbeddingRequest} */
      const request = await read("embedding", body, signal);
      return { request, ...(await embed(request, signal)) };
    };
    const { request, vectors, prompt_tokens } = await asked().finally(end);
    const coded = request.base64 ? base64 : (/** @type {Float32Array} */ vector) => Array.from(vector);
    return /** @type {any} */ ({
      object: "list",
      data: vectors.map((vector, index) => ({ object: "embedding", index, embedding: coded(vector) })),
      model: request.model ?? model,
      usage: { prompt_tokens, total_tokens: prompt_tokens },
    });
  },
});

/**
 * Returns the function that ranks documents.
 *
 * @param {(body: string, signal: AbortSignal | undefined) => Promise<any>} rank
 */
export const reranker = (rank) => async (/** @type {unknown} */ value, /** @type {unknown} */ options) => {
  const { body, signals } = given(value, options);
  const { signal, end } = follow(signals);
  return rank(body, signal).finally(end);
};

/** Encodes vectors as little-endian 32-bit floats in base64. */
function base64(/** @type {Float32Array} */ vector) {
  const view = new DataView(new ArrayBuffer(4 * vector.length));
  vector.forEach((value, index) => view.setFloat32(4 * index, value, true));
  return btoa(Array.from(new Uint8Array(view.buffer), (byte) => String.fromCharCode(byte)).join(""));
}

/** @param {Shape} shape @param {Parts} engine */
function completionsOf(shape, engine) {
  return {
    resume(/** @type {unknown} */ session, /** @type {unknown} */ options) {
      const { signals, session: name } = resumed(session, options);
      const again = async (/** @type {AbortSignal | undefined} */ signal) => {
        const { prompt, generate } = await engine.recall(name, signal);
        return { prompts: [prompt], generate, seeds: [undefined], usage: false };
      };
      return streamed(shape, engine, again, { signals, session: name });
    },
    create(/** @type {unknown} */ value, /** @type {unknown} */ options) {
      if (/** @type {any} */ (value)?.stream !== true) return whole(shape, engine, value, options);
      const { body, ...from } = given(value, options);
      return streamed(shape, engine, (signal) => engine.read(shape.api, body, signal), from);
    },
  };
}

/** @typedef {Omit<Asked, "seeds"> & { seeds: (string | undefined)[] }} Answers A request for several answers. */

/** @typedef {(signal: AbortSignal | undefined) => Promise<Answers>} Reading Returns the request. */

/** @typedef {Pick<Given, "signals" | "session">} From */

/**
 * Asks for all answers at once, so that no other request comes between them. The engine makes one after the other.
 *
 * @template T
 * @param {Answers} asked
 * @param {string | undefined} session
 * @param {(request: Request, index: number) => T} ask
 */
function each({ prompts, generate, seeds, wanted, demanded }, session, ask) {
  const requests = prompts.flatMap((prompt) => seeds.map((seed) => ({ prompt, generate: { ...generate, ...(seed === undefined ? {} : { seed }) } })));
  return requests.map((request, index) => ask({ ...request, session, wanted, demanded }, index));
}

/**
 * @param {Shape} shape
 * @param {Parts} engine
 * @param {unknown} value
 * @param {unknown} options
 */
async function whole(shape, engine, value, options) {
  const { body, signals, session } = given(value, options);
  const clock = new Clock();
  const { signal, end } = follow(signals);
  const answer = async (/** @type {Request} */ request, /** @type {number} */ index) => {
    /** @type {TokenLogprob[]} */
    const likely = [];
    const parts = new ChatParts();
    const result = await engine.run(request, signal, (event) => {
      clock.told(event);
      if (event.overflow !== undefined) return;
      parts.add(event);
      if (event.logprob !== undefined) likely.push(event.logprob);
    });
    const logprobs = isMissing(request.generate.log_probs) ? null : shape.logprobs()(likely);
    return { result, choice: { index, ...shape.answer(result.text, parts), logprobs, finish_reason: parts.finish(result.finish) } };
  };
  const all = async () => {
    /** @type {Answers} */
    const asked = await engine.read(shape.api, body, signal);
    return { asked, answers: await Promise.all(each(asked, session, answer)) };
  };
  const { asked, answers } = await all().finally(end);
  const [choices, results] = [answers.map(({ choice }) => choice), answers.map(({ result }) => result)];
  return { ...head(shape, asked.model ?? engine.model), object: shape.whole, choices, ...outcome(results, asked.seeds.length, clock) };
}

const isMissing = (/** @type {unknown} */ value) => value === undefined || value === null;

/**
 * @param {Shape} shape
 * @param {Parts} engine
 * @param {Reading} reading
 * @param {From} from
 */
const streamed = (shape, engine, reading, from) => new Stream((stop) => pieces(shape, engine, reading, from, stop));

/** @typedef {{ index: number, event?: Told, result?: Generated, failure?: { error: unknown } }} News An event, the result or the failure of one answer. */

/**
 * @param {Shape} shape
 * @param {Parts} engine
 * @param {Reading} reading
 * @param {From} from
 * @param {AbortSignal} stop Ends it, too.
 * @returns {AsyncGenerator<object, undefined>}
 */
async function* pieces(shape, engine, reading, { signals, session }, stop) {
  const clock = new Clock();
  const { signal, end } = follow([...signals, stop]);
  /** @type {News[]} */
  const news = [];
  let wake = () => {};
  const tell = (/** @type {News} */ one) => {
    if (one.event !== undefined) clock.told(one.event);
    news.push(one);
    wake();
  };
  const more = () => new Promise((resolve) => (wake = () => resolve(undefined)));
  const asked = await reading(signal).catch((error) => {
    end();
    throw error;
  });
  const { length: count } = each(asked, session, (request, index) =>
    engine.run(request, signal, (event) => tell({ index, event })).then(
      (result) => tell({ index, result }),
      (error) => tell({ index, failure: { error } }),
    ),
  );
  const common = { ...head(shape, asked.model ?? engine.model), object: shape.part, ...(asked.usage ? { usage: null } : {}) };
  /** Formatters of token probabilities, one for each answer that has begun. @type {ReturnType<Shape["logprobs"]>[]} */
  const likely = [];
  /** Parsed parts of each answer. @type {ChatParts[]} */
  const parts = Array.from({ length: count }, () => new ChatParts());
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
        const ended = Object.keys(results).length === count;
        const counted = () => outcome(results, asked.seeds.length, clock);
        yield ended && !asked.usage ? { ...last, ...counted() } : last;
        if (ended && asked.usage) yield { ...common, choices: [], ...counted() };
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

/** @param {Shape} shape @param {string} model */
function head({ prefix }, model) {
  const now = Date.now();
  const id = `${prefix}-${now.toString(36)}-${(++lastId).toString(36)}`;
  return { id, created: Math.floor(now / 1000), model };
}
