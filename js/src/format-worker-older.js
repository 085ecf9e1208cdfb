/** Entry of the worker of structured output, for older browsers. */

import { formats } from "./format/format-older.js";
import { serve } from "./workers/serve.js";

serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), formats());
