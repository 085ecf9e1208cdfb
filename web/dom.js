// The three things that this page needs from a framework.

/** The element with an id. */
export const $ = (id) => document.getElementById(id);

/**
 * Makes an element. Properties are set as properties where the element has them, else as attributes; `on…` adds a
 * listener. Children are nodes or text; null and false are left out.
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

/** Gives an element these children instead of those that it has; nodes or text. */
export function fill(node, ...children) {
  node.textContent = "";
  node.append(...children);
}
