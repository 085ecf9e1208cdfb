/** Downloads a damaged part again, if the server still has the same version of the file. */

import { NetworkError } from "../common/errors.js";
import { sha256 } from "../common/sha256.js";
import { Changed } from "./remote-file.js";
import { RemoteStream } from "./remote-stream.js";

/** @import { Refetch } from "../cache/stored-parts.js" */
/** @import { RemoteFile, Version } from "./remote-file.js" */

/**
 * @param {() => RemoteFile} newRemote
 * @param {Version} version
 * @param {() => Promise<unknown>} drop Removes all that is kept of the file, once it cannot be mended.
 * @returns {Refetch}
 */
export function refetching(newRemote, version, drop) {
  return async (offset, length, digest) => {
    const remote = newRemote();
    remote.expect(version);
    try {
      const bytes = await download(remote, offset, length);
      if ((await sha256(bytes)) !== digest) throw remote.renewed();
      return bytes;
    } catch (cause) {
      if (!(cause instanceof NetworkError)) throw cause;
      if (!(cause instanceof Changed)) throw damaged(remote, `cannot be downloaded again: ${cause.message}`, cause);
      await drop().catch(() => {});
      throw damaged(remote, "the server has another version by now; it was removed, so load the model again", cause);
    }
  };
}

/**
 * @param {RemoteFile} remote
 * @param {number} offset
 * @param {number} length
 */
async function download(remote, offset, length) {
  const stream = new RemoteStream(remote, offset);
  const bytes = new Uint8Array(length);
  try {
    for (let at = 0; at < length; ) {
      const some = await stream.next(length - at);
      if (some === null) throw remote.renewed();
      bytes.set(some, at);
      at += some.length;
    }
    return bytes;
  } finally {
    stream.close();
  }
}

/**
 * @param {RemoteFile} remote
 * @param {string} why
 * @param {InstanceType<typeof NetworkError>} cause
 */
function damaged({ url }, why, cause) {
  const Class = cause instanceof Changed ? Changed : NetworkError;
  return new Class(`what the browser kept of ${url} is damaged, and ${why}`, { url, status: cause.status, cause });
}
