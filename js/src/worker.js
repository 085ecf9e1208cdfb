/** The worker's entry. */

import * as bindings from "../wasm/bindings.js";
import { serve } from "./core.js";

const scope = /** @type {import("./core.js").Port & typeof globalThis} */ (/** @type {unknown} */ (self));
serve(scope, bindings, { storage: navigator.storage, caches: scope.caches, locks: navigator.locks });
