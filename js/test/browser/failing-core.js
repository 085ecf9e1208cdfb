// The engine on this thread, with the browser's own wasm, storage, locks and network, of which one call fails.

import "./errors.js";
import { Faults } from "/doubles/faults.js";
import { Core } from "/below/a/path/anygpu/src/engine/engine-core.js";
import { serve } from "/below/a/path/anygpu/src/workers/serve.js";
import * as bindings from "/below/a/path/anygpu/wasm/bindings.js";

const MODULE = new URL("/below/a/path/anygpu/wasm/bindings_bg.wasm", location.href);
const { fetch } = globalThis;
const { storage, locks } = navigator;

/** A core that also reports which call failed. */
class FailingCore extends Core {
  faults;

  async call(method, params, context) {
    const { calls, failed } = this.faults;
    return method === "faults" ? { calls, failed } : super.call(method, params, context);
  }
}

/** Interfaces of the engine by name; only calls of the named one can fail. */
const ENVIRONMENTS = {
  files: (faults) => ({ storage: faults.in(storage), locks }),
  cache: (faults) => ({ storage: { estimate: () => storage.estimate() }, caches: faults.in(caches), locks }),
  locks: (faults) => ({
    storage,
    locks: {
      request: async (...args) => {
        faults.count("request");
        return locks.request(...args);
      },
    },
  }),
  network: () => ({ storage, locks }),
};

/** Sends requests for the model through a function; the wasm module is not affected. */
function asked(model, server) {
  globalThis.fetch = (what, init) => (String(what?.url ?? what) === model ? server(what, init) : fetch(what, init));
}

/**
 * Serves an engine of which call number `at` of `what` fails as `how` says. With `offline` there is no network either.
 */
export function open(port, { what, at, how, limit, model, offline }) {
  const error = what === "network" ? () => new TypeError("network error") : undefined;
  const faults = new Faults(at ?? Infinity, how, error);
  if (offline) asked(model, () => Promise.reject(new TypeError("offline")));
  else if (what === "network") {
    asked(model, async (...args) => faults.in(await faults.in({ fetch: (...all) => fetch(...all) }).fetch(...args)));
  }
  const core = new FailingCore(bindings, MODULE, { ...ENVIRONMENTS[what](faults), ...(limit ? { limit } : {}) });
  core.faults = faults;
  serve(port, core);
}
