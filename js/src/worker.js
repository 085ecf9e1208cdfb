/** Entry of the engine's worker. */

import { engine } from "./engine/engine-today.js";
import { serve } from "./workers/serve.js";

serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), engine());
