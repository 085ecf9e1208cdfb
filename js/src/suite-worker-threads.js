/** Entry of the conformance suite's worker, and of its threads, in pages that may use threads. */

import * as bindings from "../wasm/threads/conformance.js";
import { serve } from "./serve.js";
import { suite } from "./suite-threads.js";
import { compute, isThread } from "./start-threads.js";

if (isThread()) compute(/** @type {import("./start-threads.js").Sharing} */ (/** @type {unknown} */ (bindings)));
else serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), suite());
