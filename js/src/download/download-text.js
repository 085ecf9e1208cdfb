/** Downloads of short texts. */

import { FileError } from "../common/errors.js";
import { RemoteStream } from "./remote-stream.js";

/** @import { RemoteFile } from "./remote-file.js" */

/**
 * @param {RemoteFile} remote
 * @param {number} longest In bytes.
 * @param {string} what Name of what the text should be, for the error.
 */
export async function downloadText(remote, longest, what) {
  const stream = await RemoteStream.open(remote);
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;
  try {
    for (let bytes = await stream.next(); bytes !== null; bytes = await stream.next()) {
      length += bytes.length;
      if (length > longest) throw new FileError(`${remote.url} is longer than ${what} is; correct it`);
      text += decoder.decode(bytes, { stream: true });
    }
  } finally {
    stream.close();
  }
  return text + decoder.decode();
}
