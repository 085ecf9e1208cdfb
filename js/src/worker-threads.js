/** Entry of the engine's worker, and of its threads, in pages that may use threads. */

import * as bindings from "../wasm/threads/bindings.js";
import { engine } from "./engine/engine-threads.js";
import { serve } from "./workers/serve.js";
import { compute, isThread } from "./module/start-threads.js";

if (isThread()) compute(/** @type {import("./module/start-threads.js").Sharing} */ (/** @type {unknown} */ (bindings)));
else serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), engine());
