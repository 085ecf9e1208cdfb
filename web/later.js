// Loads modules and styles when they are needed, so that the first words of a story do not wait for them.

import { el } from "./dom.js";

/** Makes a function that loads something once, and tries again after a failure. */
export function later(bring) {
  let coming = null;
  return () => {
    coming = coming ?? bring().catch((error) => {
      coming = null;
      throw error;
    });
    return coming;
  };
}

const sheets = new Map();

/** Adds style sheets to the page, each once. Resolves when they apply. */
export function styles(...names) {
  for (const name of names) if (!sheets.has(name)) sheets.set(name, later(() => style(name)));
  return Promise.all(names.map((name) => sheets.get(name)()));
}

function style(href) {
  return new Promise((resolve, reject) => {
    const failed = () => reject(new Error(`${href} could not be loaded`));
    document.head.append(el("link", { rel: "stylesheet", href, onload: resolve, onerror: failed }));
  });
}
