/** Models in React. @packageDocumentation */

import type { AnyGpu, LoadOptions, LoadProgress, ModelSource } from "./index.d.ts";

/** How far a model is. */
export interface Loading {
  /** The model, once it is ready. */
  engine: AnyGpu | null;
  /** How far loading is; null before it begins. */
  progress: LoadProgress | null;
  /** Why it cannot be loaded. */
  error: Error | null;
}

/**
 * Loads a model when the component is mounted, and disposes of it when it is unmounted or the source changes: to another
 * address, another object, or a list of others. With null nothing is loaded. Options are those of the rendering in which loading begins;
 * `signal` is the hook's own.
 */
export function useAnyGpu(
  source: ModelSource | readonly ModelSource[] | null,
  options?: Omit<LoadOptions, "signal">,
): Loading;
