/** Entry of the worker of structured output. */

import { formats } from "./format-today.js";
import { serve } from "./serve.js";

serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), formats());
