/** Converts the parts of a chat answer to the format of OpenAI's API: content, reasoning and calls. */

/** @import { AssistantMessage, ChatDelta, ChatFinishReason, FinishReason, ToolCall, ToolCallDelta } from "../../index.d.ts" */

/** @typedef {{ said: string } | { thought: string } | { call: { name: string, arguments: string } } | { arguments: string }} Part A part as the engine reports it. */

const LETTERS = "abcdefghijkmnopqrstuvwxyz2345679";

/** Returns a new id for a call. Mistral's templates require nine letters and digits; others accept anything. */
const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(9)), (byte) => LETTERS[byte % LETTERS.length]).join("");

/** Collects the parts of one answer. */
export class ChatParts {
  _said = "";
  _thought = "";
  /** @type {ToolCall[]} */
  _calls = [];

  /**
   * Adds a piece, and returns the new content. In a resumed answer the template's options are not known any more, so
   * all of it is content.
   *
   * @param {{ text: string, parts?: Part[] }} piece
   */
  add({ text, parts = [{ said: text }] }) {
    /** @type {ChatDelta} */
    const delta = {};
    for (const part of parts) {
      if ("said" in part) delta.content = (delta.content ?? "") + part.said;
      else if ("thought" in part) delta.reasoning_content = (delta.reasoning_content ?? "") + part.thought;
      else delta.tool_calls = this._called(part, delta.tool_calls ?? []);
    }
    this._said += delta.content ?? "";
    this._thought += delta.reasoning_content ?? "";
    return delta;
  }

  /**
   * Adds a call, or more arguments of the last one, to the calls of a delta.
   *
   * @param {{ call: { name: string, arguments: string } } | { arguments: string }} part
   * @param {ToolCallDelta[]} told
   * @returns {ToolCallDelta[]}
   */
  _called(part, told) {
    if ("call" in part) {
      const id = newId();
      this._calls.push({ id, type: "function", function: { ...part.call } });
      return [...told, { index: this._calls.length - 1, id, type: "function", function: part.call }];
    }
    const index = this._calls.length - 1;
    this._calls[index].function.arguments += part.arguments;
    const last = told[told.length - 1];
    if (last === undefined) return [{ index, function: { arguments: part.arguments } }];
    return [...told.slice(0, -1), { ...last, function: { ...last.function, arguments: last.function.arguments + part.arguments } }];
  }

  /** Returns the complete message. @returns {AssistantMessage} */
  message() {
    const calls = this._calls;
    // An answer that only calls functions has no content.
    const content = this._said === "" && calls.length > 0 ? null : this._said;
    return {
      role: "assistant",
      content,
      refusal: null,
      ...(this._thought === "" ? {} : { reasoning_content: this._thought }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
  }

  /**
   * Returns the reason why the answer ended.
   *
   * @param {FinishReason} reason
   * @returns {ChatFinishReason}
   */
  finish(reason) {
    return reason === "stop" && this._calls.length > 0 ? "tool_calls" : reason;
  }
}
