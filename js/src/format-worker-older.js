/** Entry of the worker of structured output, for older browsers. */

import { formats } from "./format-older.js";
import { serve } from "./serve.js";

serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), formats());
