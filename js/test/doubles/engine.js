/** An engine as the page has it, on the double of the wasm module. */

import { Client } from "../../src/client.js";
import { serve } from "../../src/core.js";
import { DisposedError } from "../../src/errors.js";
import { AnyGpu } from "../../src/index.js";
import * as bindings from "./bindings.js";

/**
 * @param {import("../../src/store.js").Environment} [environment]
 * @param {object} [module] A copy of its own, since a trap is for ever.
 */
export function connection(environment = {}, module = { ...bindings }) {
  const { port1, port2 } = new MessageChannel();
  serve(/** @type {any} */ (port1), /** @type {any} */ (module), environment);
  const client = new Client(port2);
  const close = async (/** @type {Error} */ error = new DisposedError("closed")) => {
    await client.close(error);
    port1.close();
  };
  return { client, thread: /** @type {const} */ ("main"), reason: "a test", close };
}

/** @param {import("../../src/store.js").Environment} [environment] */
export async function engine(environment) {
  const link = connection(environment);
  const facts = await link.client.call("load", { what: new Blob(["model"]), options: {}, engine: {} });
  return new AnyGpu(link, facts);
}

/** Sets the double back to do what it should. */
export function reset() {
  Object.assign(bindings.script, { reads: null, loadThrows: null, generateThrows: null, hangs: false });
  Object.assign(bindings.seen, { options: [], freed: 0, generations: [] });
}
