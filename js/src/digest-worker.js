/** The entry of a worker that computes digests: each message is bytes, which go back with theirs. */

import { writeFile } from "./opfs.js";
import { sha256 } from "./sha256.js";

/** @import { Digested, Place } from "./digests.js" */

const port = /** @type {{ postMessage(said: Digested | null, transfer?: ArrayBuffer[]): void }} */ (/** @type {unknown} */ (self));

/** @param {{ bytes: Uint8Array<ArrayBuffer>, place: Place | null }} asked */
async function answer({ bytes, place }) {
  const digest = await sha256(bytes);
  // Whoever asked tries again, and learns why it fails.
  const written = place !== null && (await writeFile(place.folder, place.name, bytes).then(() => true, () => false));
  port.postMessage({ digest, bytes, written }, [bytes.buffer]);
}

/** Answers come in the order of messages. */
let last = Promise.resolve();

self.onmessage = ({ data }) => {
  last = last.then(() => answer(data));
  // As an error of the worker it is heard.
  last.catch((error) => setTimeout(() => fail(error)));
};

/** @param {unknown} error */
function fail(error) {
  throw error;
}

port.postMessage(null);
