// In the real page, before everything else: collects what its policy refuses. A classic script, so that it misses
// nothing.

window.violations = [];
addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI, sourceFile, lineNumber }) =>
  window.violations.push(`${effectiveDirective} refuses ${blockedURI} (${sourceFile}:${lineNumber})`),
);
// Then the engine runs on the page's own thread.
if (location.search.includes("workers=none")) window.Worker = undefined;
// Ends what the page does, in good order.
window.leave = async () => {
  const { session } = await import("/policy/session.js");
  await session.stop();
  await session.engine?.dispose();
};
