/** The hook for React; `react.d.ts` documents it. */
"use client";

import { useEffect, useState } from "react";
import { AnyGpu } from "./index.js";

/** @import { LoadOptions, ModelSource } from "../index.d.ts" */
/** @import { Loading } from "../react.d.ts" */

/** @type {Loading} */
const NOTHING = { engine: null, progress: null, error: null };

/**
 * Returns a URL object as text, since a new but equal object may come with each rendering.
 *
 * @param {ModelSource} source
 */
const plain = (source) => (source instanceof URL ? source.href : source);

/** Whether two sources are the same model; lists are compared by their elements. @param {any} one @param {any} other */
const same = (one, other) =>
  Array.isArray(one) && Array.isArray(other)
    ? one.length === other.length && one.every((source, index) => source === other[index])
    : one === other;

/**
 * @param {ModelSource | readonly ModelSource[] | null} source
 * @param {LoadOptions} [options]
 * @returns {Loading}
 */
export function useAnyGpu(source, options) {
  const [state, setState] = useState(NOTHING);
  const given = Array.isArray(source) ? source.map(plain) : source && plain(/** @type {ModelSource} */ (source));
  const [what, setWhat] = useState(given);
  if (!same(what, given)) setWhat(given);
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
