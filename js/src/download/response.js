/** Reads a server's response: what it says about the file and about its own body. */

/** Limit for a file whose size no server has told. In bytes. */
const UNTOLD = 16 * 2 ** 30;
/** Limit for a compressed body, as a multiple of the bytes sent: weights hardly shrink, decompression bombs do. */
const INFLATION = 16;

/**
 * @typedef {object} Answer
 * @property {number} start Position in the file where its body begins.
 * @property {number} end Position in the file where its body ends; infinite if it does not say.
 * @property {number | null} size Size of the file, in bytes; null if the response does not say.
 * @property {number} most Limit for the file's size if it is not known, in bytes.
 */

/**
 * Reads the headers of an answer of status 200 or 206.
 *
 * @param {Response} response
 * @param {number} asked The byte that was asked for; 0 without a range.
 * @param {number | null} known The size of the file, if it is known.
 * @returns {Answer | string} A string says what is wrong with a response that cannot be right.
 */
export function read({ status, headers }, asked, known) {
  const length = contentLength(headers);
  if (status === 200) return { start: 0, end: length ?? Infinity, size: length, most: mostOf(headers) };
  // Servers of other origins may hide this header from scripts. Lengths, and bytes that are asked for again, tell then.
  const range = contentRange(headers.get("Content-Range"));
  if (range === null) {
    if (asked === 0) return "a part of the file though the whole was asked for";
    const end = length === null ? (known ?? Infinity) : asked + length;
    if (known !== null && end > known) return `${length} bytes though there are ${known - asked} from byte ${asked} on`;
    return { start: asked, end, size: null, most: UNTOLD };
  }
  if (range.start > asked) return `byte ${range.start} when asked for byte ${asked}`;
  const end = range.last + 1;
  if (end <= range.start || (range.size !== null && end > range.size)) return "a range that cannot be";
  if (length !== null && length !== end - range.start) return `${length} bytes as a range of ${end - range.start}`;
  return { start: range.start, end, size: range.size, most: UNTOLD };
}

/**
 * @param {string | null} header A header such as `bytes 5-9/10`.
 * @returns {{ start: number, last: number, size: number | null } | null}
 */
function contentRange(header) {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(header ?? "");
  if (match === null) return null;
  return { start: Number(match[1]), last: Number(match[2]), size: match[3] === "*" ? null : Number(match[3]) };
}

/**
 * Returns the size of the body as scripts see it.
 *
 * @param {Headers} headers
 * @returns {number | null}
 */
function contentLength(headers) {
  return isEncoded(headers) ? null : sentLength(headers);
}

/** Returns the limit for a body of unknown length. @param {Headers} headers */
function mostOf(headers) {
  const sent = sentLength(headers);
  return isEncoded(headers) && sent !== null ? Math.min(sent * INFLATION, UNTOLD) : UNTOLD;
}

/** @param {Headers} headers */
function isEncoded(headers) {
  const encoding = headers.get("Content-Encoding");
  return encoding !== null && encoding !== "identity";
}

/**
 * @param {Headers} headers
 * @returns {number | null}
 */
function sentLength(headers) {
  const length = headers.get("Content-Length");
  const size = Number(length);
  return length !== null && Number.isSafeInteger(size) && size >= 0 ? size : null;
}
