// Compiles only if the package's code fits its declarations.
import type * as declared from "../../index.d.ts";
import * as actual from "../../src/index.js";

type Statics = "load" | "tune" | "probe" | "conformance" | "cache";

// A private constructor only fits itself, so the class is compared by its parts.
export const statics: Pick<typeof declared.AnyGpu, Statics> = actual.AnyGpu;
export const instance = (engine: actual.AnyGpu): declared.AnyGpu => engine;
export const others: Omit<typeof declared, "AnyGpu"> = actual;
