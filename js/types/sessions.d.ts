/** Named sessions: options, and what is known of each. */

import type { ChatCompletions } from "./chat.js";
import type { CacheError } from "./errors.js";
import type { FinishReason, RequestOptions } from "./generation.js";

/** Options of sessions: where they are while another one is on the device, and whether they outlive the page. */
export interface SessionOptions {
  /**
   * Limit for the states of sessions that are not on the device, held beside the page's own memory; 256 MiB by default.
   * The least recently used go first, and are computed again when they are needed. In bytes.
   */
  maxMemory?: number;
  /**
   * Whether named sessions are saved to the browser's storage while they grow; false by default. A tab that ends at any
   * moment then loses little: the next engine of the same model and KV cache has the sessions, and
   * {@link ChatCompletions.resume} continues an answer mid-sentence. Where nothing can be stored, as in private
   * windows, sessions work without storage.
   */
  keep?: boolean;
  /** Least time between two snapshots during an answer: 100 or more, 2000 by default. In milliseconds. */
  every?: number;
  /**
   * Limit for all stored sessions of this site; 512 MiB by default. The least recently used go first. While a session's
   * files are rewritten to keep them short, the old ones take space as well. In bytes.
   */
  maxBytes?: number;
  /** Largest number of stored sessions of this site; 32 by default. */
  maxCount?: number;
}

/** A session with a name. */
export interface SessionInfo {
  /** Name of the session. */
  name: string;
  /** Length of the session's text, in tokens. */
  tokens: number;
  /** How its last answer ended; null if it is unfinished. `"cancelled"`: aborted. */
  finish: FinishReason | "cancelled" | null;
  /** Memory that it uses of {@link SessionOptions.maxMemory}. In bytes. */
  memory: number;
  /** Space that it uses in the browser's storage. In bytes. */
  stored: number;
}

/** The named sessions of an engine; see {@link RequestOptions.session}. */
export interface Sessions {
  /** Lists all sessions, last used first: those of the engine, and those stored for the same model and KV cache. */
  list(): Promise<SessionInfo[]>;
  /**
   * Removes a session, also from the browser's storage. Resolves to whether it existed. Rejects with {@link CacheError}
   * if storage fails.
   */
  remove(name: string): Promise<boolean>;
  /**
   * Removes all sessions, and all stored ones, including those of other models, except sessions in use by other tabs.
   * Rejects with {@link CacheError} if storage fails.
   */
  clear(): Promise<void>;
}
