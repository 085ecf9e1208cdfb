// Entry for bundlers that are told to build the worker. The wasm modules are copied beside their output.
import { AnyGpu } from "anygpu";
import { checked, formats, posted, tells } from "../page/check.js";

const places = { workerUrl: "worker.js", wasmUrl: "wasm" };

/** Runs the suite, which has a worker and a module of its own. */
async function proves() {
  const where = { workerUrl: "suite-worker.js", wasmUrl: "wasm" };
  const { passed, failed, thread } = await AnyGpu.conformance({ backend: "cpu", op: "glu", ...where });
  if (passed === 0 || failed > 0 || thread !== "worker") throw new Error(`${passed} passed, ${failed} failed on the thread ${thread}`);
}

checked({
  "loads in a worker, streams a story, is disposed of": () => tells(AnyGpu, places),
  "answers in a format": () => formats(AnyGpu, places),
  "finds what a backend needs": () => AnyGpu.probe(places),
  "runs the suite": proves,
}).then((results) => posted(results));
