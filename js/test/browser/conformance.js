// Runs the conformance suite in this browser.

import { missing } from "./generate.js";
import { AnyGpu, beat, options, say } from "./run.js";

export default async function conformance() {
  const { backend, op, every, worker, threads } = options;
  const expectations = await (await fetch("/expectations")).json();
  let shown = performance.now();
  const onCase = ({ index, total, op, case: name, ok, message }) => {
    beat();
    if (!ok) say(`FAILED  ${op} [${name}]: ${message}`);
    if (performance.now() - shown > 15_000) {
      shown = performance.now();
      say(`${index + 1} of ${total} cases, at ${op}`);
    }
  };
  const report = await AnyGpu.conformance({ backend, op, every, worker, threads, expectations, onCase });
  const fewer = threads && missing(threads, report.adapter);
  if (fewer) throw new Error(fewer);
  await say(`${report.name} on ${report.adapter}, in the ${report.thread}; ${report.not_run} cases left out`);
  for (const { op, cases, worst_nmse, failures } of report.ops) {
    const verdict = failures.length ? `${failures.length} FAILED` : worst_nmse ? worst_nmse.toExponential(1) : "exact";
    await say(`  ${op.padEnd(16)} ${String(cases).padStart(5)} cases  ${verdict}`);
  }
  return { ...report, skipped: 0 };
}
