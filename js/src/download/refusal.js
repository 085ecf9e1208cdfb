/** Explains why a server does not provide a file. */

import { within } from "../common/timeout.js";

/** How long a server may take to show that it is reachable. In milliseconds. */
const LIMIT = 5_000;

/**
 * @param {number} status
 * @param {string} url
 */
export function refusal(status, url) {
  const answered = `the server answered ${status} for ${url}`;
  if (status === 401 || status === 403) {
    const token = 'give a token, such as headers: { authorization: "Bearer ..." }';
    return `${answered}: it is not open to everybody, or there is no such file; check the spelling, or ${token}`;
  }
  if (status === 404 || status === 410) return `${answered}: there is no such file; check the spelling`;
  return `${answered}; check the URL and whether it may be read`;
}

/** Whether a response is a web page. @param {Headers} headers */
export function isPage(headers) {
  return /^text\/html\b/i.test(headers.get("Content-Type") ?? "");
}

/** @param {string} url */
export function page(url) {
  return `${url} is a web page, not a model file; give the address of its download button`;
}

/** Whether the device says that it is offline. */
export function isOffline() {
  return globalThis.navigator?.onLine === false;
}

/**
 * Whether a server that seems unreachable is there, but does not let pages of other origins read its responses.
 * Browsers report the same error for both; a request whose response is not read tells them apart.
 *
 * @param {string} url
 */
export async function isBarred(url) {
  const { location } = globalThis;
  if (location === undefined || new URL(url).origin === location.origin) return false;
  try {
    const asked = fetch(url, { method: "HEAD", mode: "no-cors", credentials: "omit", cache: "no-store" });
    return (await within(LIMIT, asked, () => new Error("no answer"))).type === "opaque";
  } catch {
    return false;
  }
}

/** @param {string} url */
export function barred(url) {
  const { origin, host } = new URL(url);
  const why = `${host} does not let pages of other origins read ${url} (CORS)`;
  return `${why}; have it send Access-Control-Allow-Origin, or use another server than ${origin}, or the file itself`;
}
