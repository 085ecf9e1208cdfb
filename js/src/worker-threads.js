/** Entry of the engine's worker, and of its threads, in pages that may use threads. */

import * as bindings from "../wasm/threads/bindings.js";
import { engine } from "./engine-threads.js";
import { serve } from "./serve.js";
import { compute, isThread } from "./start-threads.js";

if (isThread()) compute(/** @type {import("./start-threads.js").Sharing} */ (/** @type {unknown} */ (bindings)));
else serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), engine());
