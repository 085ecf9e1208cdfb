// For bundlers that bring the worker and the wasm module to where the package finds them.
import { AnyGpu } from "anygpu";
import { checked, posted, tells } from "../page/check.js";

checked({ "loads in a worker, streams a story, is disposed of": () => tells(AnyGpu) }).then((results) => posted(results));
