import "./errors.js";

/** Runs by name; each module's default export returns the report. */
const RUNS = [
  "conformance", "generate", "bench", "measure", "load", "memory", "page", "checks", "kills", "cycles", "failing", "leg",
];

async function report() {
  const { options, say } = await import("./run.js");
  if (!RUNS.includes(options.run)) throw new Error(`there is no run ${options.run}; there are ${RUNS.join(", ")}`);
  await say(navigator.userAgent);
  const run = await import(`./${options.run}.js`);
  const { run: name, backend } = options;
  return { run: name, backend, ...(await run.default()) };
}

async function main() {
  let result;
  try {
    result = await report();
  } catch (error) {
    const text = `${error?.name} (${error?.code}): ${error?.message}\n${error?.stack ?? ""}`;
    result = { passed: 0, failed: 1, skipped: 0, error: text, selection: error?.report };
    await fetch("/log", { method: "POST", body: `FAILED  ${text}` });
  }
  const about = { user_agent: navigator.userAgent, isolated: globalThis.crossOriginIsolated === true };
  await fetch("/report", { method: "POST", body: JSON.stringify({ ...about, ...result }) });
}

main();
