import "./errors.js";
import { options, say } from "./run.js";

/** What can be run; each module's default export gives the report. */
const RUNS = ["conformance", "generate", "bench", "measure", "memory", "page", "checks"];

async function report() {
  if (!RUNS.includes(options.run)) throw new Error(`there is no run ${options.run}; there are ${RUNS.join(", ")}`);
  await say(navigator.userAgent);
  const run = await import(`./${options.run}.js`);
  return run.default();
}

let result;
try {
  result = await report();
} catch (error) {
  const text = `${error?.name} (${error?.code}): ${error?.message}\n${error?.stack ?? ""}`;
  result = { passed: 0, failed: 1, skipped: 0, error: text, selection: error?.report };
  await say(`FAILED  ${text}`);
}
const { run, backend } = options;
const about = { run, backend, user_agent: navigator.userAgent, isolated: globalThis.crossOriginIsolated === true };
result = { ...about, ...result };
await fetch("/report", { method: "POST", body: JSON.stringify(result) });
