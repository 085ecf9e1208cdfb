// The engine of `failing.js` in a tab of its own, where files are written through streams.

import { open } from "./failing-core.js";

const { port1, port2 } = new MessageChannel();
open(port1, JSON.parse(new URLSearchParams(location.search).get("what")));
parent.postMessage("ready", location.origin, [port2]);
