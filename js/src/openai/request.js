/**
 * Requests in the format of OpenAI's API: the fields, their values, and what is done with each. A value that asks for
 * nothing special passes. A field that would change the answer and is not supported is refused by name.
 */

import { OptionsError } from "../common/errors.js";
import { MOST, boolean, integer, number, object, oneOf, refuse, shown, signal, string } from "../common/validate.js";

/** @import { Check } from "../common/validate.js" */

/**
 * @typedef {object} Field Values that a field accepts. Null is always the same as leaving it out.
 * @property {Check} [use] Check of a supported field; it returns the value to use.
 * @property {readonly unknown[]} [neutral] Accepted values of an unsupported field: those that ask for nothing.
 * @property {string} [refusal] Reason why other values are refused, and what to do.
 * @property {true} [ignored] Set if the field never changes the answer.
 */

/** @param {Check} check @returns {Field} */
const use = (check) => ({ use: check });

/** @param {readonly unknown[]} neutral @param {string} refusal @returns {Field} */
const only = (neutral, refusal) => ({ neutral, refusal });

/** @type {Field} */
const ignored = { ignored: true };

/** @param {Field} field @returns {Check} */
const checkOf = (field) => (name, value) => {
  if (value === null || field.ignored) return undefined;
  if (field.use) return field.use(name, value);
  const { neutral = [], refusal } = field;
  if (neutral.some((one) => same(one, value))) return undefined;
  const what = neutral.length ? `can only be ${neutral.map(shown).join(" or ")}, not ${shown(value)}` : "is not supported";
  throw new OptionsError(`${name} ${what}: ${refusal}`, { field: name });
};

/** Whether a value equals one of a field's neutral values: a plain value, or a small object or array. */
function same(/** @type {unknown} */ one, /** @type {unknown} */ value) {
  if (typeof one !== "object" || typeof value !== "object") return one === value;
  return shown(one) === shown(value);
}

/** @param {Record<string, Field>} table */
const fields = (table) => object(Object.fromEntries(Object.entries(table).map(([name, field]) => [name, checkOf(field)])));

/** @type {Check} */
const stop = (name, value) => {
  const strings = typeof value === "string" ? [value] : value;
  const sound = Array.isArray(strings) && strings.length <= 64 && strings.every((s) => typeof s === "string" && s !== "");
  return sound ? strings : refuse(name, "a string that is not empty, or at most 64 of them", value);
};

/**
 * Smallest `top_p`: the engine requires more than 0, and the likeliest of its 64 candidates never has less than this.
 */
const LEAST_TOP_P = 2 ** -24;

/** @type {Check} */
const topP = (name, value) => Math.max(Number(number(0, 1)(name, value)), LEAST_TOP_P);

const RENAMED = "its name is tools, and tool_choice";

const ONLY_TEXT = "only text is read; leave this part out";

/** Fields of a part of a turn. */
const PART = {
  type: use(oneOf(["text"])),
  text: use(string),
  image_url: only([], ONLY_TEXT),
  input_audio: only([], ONLY_TEXT),
  file: only([], ONLY_TEXT),
  refusal: only([], ONLY_TEXT),
  prompt_cache_breakpoint: ignored,
};

const partFields = fields(PART);

/** Returns the text of a turn. */
const content = (/** @type {string} */ name, /** @type {unknown} */ value) => {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return refuse(name, 'a string, or an array of { type: "text", text }', value);
  const texts = value.map((given, index) => {
    const part = partFields(`${name}[${index}]`, given);
    for (const key of ["type", "text"]) if (part[key] === undefined) refuse(`${name}[${index}].${key}`, "a string", null);
    return part.text;
  });
  return texts.join("");
};

/** Checks an object with required fields. @param {Record<string, Field>} table @param {string[]} required @returns {Check} */
const whole = (table, required) => {
  const check = fields(table);
  return (name, value) => {
    const sound = check(name, value);
    for (const key of required) if (sound[key] === undefined) refuse(`${name}.${key}`, "given", /** @type {any} */ (value)[key]);
    return sound;
  };
};

/** Largest number of tools, and of calls in a turn, as in OpenAI's API. */
const MOST_TOOLS = 128;

/** @param {Check} check @param {string} what @returns {Check} */
const listOf = (check, what) => (name, value) => {
  if (!Array.isArray(value) || value.length > MOST_TOOLS) refuse(name, `an array of at most ${MOST_TOOLS} ${what}`, value);
  return /** @type {unknown[]} */ (value).map((one, index) => check(`${name}[${index}]`, one));
};

