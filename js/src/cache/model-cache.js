/** The API of the model cache, `AnyGpu.cache`. */

import { OptionsError } from "../common/errors.js";
import { environment, runtime } from "../common/runtime.js";
import { keyOf, storedOf } from "./entry.js";
import { ModelStore } from "./model-store.js";

/** @import { CacheEntry, CacheUsage, ModelCache } from "../../index.d.ts" */

const open = () => ModelStore.open(environment());

/** @type {ModelCache} */
export const cache = {
  async list() {
    const entries = (await (await open())?.list()) ?? [];
    const whole = new Set(entries.filter((entry) => entry.whole).map(({ key }) => key));
    // While a new version is downloaded, the old one is still listed.
    return entries.filter((entry) => entry.whole || !whole.has(entry.key)).map((entry) => {
      const { key, size, etag, sha256, created, used } = entry;
      const times = { created: new Date(created), used: new Date(used) };
      return /** @type {CacheEntry} */ ({ key, size, stored: storedOf(entry), etag, sha256, ...times });
    });
  },

  async delete(keyOrUrl) {
    let key;
    try {
      key = keyOf(runtime.meant(keyOrUrl));
    } catch (cause) {
      throw new OptionsError(`keyOrUrl is not a URL: ${String(keyOrUrl).slice(0, 200)}`, { field: "keyOrUrl", cause });
    }
    return (await (await open())?.delete(key)) ?? false;
  },

  async clear() {
    await (await open())?.clear();
  },

  async usage() {
    const store = await open();
    const entries = (await store?.list()) ?? [];
    const { quota = null, usage = null } = (await store?.estimate()) ?? {};
    const bytes = entries.reduce((sum, entry) => sum + storedOf(entry), 0);
    const keys = new Set(entries.map(({ key }) => key));
    return /** @type {CacheUsage} */ ({ supported: store !== null, bytes, entries: keys.size, quota, used: usage });
  },
};
