/** An engine as a page uses it, with the double of the wasm module. */

import { Client } from "../../src/workers/client.js";
import { Core } from "../../src/engine/engine-core.js";
import { DisposedError } from "../../src/common/errors.js";
import { AnyGpu } from "../../src/index.js";
import { serve } from "../../src/workers/serve.js";
import { Suite } from "../../src/suite/suite-core.js";
import * as bindings from "./bindings.js";
import * as suiteBindings from "./suite.js";

/** The smallest wasm module; doubles do not use its contents. */
export const MODULE = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
const NOWHERE = new URL(`data:application/wasm;base64,${Buffer.from(MODULE).toString("base64")}`);

/**
 * @param {import("../../src/opfs/storage.js").Environment} [environment]
 * @param {object} [module] A copy of its own, since a trap is for ever.
 * @param {Ends} [ends]
 */
export function connection(environment = {}, module = { ...bindings }, ends = {}) {
  return connected(new Core(/** @type {any} */ (module), NOWHERE, environment), ends);
}

/** Returns the conformance suite with the double of its module. */
export function suite() {
  return connected(new Suite(/** @type {any} */ ({ ...suiteBindings }), NOWHERE));
}

/**
 * @typedef {object} Ends Callbacks that get the ports.
 * @property {(port: MessagePort) => void} [page]
 * @property {(port: MessagePort) => void} [engine]
 */

/** Ports that may still be open. @type {MessagePort[]} */
const ports = [];

/** @param {import("../../src/workers/serve.js").Core} core @param {Ends} [ends] */
function connected(core, ends = {}) {
  const { port1, port2 } = new MessageChannel();
  ports.push(/** @type {any} */ (port1));
  ends.engine?.(/** @type {any} */ (port1));
  ends.page?.(/** @type {any} */ (port2));
  serve(/** @type {any} */ (port1), core);
  const client = new Client(port2);
  const close = async (/** @type {Error} */ error = new DisposedError("closed")) => {
    await client.close(error).finally(() => port1.close());
  };
  return { client, thread: /** @type {const} */ ("main"), reason: "a test", close };
}

/** @param {import("../../src/opfs/storage.js").Environment} [environment] @param {object} [sessions] Options of sessions. */
export async function engine(environment, sessions) {
  const link = connection(environment);
  const facts = await link.client.call("load", { what: new Blob(["model"]), options: {}, engine: {}, sessions });
  return new AnyGpu({ connection: link, facts }, null);
}

/** Resets the double, and closes what a failed test left open, which would keep node running. */
export function reset() {
  ports.splice(0).forEach((port) => port.close());
  const { script } = bindings;
  Object.assign(script, { reads: null, loadThrows: null, generateThrows: null, hangs: false, holdsUp: null, rungs: ["cpu"], proven: true, parts: null });
  Object.assign(bindings.seen, { options: [], freed: 0, generations: [], computed: [] });
}