/** @type {Check} */
const functionName = (name, value) =>
  typeof value === "string" && /^[\w.-]{1,64}$/.test(value) ? value : refuse(name, "1 to 64 letters, digits, _, - and .", value);

/** Checks that a value is an object; it is passed on as JSON. @type {Check} */
const anyObject = (name, value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse(name, "an object", value);
  return value;
};

/**
 * Checks the arguments of a call. The text may be empty, since some services send that for no arguments.
 *
 * @type {Check}
 */
const callArguments = (name, value) => {
  const expected = "a string that is an object as JSON";
  if (typeof value !== "string") return refuse(name, expected, value);
  try {
    if (value.trim() !== "") anyObject(name, JSON.parse(value));
  } catch {
    refuse(name, expected, value);
  }
  return value;
};

const CALL = {
  id: use(string),
  type: use(oneOf(["function"])),
  function: use(whole({ name: use(string), arguments: use(callArguments), parsed_arguments: ignored }, ["name"])),
  index: use(integer(0, MOST_TOOLS)),
};

const DESCRIBED = {
  name: use(functionName),
  description: use(string),
  parameters: use(anyObject),
  strict: use((name, value) => void boolean(name, value)),
};

const TOOL = { type: use(oneOf(["function"])), function: use(whole(DESCRIBED, ["name"])) };

/** Checks a function that must be called. */
const named = whole({ type: use(oneOf(["function"])), function: use(whole({ name: use(functionName) }, ["name"])) }, ["type", "function"]);

/** Checks the type of a format. Other formats than text are checked when they are used. @type {Check} */
const responseFormat = (name, value) => {
  const type = /** @type {any} */ (anyObject(name, value)).type;
  oneOf(["text", "json_object", "json_schema"])(`${name}.type`, type);
  return type === "text" ? undefined : value;
};

/** Largest number of template variables in a request. */
const MOST_VARIABLES = 32;

/** @type {Check} */
const variables = (name, value) => {
  const sound = anyObject(name, value);
  if (Object.keys(/** @type {object} */ (sound)).length > MOST_VARIABLES) refuse(name, `an object of at most ${MOST_VARIABLES} values`, value);
  return sound;
};

/**
 * Fields of a turn. Fields that a service adds to its own answers must be empty; fields that clients add when they
 * parse answers are ignored.
 */
export const MESSAGE = {
  role: use((name, value) => (value === "" ? refuse(name, "a string such as user", value) : string(name, value))),
  content: use(content),
  reasoning_content: use(string),
  name: use(string),
  refusal: only([""], "only content is read; put it there"),
  tool_calls: use(listOf(whole(CALL, ["function"]), "calls")),
  tool_call_id: use(string),
  function_call: only([], "its name is tool_calls"),
  audio: only([], "only text is read; leave it out"),
  annotations: ignored,
  parsed: ignored,
};

const messageFields = fields(MESSAGE);

/** @typedef {{ role: string, content: string, [other: string]: unknown }} Turn */

/**
 * Checks a conversation, and returns each turn's content as a string.
 *
 * @param {string} name
 * @param {unknown} value
 * @returns {Turn[]}
 */
export const messages = (name, value) => {
  if (!Array.isArray(value) || value.length === 0) return refuse(name, "an array with at least one message", value);
  return value.map((given, index) => {
    const path = `${name}[${index}]`;
    const { role, content, ...others } = messageFields(path, given);
    if (role === undefined) refuse(`${path}.role`, "a string such as user", given.role);
    // Answers that only call tools have no content, and clients send them back as part of the conversation.
    if (content === undefined && role !== "assistant") refuse(`${path}.content`, "a string", given.content);
    if (role === "tool" && !others.tool_call_id) refuse(`${path}.tool_call_id`, "the id of the call that this answers", given.tool_call_id);
    if (role !== "tool" && others.name) {
      throw new OptionsError(`${path}.name is not supported: templates are given roles only; put it into the content`, { field: `${path}.name` });
    }
    const more = Object.entries(others).filter(([, value]) => value !== undefined && value !== "" && /** @type {any} */ (value).length !== 0);
    return { role, content: content ?? "", ...Object.fromEntries(more) };
  });
};

/**
 * @param {string} name
 * @param {any} value
 * @returns {Uint32Array}
 */
