/** The parts of a conversation's answer in the shapes of OpenAI's API: what is said, what is thought, and what is called. */

/** @import { AssistantMessage, ChatDelta, ChatFinishReason, FinishReason, ToolCall, ToolCallDelta } from "../index.d.ts" */

/** @typedef {{ said: string } | { thought: string } | { call: { name: string, arguments: string } } | { arguments: string }} Part As the engine tells it. */

const LETTERS = "abcdefghijkmnopqrstuvwxyz2345679";

/** What tells a call from others. Mistral's templates take nine letters and digits, and others anything. */
const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(9)), (byte) => LETTERS[byte % LETTERS.length]).join("");

/** Collects the parts of one answer. */
export class Parts {
  _said = "";
  _thought = "";
  /** @type {ToolCall[]} */
  _calls = [];

  /**
   * Takes a piece, and gives what it adds. Of an answer that is gone on with, whose template's options are not known any
   * more, all is said.
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
   * Calls of a delta with another one, or with more arguments of the last one.
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

  /** All of them. @returns {AssistantMessage} */
  message() {
    const calls = this._calls;
    // Who only calls says nothing.
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
   * What ended the answer.
   *
   * @param {FinishReason} reason
   * @returns {ChatFinishReason}
   */
  finish(reason) {
    return reason === "stop" && this._calls.length > 0 ? "tool_calls" : reason;
  }
}
