/** Local files in Node.js, Deno and Bun, on the calling thread and in the worker. */

import { open, readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { FileError } from "./common/errors.js";
import { runtime } from "./common/runtime.js";

/** @import { FileLike } from "./common/runtime.js" */

/** Whether a text is a URL. A scheme of one letter is a drive. */
const isAddress = (/** @type {string} */ text) => /^[a-z][a-z0-9+.-]+:/i.test(text);

Object.assign(runtime, {
  meant: (/** @type {string | URL} */ source) =>
    typeof source === "string" && !isAddress(source) ? pathToFileURL(resolve(source)) : new URL(source),
  openFile,
  readFile: (/** @type {URL} */ url) => readFile(url),
  hub: globalThis.process?.env.HF_ENDPOINT || null,
});

/**
 * Opens a local file. It is opened again for each read, so that it need not be closed.
 *
 * @param {URL} url
 * @returns {Promise<FileLike>}
 */
async function openFile(url) {
  /** @type {import("node:fs").Stats} */
  let before;
  try {
    before = await stat(url);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : cause;
    throw new FileError(`cannot open ${url.pathname} (${why}); check the path`, { cause });
  }
  if (!before.isFile()) throw new FileError(`${url.pathname} is not a file; give the path of a GGUF file`);
  const read = async (/** @type {number} */ from, /** @type {number} */ to) => {
    const file = await open(url);
    try {
      const { size, mtimeMs } = await file.stat();
      if (size !== before.size || mtimeMs !== before.mtimeMs) throw new Error("it was changed");
      const bytes = new Uint8Array(Math.min(to, size) - from);
      // One call may read less than it was asked for.
      for (let done = 0; done < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, done, bytes.length - done, from + done);
        if (bytesRead === 0) throw new Error("it ends early");
        done += bytesRead;
      }
      return bytes.buffer;
    } finally {
      await file.close();
    }
  };
  return { size: before.size, slice: (from, to) => ({ arrayBuffer: () => read(from, to) }) };
}
