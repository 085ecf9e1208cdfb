/** Entry of the worker of a pool's member. */

import { poolCore } from "./pool/pool-today.js";
import { serve } from "./workers/serve.js";

serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), poolCore());
