/** Entry of the worker of a pool's member. */

import { poolCore } from "./pool-today.js";
import { serve } from "./serve.js";

serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), poolCore());
