// The page's state in its URL: `#tab=chat&backend=webgl` follows every change, so that a link leads back to it. Query
// parameters of the same names set the starting values; the hash wins.

const query = new URLSearchParams(location.search);

const hash = () => new URLSearchParams(location.hash.slice(1));

/** Returns the value of a name, or null. */
export const read = (name) => hash().get(name) ?? query.get(name);

/**
 * Sets a name in the hash, or removes it if the value is null. Adds an entry to the page's history only if `push` is
 * true.
 */
export function write(name, value, push = false) {
  const values = hash();
  if (values.get(name) === value) return;
  if (value === null) values.delete(name);
  else values.set(name, value);
  history[push ? "pushState" : "replaceState"](null, "", `#${values}`);
}

/** Calls back when the visitor goes back or forward, or edits the hash. */
export function onNavigate(callback) {
  addEventListener("popstate", callback);
}
