/** Snapshots as the engine makes them; their states are the tokens themselves. */

import { createHash } from "node:crypto";

/** @typedef {{ tokens: number[], prompt: number, generate: object, finish: string | null }} Text */

const PREFIX = 16;
const SEAL = 32;

const seal = (/** @type {Uint8Array} */ bytes) => createHash("sha256").update(bytes).digest();

/**
 * @param {Text} text
 * @param {number} from
 * @returns {Uint8Array}
 */
export function record({ tokens, prompt, generate, finish }, from) {
  const request = { prompt, generate, finish };
  const header = Buffer.from(JSON.stringify({ from, position: tokens.length, tokens: tokens.length, request }));
  const body = Buffer.from(Uint32Array.from(tokens.slice(from)).buffer);
  const prefix = Buffer.alloc(PREFIX);
  prefix.write("AGS1");
  prefix.writeUInt32LE(header.length, 4);
  prefix.writeUInt32LE(body.length, 8);
  const bytes = Buffer.concat([prefix, header, body]);
  return new Uint8Array(Buffer.concat([bytes, seal(bytes)]));
}

/**
 * Returns the text of a log of records.
 *
 * @param {Uint8Array} bytes
 * @returns {Text}
 */
export function textOf(bytes) {
  /** @type {Text | null} */
  let text = null;
  for (let rest = Buffer.from(bytes); rest.length > 0; ) {
    const [header, body] = [rest.readUInt32LE(4), rest.readUInt32LE(8)];
    const end = PREFIX + header + body;
    const { from, request } = JSON.parse(rest.subarray(PREFIX, PREFIX + header).toString());
    const known = /** @type {Text | null} */ (text)?.tokens ?? [];
    if (!seal(rest.subarray(0, end)).equals(rest.subarray(end, end + SEAL)) || from > known.length) {
      throw Object.assign(new Error("this is not a saved session; save it again"), { code: "options" });
    }
    const fresh = new Uint32Array(new Uint8Array(rest.subarray(end - body, end)).buffer);
    text = { ...request, tokens: [...known.slice(0, from), ...fresh] };
    rest = rest.subarray(end + SEAL);
  }
  if (text === null) throw Object.assign(new Error("this is no saved session; save it again"), { code: "options" });
  return text;
}
