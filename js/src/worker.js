/** Entry of the engine's worker. */

import { engine } from "./engine.js";
import { serve } from "./serve.js";

serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), engine());
