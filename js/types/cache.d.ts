/** The cache of models in the browser's storage. */

import type { CacheError } from "./errors.js";

/** How the cache was used for a model. */
export interface CacheState {
  /** `hit`: read from the cache. `stored`: downloaded and kept. `off`: not kept. */
  state: "hit" | "stored" | "off";
  /** Why the model is not kept, or why a cached model was not revalidated. */
  reason?: string;
}

/** A model in the browser's cache. */
export interface CacheEntry {
  /** Key of the entry: the address without credentials and fragment. */
  key: string;
  /** Size of the file, in bytes. */
  size: number;
  /**
   * Size of the part that is stored: less than `size` if a download was interrupted, which the next load continues. In
   * bytes.
   */
  stored: number;
  /** The server's `ETag` of this version; null if it had none. */
  etag: string | null;
  /** SHA-256 of the file in hexadecimal digits, if it was computed. */
  sha256: string | null;
  /** Time when it was stored. */
  created: Date;
  /** Time when it was last loaded. */
  used: Date;
}

/** Use of the browser's storage. */
export interface CacheUsage {
  /** Whether this browser and page can store models at all: it takes a secure context, and not a private window. */
  supported: boolean;
  /** Size of the stored models, in bytes. */
  bytes: number;
  /** Number of stored models. */
  entries: number;
  /** Storage that the browser grants this site in all, in bytes; null if it does not say. */
  quota: number | null;
  /** Storage that this site uses in all, in bytes; null if the browser does not say. */
  used: number | null;
}

/** The models that the browser stores for this site. Each method rejects with {@link CacheError} if storage fails. */
export interface ModelCache {
  /** Lists all models, last used first. */
  list(): Promise<CacheEntry[]>;
  /**
   * Removes a model by its key or address. Resolves to whether it existed. A model that is being read is removed when
   * that is done.
   */
  delete(keyOrUrl: string | URL): Promise<boolean>;
  /** Removes all models. */
  clear(): Promise<void>;
  /** Returns how much is stored. */
  usage(): Promise<CacheUsage>;
}
