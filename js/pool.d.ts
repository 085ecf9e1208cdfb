/** Pages that compute for a pool: many machines as one. @packageDocumentation */

import type { AnyGpuError, BackendChoice } from "./index.d.ts";

/** How to join. */
export interface JoinOptions {
  /** The address of the pool's coordinator, such as `http://localhost:8080`: what `anygpu pool serve` says. */
  coordinator: string | URL;
  /** What computes; `auto` by default, which is the fastest that works. */
  backend?: BackendChoice;
  /** What weights, states and programs may take; 1 GiB by default. In bytes. */
  memory?: number;
  /** Told how the page does, whenever that changes. */
  onState?: (state: PoolState) => void;
  /** Gives up joining; later, leaves. */
  signal?: AbortSignal;
}

/** What a coordinator says of its pool. */
export interface Pool {
  readonly version: 1;
  /** Where pages connect to; null if they cannot. */
  readonly websocket: string | null;
  readonly model: {
    readonly name: string;
    readonly address: string;
    /** In hexadecimal digits: that of the manifest, which has those of all ranges of the file. */
    readonly digest: string;
    readonly blocks: number;
    readonly bytes: number;
  };
}

/** What computes in this page. */
export interface PoolComputes {
  /** Such as `webgpu`, `webgl` or `cpu`. */
  readonly backend: string;
  readonly adapter: string;
  /** Whether it is a GPU that the CPU imitates. */
  readonly software: boolean;
}

/** Blocks `[first, end)` of the model. */
export interface PoolPart {
  readonly first: number;
  readonly end: number;
  /** Whether the embedding is before them, and the head after them. */
  readonly embedding: boolean;
  readonly head: boolean;
  /** Weights that are there, and all of them. In bytes. */
  readonly fetched: number;
  readonly total: number;
  /** Whether it is loaded, compiled and measured. */
  readonly ready: boolean;
}

/** How a page does. */
export interface PoolState {
  /** The name that it goes by. */
  readonly worker: string;
  readonly computes: PoolComputes;
  /** Whether the connection to the pool's server is there; what breaks is connected again. */
  readonly connected: boolean;
  /** What it was given to compute; null while it has nothing. */
  readonly part: PoolPart | null;
  /** Median time of a row through a block; 0 until it was measured. In microseconds. */
  readonly blockMicros: number;
  /** Time of a message to the server and back. In microseconds. */
  readonly hopMicros: number;
  /** Texts whose states it holds. */
  readonly sessions: number;
  /** Steps that went through. */
  readonly steps: number;
  /** What it could not do last, and why. */
  readonly refused: string | null;
}

/** A page that has joined. */
export interface PoolMember {
  readonly pool: Pool;
  /** How it does now. */
  readonly state: PoolState;
  /** Resolves when it has left; rejects if it cannot go on. */
  readonly left: Promise<void>;
  /** Leaves: others take over its part. */
  leave(): Promise<void>;
}

/**
 * Has this page compute a part of the pool's model, until it leaves or the page goes. It takes no part in what is asked, but
 * **sees texts in another form**: see SECURITY.md.
 *
 * *Errors*: a {@link PoolError} if the pool takes no pages, or not this one; a `NetworkError` if its coordinator or its server
 * cannot be reached; a `BackendError` if nothing computes here; a `BrowserError` if this browser is too old.
 */
export function joinPool(options: JoinOptions): Promise<PoolMember>;

/** The pool takes no pages, or not this one. */
export class PoolError extends AnyGpuError {}
