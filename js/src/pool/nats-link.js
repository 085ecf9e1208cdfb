/** The connection of a worker to its pool's server: subjects and bytes. */

import { wsconnect } from "../../vendor/nats.js";
import { NetworkError } from "../common/errors.js";
import { PoolError } from "../pool-error.js";

/** @import { NatsConnection } from "../../vendor/nats.js" */

/** How long the server may take to answer at first, in milliseconds. */
const PATIENCE = 10_000;
/** Pause between two attempts to connect again, in milliseconds. */
const AGAIN = 100;
/** Number of round trips that are measured; the fastest counts. */
const ECHOES = 5;
/** Size of messages that the server must allow, in bytes. */
const MESSAGE = 8 << 20;

/** @typedef {(subject: string, data: Uint8Array, reply: string | undefined) => void} OnMessage */

/**
 * @typedef {object} Link A part of what is below, for doubles.
 * @property {() => string} name
 * @property {(subject: string, payload: Uint8Array) => void} publish
 * @property {(subject: string, payload: Uint8Array, patience: number) => Promise<Uint8Array | null>} request
 * @property {(subject: string, onMessage: OnMessage) => { unsubscribe(): void }} subscribe
 * @property {() => Promise<number>} hop
 * @property {(onChange: (isThere: boolean) => void) => Promise<void>} watch
 * @property {() => Promise<void>} close
 */

/**
 * Connects to the server. A broken connection is made again, however long that takes.
 *
 * @param {string} address Address of the server, such as `wss://example.org`, with a name and a password if the server asks for them.
 * @param {string} secret Secret that the worker's name is derived from; the server asks the coordinator whether the two match.
 * @param {string} worker Name of the worker.
 * @returns {Promise<Link>}
 */
export async function link(address, secret, worker) {
  const url = new URL(address);
  const { username, password } = url;
  // Addresses appear in messages; secrets must not.
  url.username = url.password = "";
  const login = username === "" ? {} : { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
  // While a coordinator is away, nobody may log in for a while.
  const again = { maxReconnectAttempts: -1, reconnectTimeWait: AGAIN, ignoreAuthErrorAbort: true };
  const who = { name: `anygpu page ${secret}`, inboxPrefix: `_INBOX.${worker}` };
  let connection;
  try {
    connection = await wsconnect({ servers: url.href, timeout: PATIENCE, ...who, ...again, ...login });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : cause;
    throw new NetworkError(`the pool's server at ${url.href} cannot be reached (${why}); make sure that it runs`, { url: url.href, cause });
  }
  const lets = connection.info?.max_payload ?? 0;
  if (lets >= MESSAGE) return linked(connection);
  await connection.close();
  throw new PoolError(`the pool's server lets messages of ${lets} bytes through, and a pool needs ${MESSAGE}; raise its max_payload`);
}

/** @param {NatsConnection} nats @returns {Link} */
function linked(nats) {
  return {
    // Name of the connection, as the server reports it when it was closed.
    name: () => (nats.info === undefined ? "" : `${nats.info.server_id}/${nats.info.client_id}`),
    publish: (subject, payload) => nats.publish(subject, payload),
    request: (subject, payload, timeout) => nats.request(subject, payload, { timeout }).then(({ data }) => data, silent),
    subscribe: (subject, onMessage) =>
      nats.subscribe(subject, {
        callback: (error, message) => {
          // The client reuses its memory.
          if (error === null) onMessage(message.subject, message.data.slice(), message.reply || undefined);
        },
      }),
    hop: () => hop(nats),
    watch: (onChange) => watch(nats, onChange),
    close: async () => {
      await nats.flush().catch(() => {});
      await nats.close();
    },
  };
}

/**
 * Measures the round-trip time to the server in milliseconds, the fastest of several. The client's own clock only has
 * whole ones.
 *
 * @param {NatsConnection} nats
 */
async function hop(nats) {
  let best = Infinity;
  for (let echo = 0; echo < ECHOES; echo += 1) {
    const begin = performance.now();
    await nats.flush();
    best = Math.min(best, performance.now() - begin);
  }
  return best;
}

/** Names of errors that mean that nobody answers. */
const SILENCE = ["NoRespondersError", "TimeoutError", "RequestError"];

/** @param {unknown} error @returns {null} */
function silent(error) {
  if (error instanceof Error && SILENCE.includes(error.name)) return null;
  throw error;
}

/**
 * Reports breaks until the connection ends for good. It may report the same break several times.
 *
 * @param {NatsConnection} nats
 * @param {(isThere: boolean) => void} onChange
 */
async function watch(nats, onChange) {
  for await (const { type } of nats.status()) {
    if (type === "reconnect") onChange(true);
    if (type === "disconnect") onChange(false);
  }
  const error = await nats.closed();
  if (error instanceof Error) throw new NetworkError(`the connection to the pool's server has ended (${error.message}); join again`, { cause: error });
}
