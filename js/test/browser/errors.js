// Makes a run fail on unhandled errors, and on errors that are only written to the console. The page imports this
// first; in automated runs the server makes the package's worker import it too.

const where = typeof document === "undefined" ? "worker" : "page";

function tell(kind, what) {
  const text = what instanceof Error ? (what.stack?.includes(what.message) ? what.stack : `${what}\n${what.stack}`) : String(what);
  fetch("/error", { method: "POST", body: `${kind} in the ${where}: ${text}` }).catch(() => {});
}

addEventListener("error", (event) => tell("uncaught", event.error ?? event.message));
addEventListener("unhandledrejection", (event) => tell("unhandled rejection", event.reason));
addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) =>
  tell("refused by the policy", `${effectiveDirective} ${blockedURI}`),
);

// On request, a worker hangs after a number of events, and answers nothing any more.
if (where === "worker") addEventListener("message", ({ data }) => {
  let left = data?.hangAfter;
  while (left === 0);
  if (left === undefined) return;
  const post = postMessage.bind(self);
  self.postMessage = (message, ...rest) => {
    post(message, ...rest);
    if (message.event !== undefined) left -= 1;
    while (left === 0);
  };
});

const write = console.error;
console.error = (...what) => {
  tell("console.error", what.map((part) => (part instanceof Error ? part.stack : part)).join(" "));
  write.apply(console, what);
};
