/** The record of a stored file, and the names that are derived from a file's address. */

import { sha256 } from "../common/sha256.js";
import { PART } from "./stored-parts.js";

/**
 * @typedef {object} Entry
 * @property {string} key
 * @property {string} id Part of the names of its parts.
 * @property {number} size
 * @property {string[]} parts The SHA-256 of each part that is there.
 * @property {boolean} whole Whether all of it arrived and was found to be right.
 * @property {string | null} etag
 * @property {string | null} lastModified
 * @property {string | null} sha256
 * @property {string | null} manifest The digest of the manifest that it was held to.
 * @property {number} created In milliseconds since 1970, like the next one.
 * @property {number} used
 */

/**
 * @param {any} value
 * @returns {value is Entry}
 */
export function isEntry(value) {
  const texts = ["etag", "lastModified", "sha256", "manifest"];
  return (
    value !== null &&
    typeof value === "object" &&
    typeof value.key === "string" &&
    /^[0-9a-f]{32}$/.test(value.id) &&
    Number.isSafeInteger(value.size) &&
    value.size >= 0 &&
    typeof value.whole === "boolean" &&
    Array.isArray(value.parts) &&
    value.parts.every((/** @type {unknown} */ one) => typeof one === "string") &&
    fits(value) &&
    texts.every((name) => value[name] === null || typeof value[name] === "string") &&
    Number.isFinite(value.created) &&
    Number.isFinite(value.used)
  );
}

/** Whether an entry has a possible number of parts. @param {Entry} entry */
function fits({ size, parts, whole }) {
  const all = Math.ceil(size / PART);
  return whole ? parts.length === all : parts.length <= all;
}

/** Returns how many bytes of a file are stored. @param {Entry} entry */
export function storedOf({ size, parts }) {
  return Math.min(parts.length * PART, size);
}

/** Returns the key of a URL: the URL without credentials and fragment. @param {string | URL} url Absolute. */
export function keyOf(url) {
  const key = new URL(url);
  key.username = "";
  key.password = "";
  key.hash = "";
  return key.href;
}

/** Returns the name of a key in the names of files and locks. @param {string} key */
export async function nameOf(key) {
  return (await sha256(new TextEncoder().encode(key))).slice(0, 32);
}
