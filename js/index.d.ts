/**
 * Runs a GGUF language model on any GPU that a browser can use.
 *
 * ```js
 * import { AnyGpu } from "anygpu";
 * const engine = await AnyGpu.load("https://example.org/model.gguf");
 * const messages = [{ role: "user", content: "Tell me a story." }];
 * for await (const part of engine.chat.completions.create({ messages, stream: true })) {
 *   console.log(part.choices[0].delta.content);
 * }
 * ```
 *
 * @packageDocumentation
 */

export * from "./types/engine.js";
export * from "./types/load.js";
export * from "./types/backends.js";
export * from "./types/info.js";
export * from "./types/generation.js";
export * from "./types/chat.js";
export * from "./types/completions.js";
export * from "./types/embeddings.js";
export * from "./types/sessions.js";
export * from "./types/cache.js";
export * from "./types/events.js";
export * from "./types/tune.js";
export * from "./types/conformance.js";
export * from "./types/errors.js";
