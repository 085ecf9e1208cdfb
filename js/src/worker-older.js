/** Entry of the engine's worker in older browsers. */

import { engine } from "./engine-older.js";
import { serve } from "./serve.js";

serve(/** @type {import("./serve.js").Port} */ (/** @type {unknown} */ (self)), engine());
