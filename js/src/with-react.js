/** A model as a component of React has it: `react.d.ts` documents it. */

import { useEffect, useState } from "react";
import { AnyGpu } from "./index.js";

/** @import { LoadOptions, ModelSource } from "../index.d.ts" */
/** @import { Loading } from "../react.d.ts" */

/** @type {Loading} */
const NOTHING = { engine: null, progress: null, error: null };

/**
 * @param {ModelSource | readonly ModelSource[] | null} source
 * @param {LoadOptions} [options]
 * @returns {Loading}
 */
export function useAnyGpu(source, options) {
  const [state, setState] = useState(NOTHING);
  // Addresses that are written anew with each rendering are the same.
  const what = source instanceof URL ? source.href : source;
  useEffect(() => {
    setState(NOTHING);
    if (what === null) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const show = (/** @type {Partial<Loading>} */ change) => {
      if (!signal.aborted) setState((before) => ({ ...before, ...change }));
    };
    const loading = AnyGpu.load(what, {
      ...options,
      signal,
      onProgress: (progress) => {
        show({ progress });
        options?.onProgress?.(progress);
      },
    });
    loading.then((engine) => show({ engine }), (error) => show({ error }));
    return () => {
      controller.abort();
      loading.then((engine) => engine.dispose(), () => {});
    };
  }, [what]);
  return state;
}
