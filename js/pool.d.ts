/** Pages that compute for a pool: one model on many machines. @packageDocumentation */

import type { AnyGpuError, BackendChoice } from "./index.d.ts";

/** Options of {@link joinPool}. */
export interface JoinOptions {
  /** Address of the pool's coordinator, such as `http://localhost:8080`; `anygpu pool serve` prints it. */
  coordinator: string | URL;
  /** Backend that computes; `auto`, the default, is the fastest that works. */
  backend?: BackendChoice;
  /** Limit for weights, states and programs; 1 GiB by default. In bytes. */
  memory?: number;
  /** Called whenever the state of the page changes. */
  onState?: (state: PoolState) => void;
  /** Gives up joining; later, leaves the pool. */
  signal?: AbortSignal;
}

/** A pool, as its coordinator describes it. */
export interface Pool {
  readonly version: 1;
  /** Address of the WebSocket that pages connect to; null if pages cannot join. */
  readonly websocket: string | null;
  readonly model: {
    readonly name: string;
    readonly address: string;
    /** SHA-256 of the model's manifest, in hexadecimal digits; the manifest has those of all ranges of the file. */
    readonly digest: string;
    readonly blocks: number;
    readonly bytes: number;
  };
}

/** Backend and device that compute in this page. */
export interface PoolComputes {
  /** Name of the backend, such as `webgpu`, `webgl` or `cpu`. */
  readonly backend: string;
  readonly adapter: string;
  /** Whether the device is a software GPU, run by the CPU. */
  readonly software: boolean;
}

/** Blocks `[first, end)` of the model. */
export interface PoolPart {
  readonly first: number;
  readonly end: number;
  /** Whether the part includes the embedding before its blocks, and the head after them. */
  readonly embedding: boolean;
  readonly head: boolean;
  /** Bytes of weights fetched so far, and of all weights of the part. */
  readonly fetched: number;
  readonly total: number;
  /** Whether the part is loaded, compiled and measured. */
  readonly ready: boolean;
}

/** State of a page in a pool. */
export interface PoolState {
  /** Name of the page in the pool. */
  readonly worker: string;
  readonly computes: PoolComputes;
  /** Whether the connection to the pool's server is up. A broken connection is made again. */
  readonly connected: boolean;
  /** Part of the model to compute; null while there is none. */
  readonly part: PoolPart | null;
  /** Median time of a row through a block, in microseconds; 0 until it was measured. */
  readonly blockMicros: number;
  /** Round-trip time of a message to the server, in microseconds. */
  readonly hopMicros: number;
  /** Number of texts whose states the page holds. */
  readonly sessions: number;
  /** Number of steps computed. */
  readonly steps: number;
  /** Last task that the page could not do, and why; null if there was none. */
  readonly refused: string | null;
}

/** A page that has joined a pool. */
export interface PoolMember {
  readonly pool: Pool;
  /** Current state. */
  readonly state: PoolState;
  /** Promise that resolves when the page has left, and rejects if it cannot continue. */
  readonly left: Promise<void>;
  /** Leaves the pool: other workers take over its part. */
  leave(): Promise<void>;
}

/**
 * Joins a pool: this page computes a part of the pool's model until it leaves or the page is closed. The page does not
 * take part in what is asked, but **sees texts in another form**: see SECURITY.md.
 *
 * *Errors*: a {@link PoolError} if the pool does not accept pages, or not this one; a `NetworkError` if its coordinator
 * or its server cannot be reached; a `BackendError` if no backend works here; a `BrowserError` if this browser is too
 * old.
 */
export function joinPool(options: JoinOptions): Promise<PoolMember>;

/** The pool does not accept pages, or not this one. */
export class PoolError extends AnyGpuError {}
