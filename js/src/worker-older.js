/** Entry of the engine's worker in older browsers. */

import { engine } from "./engine/engine-older.js";
import { serve } from "./workers/serve.js";

serve(/** @type {import("./workers/serve.js").Port} */ (/** @type {unknown} */ (self)), engine());
