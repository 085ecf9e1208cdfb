// Runs the conformance suite on a backend, and counts the results.

import { AnyGpu } from "./anygpu/src/index.js";
import { sentence } from "./format.js";

/** Backends of the suite. Those marked `usual` are checked by default. */
export const BACKENDS = [
  { name: "webgpu", label: "WebGPU", usual: true },
  { name: "webgl", label: "WebGL2", usual: true },
  { name: "cpu", label: "CPU", usual: true },
  { name: "webgpu-core", label: "WebGPU, core features" },
  { name: "webgpu-split", label: "WebGPU, small bindings" },
  { name: "webgpu-software", label: "WebGPU, as on a software GPU" },
  { name: "webgpu-int8", label: "WebGPU, int8 matmuls" },
  { name: "webgl-r32f", label: "WebGL2, one value per texel" },
  { name: "webgl-bits", label: "WebGL2, no extensions" },
  { name: "webgl-fold", label: "WebGL2, small textures" },
  { name: "webgl-split", label: "WebGL2, split as on a real GPU" },
];

/** Makes an empty tally of one backend. `state`: waiting, running, done, stopped, absent or broken. */
export const newTally = (backend) => ({
  backend,
  state: "waiting",
  adapter: "",
  index: 0,
  total: 0,
  passed: 0,
  failed: 0,
  not_run: 0,
  ops: new Map(),
  failures: [],
  message: "",
});

/** Counts a case; returns the entry of its operator. */
function count(tally, { index, total, op, case: name, ok, nmse, message }) {
  tally.index = index + 1;
  tally.total = total;
  if (!tally.ops.has(op)) tally.ops.set(op, { op, cases: 0, worst_nmse: 0, failed: 0 });
  const entry = tally.ops.get(op);
  entry.cases += 1;
  if (ok) {
    tally.passed += 1;
    entry.worst_nmse = Math.max(entry.worst_nmse, nmse ?? 0);
  } else {
    tally.failed += 1;
    entry.failed += 1;
    tally.failures.push({ op, case: name, message });
  }
  return entry;
}

/**
 * Runs the suite on one backend. `onChange` is called after each case, with its operator's entry, and after each change
 * of state.
 */
export async function run(tally, { every, signal }, onChange) {
  tally.state = "running";
  onChange();
  try {
    const onCase = (result) => onChange(count(tally, result));
    const report = await AnyGpu.conformance({ backend: tally.backend, every, signal, onCase });
    tally.adapter = report.adapter;
    tally.not_run = report.not_run;
    tally.state = signal.aborted ? "stopped" : "done";
  } catch (error) {
    tally.state = signal.aborted ? "stopped" : tally.total === 0 ? "absent" : "broken";
    tally.message = signal.aborted ? "" : sentence(error.message);
  }
  onChange();
}

/** Returns the results as JSON, with the date and the browser. */
export const asJson = (tallies, every) =>
  JSON.stringify(
    {
      date: new Date().toISOString(),
      browser: navigator.userAgent,
      every,
      backends: tallies.map(({ index: _, ops, ...rest }) => ({ ...rest, ops: [...ops.values()] })),
    },
    null,
    2,
  );
