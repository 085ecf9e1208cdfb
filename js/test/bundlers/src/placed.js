// For bundlers that are told to build the worker, and beside whose output the wasm modules are copied.
import { AnyGpu } from "anygpu";
import { checked, posted, tells } from "../page/check.js";

const places = { workerUrl: "worker.js", wasmUrl: "wasm" };

checked({
  "loads in a worker, streams a story, is disposed of": () => tells(AnyGpu, places),
  "finds what a backend needs": () => AnyGpu.probe(places),
}).then((results) => posted(results));
