// The page's state in its URL: `#tab=chat&backend=webgl` follows every change, so that a link leads back to it.
// The same names work as query parameters, where they are the starting values; the hash wins.

const query = new URLSearchParams(location.search);

const hash = () => new URLSearchParams(location.hash.slice(1));

/** The value of a name, or null. */
export const read = (name) => hash().get(name) ?? query.get(name);

/** Sets a name in the hash, or takes it away if the value is null. The page's history grows only where `push` is true. */
export function write(name, value, push = false) {
  const values = hash();
  if (values.get(name) === value) return;
  if (value === null) values.delete(name);
  else values.set(name, value);
  history[push ? "pushState" : "replaceState"](null, "", `#${values}`);
}

/** Calls back when the visitor goes back, forward, or edits the hash. */
export function onNavigate(callback) {
  addEventListener("popstate", callback);
}
