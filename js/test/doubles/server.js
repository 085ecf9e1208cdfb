/** A server of one file or several, which can misbehave. */

import http from "node:http";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";

/**
 * @typedef {object} Behaviour
 * @property {number} [cutAfter] Bytes of each response after which the connection is cut.
 * @property {number} [stallAfter] Bytes of the first `stalls` responses after which nothing comes.
 * @property {number} [stalls]
 * @property {boolean} [ignoreRange]
 * @property {boolean} [noLength]
 * @property {number[]} [statuses] Statuses of the first responses.
 * @property {(request: number) => string | undefined} [etag]
 * @property {keyof typeof PARTS} [part] Way to answer a request for a range.
 * @property {boolean} [always206]
 * @property {boolean} [gzip]
 * @property {string} [type] Content type of responses.
 * @property {number} [trickle] Bytes of each write, with a pause after it.
 * @property {Uint8Array[]} [bodies] Versions of the file for the first responses.
 * @property {Record<string, Uint8Array>} [files] Files by path, instead of the one file; other paths are missing.
 */

/**
 * Ways to answer a request for a range: where its bytes begin and end, and what its header says; without `says` it has
 * none. Lengths are right.
 *
 * @type {Record<string, (from: number, size: number) => { at: number, to: number, says?: number }>}
 */
const PARTS = {
  right: (from, size) => ({ at: from, to: size, says: from }),
  hidden: (from, size) => ({ at: from, to: size }),
  whole: (from, size) => ({ at: 0, to: size }),
  shifted: (from, size) => ({ at: from - 1000, to: size - 1000 }),
  lying: (from, size) => ({ at: from - 1000, to: size - 1000, says: from }),
  longer: (from, size) => ({ at: from - 1000, to: size, says: from }),
  shorter: (from, size) => ({ at: from, to: Math.min(from + 300_000, size) }),
  ahead: (from, size) => ({ at: from + 1000, to: size, says: from + 1000 }),
};

/**
 * @param {Uint8Array} file
 * @param {Behaviour} [behaviour] May be changed while the server runs.
 */
export async function serveFile(file, behaviour = {}) {
  /** @type {{ path: string, range: string | undefined, headers: http.IncomingHttpHeaders }[]} */
  const requests = [];
  const server = http.createServer(async (request, response) => {
    const { headers, url: path = "" } = request;
    const { range } = headers;
    requests.push({ path, range, headers });
    const here = behaviour.files === undefined ? (behaviour.bodies?.shift() ?? file) : behaviour.files[path];
    if (here === undefined) return response.writeHead(404).end("no");
    const status = behaviour.statuses?.shift();
    if (status !== undefined && status !== 200) return response.writeHead(status).end("no");
    const from = behaviour.ignoreRange ? 0 : Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
    const partial = behaviour.always206 || (range !== undefined && !behaviour.ignoreRange);
    const { at: start, to, says } = PARTS[range && partial ? (behaviour.part ?? "right") : "whole"](from, here.length);
    const part = here.subarray(start, to);
    const body = behaviour.gzip ? gzipSync(part) : part;
    const etag = behaviour.etag ? behaviour.etag(requests.length) : '"v1"';
    response.writeHead(partial ? 206 : 200, {
      ...(etag === undefined ? {} : { ETag: etag }),
      ...(behaviour.type === undefined ? {} : { "Content-Type": behaviour.type }),
      ...(behaviour.noLength ? {} : { "Content-Length": body.length }),
      ...(behaviour.gzip ? { "Content-Encoding": "gzip" } : {}),
      ...(says === undefined ? {} : { "Content-Range": `bytes ${says}-${here.length - 1}/${here.length}` }),
    });
    response.flushHeaders();
    const { cutAfter = Infinity, trickle = body.length } = behaviour;
    const stallAfter = (behaviour.stalls ?? 0) > 0 ? behaviour.stallAfter : undefined;
    if (stallAfter !== undefined) behaviour.stalls = (behaviour.stalls ?? 0) - 1;
    const end = Math.min(body.length, cutAfter, stallAfter ?? Infinity);
    for (let at = 0; at < end; at += trickle) {
      response.write(body.subarray(at, Math.min(at + trickle, end)));
      if (trickle < body.length) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    if (stallAfter !== undefined && end < body.length) return;
    // The written bytes should arrive before the cut.
    if (end < body.length) setTimeout(() => response.destroy(), 100);
    else response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}/model.gguf`,
    behaviour,
    requests,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/**
 * Serves a file of any size whose bytes are computed as they are sent.
 *
 * @param {number} size
 * @param {(offset: number) => number} byteAt
 */
export async function serveMade(size, byteAt) {
  /** @type {(string | undefined)[]} */
  const ranges = [];
  const server = http.createServer((request, response) => {
    const { range } = request.headers;
    ranges.push(range);
    const from = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
    const partial = range === undefined ? {} : { "Content-Range": `bytes ${from}-${size - 1}/${size}` };
    response.writeHead(range === undefined ? 200 : 206, { "Content-Length": size - from, ...partial });
    const pieces = function* () {
      const PIECE = 1 << 16;
      for (let at = from; at < size; at += PIECE) {
        const bytes = new Uint8Array(Math.min(PIECE, size - at));
        for (let i = 0; i < bytes.length; i += 1) bytes[i] = byteAt(at + i);
        yield bytes;
      }
    };
    Readable.from(pieces()).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}/model.gguf`, ranges, close };
}

/** Returns bytes that differ from their neighbours, so that misplaced ones are noticed. */
export function someBytes(/** @type {number} */ length) {
  return Uint8Array.from({ length }, (_, i) => (i * 2654435761) >>> 24);
}