export const tokens = (name, value) => {
  const list = typeof value === "object" && value !== null && Number.isSafeInteger(value.length) ? value : null;
  if (list === null || list.length < 0 || list.length > MOST) refuse(name, "an array of token ids", value);
  const ids = Array.from(/** @type {ArrayLike<unknown>} */ (list));
  const bad = ids.findIndex((id) => !(Number.isSafeInteger(id) && Number(id) >= 0 && Number(id) <= MOST));
  if (bad >= 0) refuse(`${name}[${bad}]`, "a token id", ids[bad]);
  return Uint32Array.from(/** @type {number[]} */ (ids));
};

/** @param {string} name @param {unknown} value */
const one = (name, value) => (typeof value === "string" ? { text: value } : { tokens: tokens(name, value) });

/** Whether a value has several texts, or an array with one. */
const isList = (/** @type {any} */ value) =>
  Array.isArray(value) && (typeof value[0] === "string" || (typeof value[0] === "object" && value[0] !== null));

/**
 * Checks a text or token ids, or an array with one of either.
 *
 * @param {string} name
 * @param {any} value
 * @returns {Prompt}
 */
const prompt = (name, value) => {
  if (!isList(value)) return one(name, value);
  if (value.length === 1) return one(`${name}[0]`, value[0]);
  throw new OptionsError(`${name} can only be one text, not ${value.length}: ask once for each`, { field: name });
};

/** Largest number of texts in a request, as in OpenAI's API. */
const MOST_TEXTS = 2048;

/**
 * Checks one or several texts, or their token ids.
 *
 * @param {string} name
 * @param {any} value
 * @returns {Prompt[]}
 */
const input = (name, value) => {
  if (!isList(value)) return [one(name, value)];
  if (value.length > MOST_TEXTS) refuse(name, `at most ${MOST_TEXTS} texts`, value.length);
  return value.map((/** @type {unknown} */ text, /** @type {number} */ index) => one(`${name}[${index}]`, text));
};

/** Largest number of tokens with a bias that the engine takes. */
const MOST_BIASES = 1024;

/** Checks token ids and the values to add to their logits. @type {Check} */
const biases = (name, value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse(name, "an object of token ids and numbers", value);
  const entries = Object.entries(/** @type {object} */ (value));
  if (entries.length > MOST_BIASES) refuse(name, `an object of at most ${MOST_BIASES} tokens`, entries.length);
  return entries.map(([id, bias]) => {
    if (!/^\d{1,9}$/.test(id)) refuse(`${name}.${id}`, "of a token id", id);
    return [Number(id), number(-100, 100)(`${name}.${id}`, bias)];
  });
};

/** Fields that change the probabilities of tokens. */
const ADJUST = {
  presence_penalty: use(number(-2, 2)),
  frequency_penalty: use(number(-2, 2)),
  repetition_penalty: use(number(0.01, 100)),
  min_p: use(number(0, 1)),
  logit_bias: use(biases),
};

/** Fields that are passed to the engine. */
const GENERATE = {
  max_tokens: use(integer(1)),
  temperature: use(number(0, 100)),
  top_k: use(integer(0)),
  top_p: use(topP),
  seed: use(integer(0, Number.MAX_SAFE_INTEGER)),
  stop: use(stop),
  ignore_eos: use(boolean),
  fetch_interval: use(integer(1, 64)),
  draft_max: use(integer(0)),
  overflow: use(oneOf(["error", "stop", "shift"])),
  keep: use(integer(0)),
};

/** Largest number of alternatives that the engine reports for each token. */
const MOST_LOGPROBS = 20;

/** Checks the number of alternatives to report for each token. False is the same as leaving it out. @type {Check} */
const logprobs = (name, value) => (value === false ? undefined : integer(0, MOST_LOGPROBS)(name, value));

/** Largest number of answers, as in OpenAI's API. */
const MOST_ANSWERS = 128;

/** Fields of both kinds of requests. */
const COMMON = {
  ...GENERATE,
  ...ADJUST,
  stream: use(boolean),
  signal: use(signal),
  model: use(string),
  stream_options: use(fields({ include_usage: use(boolean), include_obfuscation: ignored })),
  n: use(integer(1, MOST_ANSWERS)),
  user: ignored,
};

