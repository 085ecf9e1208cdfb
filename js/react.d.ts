/** Models in React. @packageDocumentation */

import type { AnyGpu, LoadOptions, LoadProgress, ModelSource } from "./index.d.ts";

/** State of loading a model. */
export interface Loading {
  /** The engine, once it is ready; null before. */
  engine: AnyGpu | null;
  /** Progress of loading; null before it begins. */
  progress: LoadProgress | null;
  /** Reason why the model cannot be loaded; null if there is none. */
  error: Error | null;
}

/**
 * Loads a model when the component is mounted, and disposes of it when the component is unmounted or the source
 * changes: to another address, another object, or a list of others. With null nothing is loaded. The options are those
 * of the rendering in which loading begins; `signal` is the hook's own.
 */
export function useAnyGpu(
  source: ModelSource | readonly ModelSource[] | null,
  options?: Omit<LoadOptions, "signal">,
): Loading;
