/** Stages with pages without a bundler, in Chromium. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { JS, SKIPPED, WORK, counted, hasChromium, project } from "./common.js";
import { once, serve, visit } from "./chromium.js";

/** @param {string} script */
const html = (script) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>anygpu</title><link rel="icon" href="data:,"><script type="module">${script}</script></html>`;

/** Loads the package from another origin than the page, which is a folder with one file. */
export async function plain() {
  if (!hasChromium()) return SKIPPED;
  const folder = project("plain");
  const other = await serve({ folder, open: true });
  const page = join(WORK, "plain-page");
  mkdirSync(page, { recursive: true });
  writeFileSync(join(page, "index.html"), html(`import { run } from "${other.origin}/main.js"; run("${other.origin}");`));
  const { promise, come } = once();
  const site = await serve({ folder: page }, come);
  try {
    return counted(await visit(`${site.origin}/`, promise));
  } finally {
    site.close();
    other.close();
  }
}

/** Returns the service worker of the README. */
function serviceWorker() {
  const readme = readFileSync(join(JS, "README.md"), "utf8");
  const script = /```js\n(\/\/ sw\.js\n.*?)```/s.exec(readme)?.[1];
  if (script === undefined) throw new Error("README.md has no sw.js");
  return script;
}

/** Reloads a page after its server has ended. */
export async function offline() {
  if (!hasChromium()) return SKIPPED;
  const folder = project("offline");
  writeFileSync(join(folder, "sw.js"), serviceWorker());
  const site = await serve({ folder });
  const { promise, come } = once();
  // The results of the first and the second visit arrive separately.
  const report = await serve({ folder }, (body) => (body === "next" ? site.close() : come(body)));
  writeFileSync(join(folder, "index.html"), html(`import { run } from "./main.js"; run("${report.origin}");`));
  try {
    return counted(await visit(`${site.origin}/`, promise));
  } finally {
    site.close();
    report.close();
  }
}
