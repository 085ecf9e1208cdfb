/** Entry of the conformance suite's worker, and of its threads, in pages that may use threads. */

import * as bindings from "../wasm/threads/conformance.js";
import { serve } from "./workers/serve.js";
import { suite } from "./suite/suite-threads.js";
import { compute, isThread } from "./module/start-threads.js";

if (isThread()) compute(/** @type {import("./module/start-threads.js").Sharing} */ (/** @type {unknown} */ (bindings)));
else serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), suite());
