/** Formats token probabilities for both APIs. */

/** @import { ChatLogprobs, TextLogprobs, TokenLogprob, TopLogprob } from "../../index.d.ts" */

/** @returns {(tokens: TokenLogprob[]) => ChatLogprobs} */
export const chatLogprobs = () => (tokens) => ({ content: tokens, refusal: null });

/**
 * Formats the probabilities of one answer; its tokens come one after the other.
 *
 * @returns {(tokens: TokenLogprob[]) => TextLogprobs}
 */
export function textLogprobs() {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let length = 0;
  const begin = (/** @type {TokenLogprob} */ { bytes }) => {
    const before = length;
    length += decoder.decode(Uint8Array.from(bytes), { stream: true }).length;
    return before;
  };
  return (tokens) => ({
    tokens: tokens.map(named),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map((chosen) => {
      const all = [...chosen.top_logprobs, chosen];
      return Object.fromEntries(all.map((one) => [named(one), one.logprob]));
    }),
    text_offset: tokens.map(begin),
  });
}

/**
 * Returns a token's text, or its bytes if they are not whole characters, since many tokens would have the same text.
 */
function named(/** @type {TopLogprob} */ { token, bytes }) {
  if (!token.includes("\uFFFD")) return token;
  return `bytes:${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
}
