// What nobody needs for the first words of a story comes when it is looked at: modules, and the styles that they need.

import { el } from "./dom.js";

/** Makes a function that brings something once, and tries again if it did not come. */
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

/** Adds styles to the page, each once; resolves when they hold. */
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
