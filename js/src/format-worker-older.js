/** The entry of the worker of formats. */

import { formats } from "./format-older.js";
import { serve } from "./serve.js";

serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), formats());
