/** The parts of a conversation's answer in the shapes of OpenAI's API: what is said, what is thought, and what is called. */

/** @import { AssistantMessage, ChatDelta, ChatFinishReason, FinishReason, ToolCall } from "../index.d.ts" */

/** @typedef {{ said: string } | { thought: string } | { call: { name: string, arguments: string } }} Part As the engine tells it. */

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
      else {
        /** @type {ToolCall} */
        const call = { id: newId(), type: "function", function: part.call };
        delta.tool_calls = [...(delta.tool_calls ?? []), { index: this._calls.length, ...call }];
        this._calls.push(call);
      }
    }
    this._said += delta.content ?? "";
    this._thought += delta.reasoning_content ?? "";
    return delta;
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
