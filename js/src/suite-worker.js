/** Entry of the conformance suite's worker. */

import { suite } from "./suite-today.js";
import { serve } from "./serve.js";

serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), suite());
