/** Doubles of a pool for a page's member: the wasm module, the broker, and the coordinator's files. */

import http from "node:http";
import { Client } from "../../src/workers/client.js";
import { PoolCore } from "../../src/pool/pool-core.js";
import { serve } from "../../src/workers/serve.js";
import { WasmCancel } from "./bindings.js";
import { MODULE } from "./engine.js";

const NOWHERE = new URL(`data:application/wasm;base64,${Buffer.from(MODULE).toString("base64")}`);

export const text = (/** @type {string} */ text) => new TextEncoder().encode(text);
const words = (/** @type {Uint8Array} */ bytes) => new TextDecoder().decode(bytes);

/** Handles a message like the module's worker. @typedef {(subject: string, payload: string, send: (subject: string, bytes: Uint8Array) => void) => Promise<string | undefined>} Deliver */

/** Returns the module, whose messages are text. @param {Deliver} deliver */
function bindings(deliver) {
  let hasJoined = false;
  const member = {
    computes: () => JSON.stringify({ backend: "cpu", adapter: "a double", software: false }),
    hello: (/** @type {string} */ worker, /** @type {string} */ connection) => text(`hello ${worker} ${connection}`),
    welcomed: (/** @type {Uint8Array} */ answer) => {
      hasJoined = true;
      return words(answer);
    },
    deliver: async (/** @type {string} */ subject, /** @type {Uint8Array} */ payload, /** @type {any} */ send) => {
      if (!hasJoined) throw new Error("the worker has not joined");
      const answer = await deliver(subject, words(payload), send);
      return answer === undefined ? undefined : text(answer);
    },
    heartbeat: (/** @type {string} */ connection, /** @type {number} */ _, /** @type {boolean} */ visible) => text(`beat ${connection} ${visible}`),
    leaving: () => text("leaving"),
    shown: () => JSON.stringify({ part: null, blockMicros: 0, sessions: 0, steps: 0, refused: null }),
  };
  return { default: async () => {}, WasmCancel, worker_name: (/** @type {string} */ secret) => `w${secret.slice(0, 16)}`, member: async () => member };
}

/** The broker, with one connection. */
export class Broker {
  /** Messages that were published, as `subject: text`. @type {string[]} */
  said = [];
  /** @type {Map<string, import("../../src/pool/nats-link.js").OnMessage>} */
  listeners = new Map();
  connection = "server/1";
  closed = false;
  /** Returns the answer to a hello, as text; null if nobody answers. @type {(hello: string) => string | null} */
  onHello = (hello) => JSON.stringify({ worker: hello.split(" ")[1], heartbeat_millis: 60_000 });
  /** @type {(isThere: boolean) => void} */
  change = () => {};
  /** @type {() => void} */
  _end = () => {};

  /** @returns {import("../../src/pool/nats-link.js").Link} */
  link() {
    return {
      name: () => this.connection,
      publish: (subject, payload) => void this.said.push(`${subject}: ${words(payload)}`),
      request: async (subject, payload) => {
        this.said.push(`${subject}: ${words(payload)}`);
        const answer = this.onHello(words(payload));
        return answer === null ? null : text(answer);
      },
      subscribe: (subject, onMessage) => {
        this.said.push(`listens to ${subject}`);
        this.listeners.set(subject, onMessage);
        return { unsubscribe: () => void this.listeners.delete(subject) };
      },
      hop: async () => 0.25,
      watch: (onChange) => {
        this.change = onChange;
        return new Promise((resolve) => (this._end = resolve));
      },
      close: async () => {
        this.closed = true;
        this._end();
      },
    };
  }

  /** Sends a message to the worker. @param {string} what The end of its subject. @param {string} payload @param {string} [reply] */
  send(what, payload, reply) {
    for (const [subject, onMessage] of this.listeners) onMessage(subject.replace(">", what), text(payload), reply);
  }
}

/** Contents of a coordinator's server by path: a text, bytes, or a handler of requests. @typedef {Record<string, string | Uint8Array | http.RequestListener>} Files */

/** @param {Files} files May be changed while it runs. */
export async function coordinator(files) {
  const server = http.createServer((request, response) => {
    const file = files[request.url ?? ""];
    if (file === undefined) return void response.writeHead(404).end();
    if (typeof file === "function") return file(request, response);
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const part = last === undefined ? file : file.slice(Number(first), Number(last) + 1);
    response.writeHead(last === undefined ? 200 : 206).end(part);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, close: () => (server.closeAllConnections(), server.close()) };
}

/** Returns a member that a page would have in a worker. @param {Broker} broker @param {Deliver} [deliver] */
export function member(broker, deliver = async () => undefined) {
  const { port1, port2 } = new MessageChannel();
  const core = new PoolCore(/** @type {any} */ (bindings(deliver)), NOWHERE, async () => broker.link());
  serve(/** @type {any} */ (port1), core);
  const client = new Client(/** @type {any} */ (port2));
  return { client, close: () => (port1.close(), port2.close()) };
}
