/** The entry of the engine's worker in pages that may have threads, and of its threads. */

import * as bindings from "../wasm/threads/bindings.js";
import { engine } from "./engine-threads.js";
import { serve } from "./serve.js";
import { compute, isThread } from "./start-threads.js";

if (isThread()) compute(/** @type {import("./start-threads.js").Sharing} */ (/** @type {unknown} */ (bindings)));
else serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), engine());
