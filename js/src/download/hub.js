/** Finds models by their names on a hub: `hf:OWNER/REPO`, optionally with a colon and a quantisation or a file. */

import { cache } from "../cache/model-cache.js";
import { FileError, NetworkError, OptionsError } from "../common/errors.js";
import { runtime } from "../common/runtime.js";
import { PARTS } from "./model-files.js";
import { RemoteFile, networkOf } from "./remote-file.js";
import { downloadText } from "./remote-stream.js";

/** Default hub. */
const HUB = "https://huggingface.co";
/** Quantisations to prefer if none is asked for: small, and nearly as good as the original. */
const PREFERRED = ["Q4_K_M", "Q4_0", "Q8_0"];
/** Limit for a hub's list of files, in bytes. */
const LONGEST = 16 << 20;
/** Number of names that an error shows of a longer list. */
const SHOWN = 20;

/**
 * @typedef {object} HubOptions
 * @property {string} [hub]
 * @property {[string, string][]} [headers]
 * @property {RequestCredentials} [credentials]
 * @property {{ retries?: number, stallTimeout?: number }} [network]
 * @property {AbortSignal} [signal]
 */

/**
 * Returns the address of the file that a source names. Other sources are returned unchanged.
 *
 * @param {string} source Absolute.
 * @param {HubOptions} options
 * @returns {Promise<string>}
 */
export async function located(source, options) {
  const hub = (options.hub ?? runtime.hub ?? HUB).replace(/\/+$/, "");
  if (!source.startsWith("hf:")) return raw(source, hub);
  const [, repo, wanted] = /^hf:([\w.-]+\/[\w.-]+)(?::(.+))?$/.exec(decoded(source)) ?? [];
  if (repo === undefined) {
    throw new OptionsError(`source must be hf:OWNER/REPO, with :QUANT or :FILE behind it, not ${source.slice(0, 200)}`, { field: "source" });
  }
  const base = `${hub}/${repo}/resolve/main/`;
  if (wanted !== undefined && /\.gguf$/i.test(wanted)) return base + encoded(wanted);
  let names;
  try {
    names = await listed(`${hub}/api/models/${repo}`, options);
  } catch (error) {
    names = error instanceof NetworkError && error.status === null ? await namesInCache(base) : [];
    if (names.length === 0) throw error;
  }
  return base + encoded(chosen(names, wanted, repo));
}

/**
 * Returns the address of a file, given the hub's page about it.
 *
 * @param {string} source
 * @param {string} hub
 */
function raw(source, hub) {
  if (!source.startsWith(`${hub}/`)) return source;
  return hub + source.slice(hub.length).replace(/^(\/[^/?#]+\/[^/?#]+)\/blob\//, "$1/resolve/");
}

/** @param {string} source */
function decoded(source) {
  try {
    return decodeURIComponent(source);
  } catch {
    return source;
  }
}

/** @param {string} name */
const encoded = (name) => name.split("/").map(encodeURIComponent).join("/");

/**
 * Lists the files that the hub has of a model.
 *
 * @param {string} address
 * @param {HubOptions} options
 * @returns {Promise<string[]>}
 */
async function listed(address, { signal = new AbortController().signal, ...options }) {
  const text = await downloadText(new RemoteFile(address, networkOf(new URL(address), options, signal)), LONGEST, "a list of files");
  try {
    return JSON.parse(text).siblings.map((/** @type {{ rfilename: unknown }} */ { rfilename }) => String(rfilename));
  } catch (cause) {
    throw new FileError(`${address} did not return a list of files; check the hub's address`, { cause });
  }
}

/**
 * Lists the files of a model that this browser has cached; they are used if there is no network.
 *
 * @param {string} base
 */
async function namesInCache(base) {
  const keys = (await cache.list()).map(({ key }) => key);
  return keys.filter((key) => key.startsWith(base)).map((key) => decoded(key.slice(base.length)));
}

/**
 * Chooses the file of a model to load; for a split model its first part.
 *
 * @param {string[]} names
 * @param {string | undefined} quant
 * @param {string} repo
 * @returns {string}
 */
export function chosen(names, quant, repo) {
  const isFirst = (/** @type {string} */ name) => Number(PARTS.exec(name)?.[1] ?? 1) === 1;
  // A projector (mmproj) belongs to models for pictures.
  const isModel = (/** @type {string} */ name) => /\.gguf$/i.test(name) && !/(^|\/)mmproj[^/]*$/i.test(name);
  const models = names.filter((name) => isModel(name) && isFirst(name)).sort();
  if (models.length === 0) throw new FileError(`${repo} has no GGUF file; choose another model, such as one with GGUF in its name`);
  const asked = quant === undefined ? PREFERRED : [quant];
  const found = asked.map((one) => having(models, one)).find((some) => some.length > 0) ?? (quant === undefined ? models : []);
  if (found.length === 1) return found[0];
  const all = found.length > 1 ? found : models;
  const shown = `${all.slice(0, SHOWN).join(", ")}${all.length > SHOWN ? `, and ${all.length - SHOWN} others` : ""}`;
  const what = found.length > 1 ? "several that may be meant" : `no file with ${quant}`;
  throw new OptionsError(`${repo} has ${what}; name one of these, as in hf:${repo}:${all[0]}: ${shown}`, { field: "source" });
}

/**
 * Returns the names that contain a quantisation, as a separate word if possible: Q4_K is also in Q4_K_M.
 *
 * @param {string[]} names
 * @param {string} quant
 */
function having(names, quant) {
  const wanted = quant.toLowerCase();
  const some = names.filter((name) => name.toLowerCase().includes(wanted));
  const words = some.filter((name) => name.toLowerCase().split(/[^a-z0-9_]/).includes(wanted));
  return words.length > 0 ? words : some;
}
