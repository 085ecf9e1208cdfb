/** Entry of the conformance suite's worker. */

import { suite } from "./suite/suite-today.js";
import { serve } from "./workers/serve.js";

serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), suite());
