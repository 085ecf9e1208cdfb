// DOM helpers: the three functions that this page needs from a framework.

/** Returns the element with an id. */
export const $ = (id) => document.getElementById(id);

/**
 * Makes an element. Properties are set as properties if the element has them, else as attributes; `on…` adds a
 * listener. Children are nodes or text; null, undefined and false are left out.
 */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Replaces the children of an element; they are nodes or text. */
export function fill(node, ...children) {
  node.textContent = "";
  node.append(...children);
}
