/** The models that the browser keeps, for the page. */

import { OptionsError } from "./errors.js";
import { Store, keyOf } from "./store.js";

/** @import { CacheEntry, CacheUsage, ModelCache } from "../index.d.ts" */

const open = () =>
  Store.open({ storage: navigator.storage, caches: globalThis.caches, locks: navigator.locks });

/** @type {ModelCache} */
export const cache = {
  async list() {
    const entries = (await (await open())?.list()) ?? [];
    return entries.map(
      ({ key, size, etag, sha256, created, used }) =>
        /** @type {CacheEntry} */ ({ key, size, etag, sha256, created: new Date(created), used: new Date(used) }),
    );
  },

  async delete(keyOrUrl) {
    let key;
    try {
      key = keyOf(new URL(keyOrUrl, globalThis.document?.baseURI ?? globalThis.location?.href));
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
    const bytes = entries.reduce((sum, entry) => sum + entry.size, 0);
    return /** @type {CacheUsage} */ ({ supported: store !== null, bytes, entries: entries.length, quota, used: usage });
  },
};
