// Entry for bundlers that move the worker and the wasm module to where the package finds them.
import { AnyGpu } from "anygpu";
import { checked, formats, posted, tells } from "../page/check.js";

checked({
  "loads in a worker, streams a story, is disposed of": () => tells(AnyGpu),
  "answers in a format": () => formats(AnyGpu),
}).then((results) => posted(results));
