/** Stages with small projects like those of users, built by their bundlers and run in Chromium. */

import { cpSync } from "node:fs";
import { join } from "node:path";
import { SKIPPED, counted, hasChromium, must, project, tarball } from "./common.js";
import { inChromium } from "./chromium.js";

/** Folder of the project that three bundlers share: its packages are installed once. @type {string | null} */
let bundlers = null;

/** Builds TypeScript and React with Vite, with the package as npm installs it. */
export async function vite() {
  if (!hasChromium()) return SKIPPED;
  const folder = project("vite");
  must("npm", ["install", "--no-save", "--no-audit", "--no-fund", tarball()], folder);
  must("npm", ["run", "build"], folder);
  return counted(await inChromium(join(folder, "dist")));
}

/** @param {"webpack" | "esbuild" | "rollup"} name */
async function bundled(name) {
  if (!hasChromium()) return SKIPPED;
  bundlers = bundlers ?? project("bundlers");
  const dist = join(bundlers, "dist", name);
  must("npm", ["run", name], bundlers);
  cpSync(join(bundlers, "index.html"), join(dist, "index.html"));
  // webpack does this by itself; the README tells users of the others to do it.
  if (name !== "webpack") cpSync(join(bundlers, "node_modules", "anygpu", "wasm"), join(dist, "wasm"), { recursive: true });
  return counted(await inChromium(dist));
}

export const webpack = () => bundled("webpack");
export const esbuild = () => bundled("esbuild");
export const rollup = () => bundled("rollup");

/** Builds a client component with Next.js, exported as a folder for a static host. */
export async function next() {
  if (!hasChromium()) return SKIPPED;
  const folder = project("next");
  must("npm", ["run", "build"], folder);
  return counted(await inChromium(join(folder, "out")));
}
