// Collects what the real page's policy refuses, before everything else in the page. It is a classic script, so that it
// misses nothing.

window.violations = [];
addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI, sourceFile, lineNumber }) =>
  window.violations.push(`${effectiveDirective} refuses ${blockedURI} (${sourceFile}:${lineNumber})`),
);
// The engine then runs on the page's own thread.
if (location.search.includes("workers=none")) window.Worker = undefined;
// Ends the page's work in good order.
window.leave = async () => {
  const { session } = await import("/policy/session.js");
  await session.stop();
  await session.engine?.dispose();
};
