// The engine of `failing.js` in a worker, where files are written through handles.

import { open } from "./failing-core.js";

open(self, JSON.parse(new URLSearchParams(location.search).get("what")));