/** Fields of a chat request. */
export const CHAT = {
  ...COMMON,
  messages: use(messages),
  max_completion_tokens: GENERATE.max_tokens,
  logprobs: use(boolean),
  top_logprobs: use(integer(0, MOST_LOGPROBS)),
  tools: use(listOf(whole(TOOL, ["type", "function"]), "tools")),
  tool_choice: use((name, value) => (typeof value === "string" ? oneOf(["none", "auto", "required"]) : named)(name, value)),
  parallel_tool_calls: use(boolean),
  functions: only([[]], RENAMED),
  function_call: only(["none", "auto"], RENAMED),
  response_format: use(responseFormat),
  modalities: only([["text"]], "answers are text"),
  audio: only([], "answers are text; leave it out"),
  reasoning_effort: use(string),
  chat_template_kwargs: use(variables),
  verbosity: only(["medium"], "the model decides; ask for it in the messages"),
  web_search_options: only([], "nothing is looked up; leave it out"),
  moderation: only([], "nothing is moderated; leave it out"),
  service_tier: only(["auto", "default"], "there is no service; leave it out"),
  store: only([false], "answers are not kept; leave it out"),
  metadata: ignored,
  prediction: ignored,
  prompt_cache_key: ignored,
  prompt_cache_options: ignored,
  prompt_cache_retention: ignored,
  safety_identifier: ignored,
};

/** Fields of a request to continue a text. */
export const TEXT = {
  ...COMMON,
  prompt: use(prompt),
  max_completion_tokens: GENERATE.max_tokens,
  best_of: only([1], "answers are not compared; ask for several with n"),
  echo: only([false], "answers do not repeat the prompt; put it before them"),
  logprobs: use(logprobs),
  suffix: only([""], "nothing is filled in; leave it out"),
};

/** Fields of a request for embeddings. */
export const EMBEDDING = {
  input: use(input),
  model: use(string),
  encoding_format: use(oneOf(["float", "base64"])),
  dimensions: use(integer(1)),
  normalize: use(boolean),
  signal: use(signal),
  user: ignored,
};

/** Longest name of a session, in UTF-16 code units. */
const LONGEST_NAME = 64;

/**
 * Checks the name of a session.
 *
 * @param {string} name
 * @param {unknown} value
 * @returns {string}
 */
export const sessionName = (name, value) =>
  typeof value === "string" && value !== "" && value.length <= LONGEST_NAME
    ? value
    : refuse(name, `a name of 1 to ${LONGEST_NAME} characters`, value);

/** Options beside a request. Most options of OpenAI's client have no effect, since there is no network. */
const WITH = {
  signal: use(signal),
  session: use(sessionName),
  timeout: only([], "pass signal: AbortSignal.timeout(ms)"),
  headers: ignored,
  query: ignored,
  maxRetries: ignored,
  idempotencyKey: ignored,
};

const [chatFields, textFields, embeddingFields, withFields] = [CHAT, TEXT, EMBEDDING, WITH].map(fields);

/** @typedef {{ messages: Turn[] } | { text: string } | { tokens: Uint32Array }} Prompt */

/**
 * @typedef {object} Request
 * @property {Prompt} prompt
 * @property {Record<string, unknown>} generate Options for the engine.
 * @property {number} n Number of answers.
 * @property {boolean} stream
 * @property {boolean} usage Whether a stream ends with a chunk that only has the usage.
 * @property {AbortSignal[]} signals Signals, each of which aborts the request.
 * @property {string} [session] Name of its session.
 * @property {string} [model]
 * @property {unknown} [wanted] Format of the answer, if not text.
 * @property {{ name?: string }} [demanded] Set if the answer must call functions, or the function of this name.
 */

/**
 * @typedef {object} EmbeddingRequest
 * @property {Prompt[]} prompts
 * @property {{ dimensions?: number, normalize?: boolean }} embed Options for the engine.
 * @property {boolean} base64
 * @property {AbortSignal[]} signals Signals, each of which aborts the request.
 * @property {string} [model]
 */

/**
 * @param {unknown} value
 * @param {unknown} [options] Options beside the request.
 * @returns {Request}
 */
export function chatRequest(value, options) {
  const request = chatFields("request", value);
  const { messages, logprobs, top_logprobs = 0 } = request;
  if (messages === undefined) refuse("messages", "an array with at least one message", undefined);
  if (logprobs !== true && top_logprobs > 0) refuse("top_logprobs", "left out unless logprobs is true", top_logprobs);
  const split = splitRequest({ messages }, { ...request, logprobs: logprobs === true ? top_logprobs : undefined }, options);
  split.generate.chat = conversation(request);
  return { ...split, wanted: request.response_format, demanded: demanded(request) };
}

