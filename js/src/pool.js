/**
 * The function `joinPool`; `pool.d.ts` documents it. Nothing else of the package loads this file or the files it
 * imports.
 */

import { callback, integer, object, oneOf, refuse, signal } from "./common/validate.js";
import { report } from "./workers/client.js";
import { connect } from "./connect.js";
import { BrowserError, DisposedError, throwIfAborted } from "./common/errors.js";
import { PoolError } from "./pool-error.js";
import { runtime } from "./common/runtime.js";
import { serve } from "./workers/serve.js";

/** @import { JoinOptions, PoolMember, PoolState } from "../pool.d.ts" */
/** @import { Check } from "./common/validate.js" */
/** @import { Served } from "./connect.js" */

export { PoolError };

/** Memory that a page offers by default, in bytes. */
const MEMORY = 2 ** 30;

/** Checks an address, and makes it absolute. @type {Check} */
const address = (name, value) => {
  try {
    if (typeof value === "string" || value instanceof URL) return runtime.meant(value).href;
  } catch {
    // Refused below.
  }
  return refuse(name, "a URL", value);
};

const joinOptions = object({
  coordinator: address,
  backend: oneOf(["auto", "gpu", "webgpu", "webgl", "cpu"]),
  memory: integer(1, Number.MAX_SAFE_INTEGER),
  onState: callback,
  signal,
});

/** Refuses browsers that there is no build for. @returns {never} */
const tooOld = () => {
  throw new BrowserError("this browser is too old to join a pool; Chromium 91, Firefox 89, Safari 16.4 and later can");
};

/** @type {Served} */
const MEMBER = {
  worker: {
    // Bundlers recognise exactly this form.
    today: () => new Worker(new URL("./pool-worker.js", import.meta.url), { type: "module", name: "anygpu-pool" }),
    older: tooOld,
    threads: tooOld,
  },
  script: { today: "pool-worker.js", older: "pool-worker.js", threads: "pool-worker.js" },
  here: {
    today: async (port) => serve(port, (await import("./pool/pool-today.js")).poolCore()),
    older: tooOld,
  },
};

/**
 * @param {JoinOptions} options
 * @returns {Promise<PoolMember>}
 */
export async function joinPool(options) {
  const checked = joinOptions("options", options);
  const { coordinator = refuse("coordinator", "a URL", undefined), backend = "auto", memory = MEMORY, onState, signal } = checked;
  throwIfAborted(signal);
  const { client, close } = await connect(MEMBER, { backend, threads: 1, signal });
  try {
    const { pool, state } = await client.call("join", { coordinator, backend, memory }, { signal });
    return member(client, close, pool, state, onState, signal);
  } catch (error) {
    await close(new DisposedError("the pool was not joined"));
    throw error;
  }
}

/**
 * @param {import("./workers/client.js").Client} client
 * @param {(error: Error) => Promise<void>} close
 * @param {import("../pool.d.ts").Pool} pool
 * @param {PoolState} first
 * @param {((state: PoolState) => void) | undefined} onState
 * @param {AbortSignal | undefined} signal
 * @returns {PoolMember}
 */
function member(client, close, pool, first, onState, signal) {
  let state = first;
  const onEvent = (/** @type {PoolState} */ next) => {
    state = next;
    report(onState, next);
  };
  const seen = () => {
    const visible = document.visibilityState === "visible";
    client.call("seen", { visible }).catch(() => {});
  };
  /** @type {Promise<void> | null} */
  let leaving = null;
  const leave = () => {
    leaving = leaving ?? client.call("leave", {}).catch(() => {});
    return leaving;
  };
  const page = globalThis.document === undefined ? null : globalThis;
  page?.document.addEventListener("visibilitychange", seen);
  // A page that comes back from the back-forward cache has to join again.
  page?.addEventListener("pagehide", leave);
  signal?.addEventListener("abort", leave);
  const end = () => {
    page?.document.removeEventListener("visibilitychange", seen);
    page?.removeEventListener("pagehide", leave);
    signal?.removeEventListener("abort", leave);
    return close(new DisposedError("the pool was left"));
  };
  const left = client.call("follow", {}, { onEvent }).then(
    () => end(),
    async (error) => {
      await end();
      throw error;
    },
  );
  // Without a handler for `left`, an error is not reported.
  left.catch(() => {});
  return {
    pool,
    get state() {
      return state;
    },
    left,
    leave: async () => {
      await leave();
      await left.catch(() => {});
    },
  };
}
