/** Entry of a worker that computes digests. Each message has bytes, which are returned with their digest. */

import { writeFile } from "./opfs/opfs-files.js";
import { sha256 } from "./common/sha256.js";

/** @import { Digested, Place } from "./part-digests.js" */

const port = /** @type {{ postMessage(said: Digested | null, transfer?: ArrayBuffer[]): void }} */ (/** @type {unknown} */ (self));

/** @param {{ bytes: Uint8Array<ArrayBuffer>, place: Place | null }} asked */
async function answer({ bytes, place }) {
  const digest = await sha256(bytes);
  // On failure the caller writes again itself, and gets the error there.
  const written = place !== null && (await writeFile(place.folder, place.name, bytes).then(() => true, () => false));
  port.postMessage({ digest, bytes, written }, [bytes.buffer]);
}

/** Promise of the last answer; answers come in the order of messages. */
let last = Promise.resolve();

self.onmessage = ({ data }) => {
  last = last.then(() => answer(data));
  // An error outside the promise reaches the worker's `onerror`.
  last.catch((error) => setTimeout(() => fail(error)));
};

/** @param {unknown} error */
function fail(error) {
  throw error;
}

port.postMessage(null);