/** Returns the call that `tool_choice` demands, if any. @param {Record<string, any>} request */
function demanded({ tools = [], tool_choice, response_format }) {
  if (tool_choice === undefined || tool_choice === "auto" || tool_choice === "none") return undefined;
  const name = tool_choice.function?.name;
  const there = tools.some((/** @type {any} */ tool) => name === undefined || tool.function.name === name);
  if (!there) refuse("tool_choice", "auto or none, or one of the tools", tool_choice);
  if (response_format !== undefined) refuse("response_format", "left out where a call is demanded", response_format);
  return { name };
}

/**
 * Returns the engine's options for tools.
 *
 * @param {unknown[]} tools @param {unknown} choice @param {boolean | undefined} parallel
 */
function called(tools, choice, parallel) {
  return {
    tools,
    ...(parallel === undefined ? {} : { one_call: !parallel }),
    ...(choice === undefined || choice === "auto" ? {} : { demanded: true }),
  };
}

/** Returns the options of a conversation besides its messages. @param {Record<string, any>} request */
function conversation({ tools = [], tool_choice, parallel_tool_calls, chat_template_kwargs, reasoning_effort }) {
  const variables = { ...chat_template_kwargs, ...(reasoning_effort === undefined ? {} : { reasoning_effort }) };
  return {
    ...(tools.length > 0 && tool_choice !== "none" ? called(tools, tool_choice, parallel_tool_calls) : {}),
    ...(Object.keys(variables).length > 0 ? { variables } : {}),
  };
}

/**
 * @param {unknown} value
 * @param {unknown} [options] Options beside the request.
 * @returns {Request}
 */
export function completionRequest(value, options) {
  const request = textFields("request", value);
  const { prompt = /** @type {any} */ (value).prompt === null ? { text: "" } : null } = request;
  if (prompt === null) refuse("prompt", "a string or an array of token ids", undefined);
  return splitRequest(prompt, request, options);
}

/**
 * @param {unknown} value
 * @param {unknown} [options] Options beside the request.
 * @returns {EmbeddingRequest}
 */
export function embeddingRequest(value, options) {
  const request = embeddingFields("request", value);
  if (request.input === undefined) refuse("input", "a string, an array of token ids, or an array of either", undefined);
  const { input: prompts, dimensions, normalize, encoding_format, model } = request;
  const base64 = encoding_format === "base64";
  return { prompts, embed: { dimensions, normalize }, base64, signals: signalsOf(request, options), model };
}

/**
 * Returns the request to continue the answer of a session.
 *
 * @param {unknown} name
 * @param {unknown} [options] Options beside the request.
 * @returns {Request & { session: string }}
 */
export function resumeRequest(name, options) {
  const session = sessionName("session", name);
  if (withFields("options", options ?? {}).session !== undefined) refuse("session", "given once", session);
  return { prompt: { text: "" }, generate: {}, n: 1, stream: true, usage: false, signals: signalsOf({}, options), session };
}

/**
 * Returns the signals of a request and of its options.
 *
 * @param {Record<string, any>} request
 * @param {unknown} options
 * @returns {AbortSignal[]}
 */
const signalsOf = (request, options) =>
  [request.signal, withFields("options", options ?? {}).signal].filter((given) => given !== undefined);

/**
 * Whether the value of a field that adjusts probabilities has an effect. Without any, decode steps stay as short as
 * they are.
 */
const asks = (/** @type {string} */ key, /** @type {any} */ value) =>
  value !== undefined && value !== (key === "repetition_penalty" ? 1 : 0) && value.length !== 0;

/**
 * @param {Prompt} prompt
 * @param {Record<string, any>} request
 * @param {unknown} options
 * @returns {Request}
 */
function splitRequest(prompt, request, options) {
  const generate = Object.fromEntries(Object.keys(GENERATE).map((key) => [key, request[key]]));
  generate.max_tokens = generate.max_tokens ?? request.max_completion_tokens;
  const adjust = Object.keys(ADJUST).filter((key) => asks(key, request[key]));
  if (adjust.length > 0) generate.adjust = Object.fromEntries(adjust.map((key) => [key, request[key]]));
  if (request.logprobs !== undefined) generate.log_probs = request.logprobs;
  const { stream = false, stream_options, n = 1, model } = request;
  const usage = stream && stream_options?.include_usage === true;
  const { session } = withFields("options", options ?? {});
  return { prompt, generate, n, stream, usage, signals: signalsOf(request, options), session, model };
}
