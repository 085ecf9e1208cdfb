/** Entry of the conformance suite's worker in older browsers. */

import { suite } from "./suite-older.js";
import { serve } from "./serve.js";

serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), suite());
