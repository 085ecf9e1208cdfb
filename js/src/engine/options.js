/** Checks of the options that callers pass. */

import { runtime } from "../common/runtime.js";
import { boolean, callback, integer, object, oneOf, refuse, signal, string } from "../common/validate.js";
import { fileDigests } from "../download/manifest.js";

/** @import { ConformanceOptions, LoadOptions, SelectOptions, TuneOptions } from "../../index.d.ts" */
/** @import { Check } from "../common/validate.js" */

/** @type {Check} */
const sha256 = (name, value) => {
  if (Array.isArray(value)) return value.map((one, index) => sha256(`${name}[${index}]`, one));
  if (typeof value === "string" && /^[0-9a-f]{64}$/i.test(value)) return value.toLowerCase();
  return refuse(name, "64 hexadecimal digits", value);
};

/** @type {Check} */
const digests = (name, value) => {
  if (value === true) return value;
  if (!Array.isArray(value)) return fileDigests(name, value);
  return value.map((one, index) => fileDigests(`${name}[${index}]`, one));
};

/** @type {Check} */
const headers = (name, value) => {
  try {
    // An array of pairs can be sent to a worker.
    return [...new Headers(/** @type {HeadersInit} */ (value))];
  } catch {
    return refuse(name, "headers as fetch takes them", value);
  }
};

/** @type {Check} */
const bytes = (name, value) =>
  value instanceof Blob || value instanceof ArrayBuffer || value instanceof Uint8Array
    ? value
    : refuse(name, "a Blob, an ArrayBuffer or a Uint8Array", value);

/** Checks an address, and makes it absolute. @type {Check} */
const address = (name, value) => {
  try {
    if (typeof value === "string" || value instanceof URL) return runtime.meant(value).href;
  } catch {
    // Refused below.
  }
  return refuse(name, "a URL", value);
};

/** Checks the address of a folder, and makes it absolute. @type {Check} */
const folder = (name, value) => /** @type {string} */ (address(name, value)).replace(/\/?$/, "/");

/** Defaults of sessions: milliseconds, bytes, and a number. */
const SESSIONS = { keep: false, every: 2000, maxBytes: 512 * 2 ** 20, maxCount: 32 };

/** @type {Check} */
const sessions = (name, value) => {
  const [maxBytes, maxCount] = [integer(0, Number.MAX_SAFE_INTEGER), integer(1, 1000)];
  const checks = { maxMemory: integer(0), keep: boolean, every: integer(100), maxBytes, maxCount };
  return { ...SESSIONS, ...object(checks)(name, value) };
};

const SELECT = {
  backend: oneOf(["auto", "gpu", "webgpu", "webgl", "cpu"]),
  worker: boolean,
  threads: integer(1, 64),
  workerUrl: address,
  wasmUrl: folder,
  workerTimeout: integer(1000, 2 ** 31 - 1),
  webgl: object({ layout: oneOf(["packed", "r32f", "bits"]), maxTextureSize: integer(1) }),
  webgpu: object({ maxBinding: integer(1), products: oneOf(["f32", "int8"]) }),
  signal,
};

const LOAD = {
  ...SELECT,
  nCtx: integer(1),
  capacity: integer(1),
  kvCache: oneOf(["f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]),
  maxMemory: integer(1, Number.MAX_SAFE_INTEGER),
  pooling: oneOf(["mean", "cls", "last"]),
  rate: integer(1, Number.MAX_SAFE_INTEGER),
  session: bytes,
  sessions,
  onProgress: callback,
  cache: oneOf([true, false, "require"]),
  maxCacheBytes: integer(0, Number.MAX_SAFE_INTEGER),
  revalidate: boolean,
  sha256,
  digests,
  hub: address,
  headers,
  credentials: oneOf(["omit", "same-origin", "include"]),
  network: object({ retries: integer(0, 1000), stallTimeout: integer(1, 2 ** 31 - 1) }),
};

/**
 * Options that are absolute or in another form once they are checked.
 *
 * @typedef {{ workerUrl?: string, wasmUrl?: string, hub?: string, headers?: [string, string][] }} Checked
 */

/**
 * @param {unknown} value
 * @returns {Omit<SelectOptions, keyof Checked> & Checked}
 */
export const selectOptions = (value) => object(SELECT)("options", value ?? {});

/**
 * @param {unknown} value
 * @returns {Omit<LoadOptions, keyof Checked> & Checked}
 */
export const loadOptions = (value) => object(LOAD)("options", value ?? {});

/**
 * @param {unknown} value
 * @returns {Omit<TuneOptions, keyof Checked> & Checked}
 */
export const tuneOptions = (value) => object({ ...LOAD, onTrial: callback })("options", value ?? {});

/**
 * @param {unknown} value
 * @returns {Omit<ConformanceOptions, keyof Checked> & Checked}
 */
export const conformanceOptions = (value) => {
  const options = object({
    backend: string,
    op: string,
    every: integer(1),
    onCase: callback,
    signal,
    worker: boolean,
    threads: integer(1, 64),
    workerUrl: address,
    wasmUrl: folder,
    expectations: (name, value) => (typeof value === "object" ? value : refuse(name, "an object", value)),
  })("options", value ?? {});
  if (options.backend === undefined) refuse("backend", "a backend of the suite, such as webgpu, webgl or cpu", undefined);
  return /** @type {any} */ (options);
};
