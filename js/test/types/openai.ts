// Compiles only if requests typed for OpenAI's client are accepted here, and answers are what programs for it expect.
import type { Completion, CompletionChoice, CompletionCreateParams, CompletionCreateParamsBase, CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming } from "openai/resources/completions";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionCreateParams,
  ChatCompletionCreateParamsBase,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessage,
  ChatCompletionMessageParam,
  ChatCompletionTokenLogprob,
} from "openai/resources/chat/completions";
import type { Stream } from "openai/core/streaming";
import type { CreateEmbeddingResponse, EmbeddingCreateParams } from "openai/resources/embeddings";
import type { RequestOptions } from "openai/internal/request-options";
import type * as declared from "../../index.d.ts";
import { CHAT, EMBEDDING, MESSAGE, TEXT } from "./fields";

type Chat = declared.ChatCompletions;
type Plain = declared.Completions;

// Requests.
export const whole = (api: Chat, body: ChatCompletionCreateParamsNonStreaming, options: RequestOptions): Promise<ChatCompletion> =>
  api.create(body, options);
export const stream = (api: Chat, body: ChatCompletionCreateParamsStreaming, options: RequestOptions): AsyncIterable<ChatCompletionChunk> =>
  api.create(body, options);
export const either = async (
  api: Chat,
  body: ChatCompletionCreateParams | ChatCompletionCreateParamsBase,
): Promise<ChatCompletion | AsyncIterable<ChatCompletionChunk>> => api.create(body);
export const maybe = async (api: Chat, body: declared.ChatRequest, stream: boolean): Promise<string> => {
  const answer = await api.create({ ...body, stream });
  if ("choices" in answer) return answer.choices[0].message.content ?? "";
  let text = "";
  for await (const { choices } of answer) text += choices[0]?.delta.content ?? "";
  return text;
};
export const text = (api: Plain, body: CompletionCreateParamsNonStreaming): Promise<Completion> => api.create(body);
// Streamed pieces of a text have a null `finish_reason` before the last one. Their types do not allow it, though that
// API sends it.
export const pieces = (api: Plain, body: CompletionCreateParamsStreaming): AsyncIterable<declared.CompletionChunk> => api.create(body);
export const eitherText = async (
  api: Plain,
  body: CompletionCreateParams | CompletionCreateParamsBase,
): Promise<Completion | AsyncIterable<declared.CompletionChunk>> => api.create(body);
export const controls = (
  pieces: declared.Stream<declared.ChatCompletionChunk>,
): Pick<Stream<ChatCompletionChunk>, "controller" | "toReadableStream" | typeof Symbol.asyncIterator> => pieces;
export const embed = (api: declared.Embeddings, body: EmbeddingCreateParams, options: RequestOptions): Promise<CreateEmbeddingResponse> =>
  api.create(body, options);
export const turns = (engine: declared.AnyGpu, messages: ChatCompletionMessageParam[]): Promise<Uint32Array> => engine.encode(messages);
export const again = (answer: ChatCompletionMessage): declared.ChatMessage => answer;
export const likely = (tokens: declared.TokenLogprob[]): ChatCompletionTokenLogprob[] => tokens;
export const likelyText = (tokens: declared.TextLogprobs): CompletionChoice.Logprobs => tokens;
export const own = (answer: declared.ChatCompletion): ChatCompletionMessageParam => answer.choices[0].message;

// The code knows every field of their types. The declarations have no others, and all that have an effect.
type Fields<T> = Record<keyof T, unknown>;
type Used<T> = { [Key in keyof T]: T[Key] extends true ? Key : never }[keyof T];
type Declared<T, Request> = [Used<T>, Exclude<keyof Request, "signal">] extends [keyof Request, keyof T] ? true : never;
export const chat: Fields<ChatCompletionCreateParamsBase> = CHAT;
export const plain: Fields<CompletionCreateParamsBase> = TEXT;
export const embedding: Fields<EmbeddingCreateParams> = EMBEDDING;
export const sameEmbedding: Declared<typeof EMBEDDING, declared.EmbeddingRequest> = true;
export const sameChat: Declared<typeof CHAT, declared.ChatRequest> = true;
export const sameText: Declared<typeof TEXT, declared.CompletionRequest> = true;
type Keys<T> = T extends unknown ? keyof T : never;
export const message: Record<Keys<ChatCompletionMessageParam | ChatCompletionMessage>, unknown> = MESSAGE;

const say = { role: "user", content: "hi" };
// Formats written within a request, and a schema by itself.
const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
export const formats = (api: Chat) => [
  api.create({ messages: [say], response_format: { type: "text" } }),
  api.create({ messages: [say], response_format: { type: "json_object" }, stream: true }),
  api.create({ messages: [say], response_format: { type: "json_schema", json_schema: { name: "person", schema } } }),
  api.create({
    messages: [say],
    response_format: { type: "json_schema", json_schema: { name: "person", strict: true, schema: { type: "object", required: ["name"] } } },
  }),
];
const format = { type: "json_schema", json_schema: { name: "person", schema } } satisfies declared.ResponseFormat;
export const separate = (api: Chat) => api.create({ messages: [say], response_format: format });

// Invalid requests must not compile.
export const wrong = (api: Chat) => [
  // @ts-expect-error A field that is not known.
  api.create({ messages: [say], max_token: 5 }),
  // @ts-expect-error There are no turns.
  api.create({ stream: true }),
  // @ts-expect-error A picture.
  api.create({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "" } }] }] }),
  // @ts-expect-error No number.
  api.create({ messages: [say], temperature: "1" }),
  // @ts-expect-error A format that is misspelt.
  api.create({ messages: [say], response_format: { type: "json_shema" } }),
  // @ts-expect-error A format without its schema.
  api.create({ messages: [say], response_format: { type: "json_schema" } }),
  // @ts-expect-error A schema in the wrong place.
  api.create({ messages: [say], response_format: { type: "json_schema", schema } }),
  // @ts-expect-error A field of a schema's that is misspelt.
  api.create({ messages: [say], response_format: { type: "json_schema", json_schema: { name: "person", shema: schema } } }),
];
