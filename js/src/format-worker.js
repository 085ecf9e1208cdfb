/** Entry of the worker of structured output. */

import { formats } from "./format/format-today.js";
import { serve } from "./workers/serve.js";

serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), formats());
