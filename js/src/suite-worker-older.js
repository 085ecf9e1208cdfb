/** Entry of the conformance suite's worker in older browsers. */

import { suite } from "./suite/suite-older.js";
import { serve } from "./workers/serve.js";

serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), suite());
