/**
 * Checks that the shipped third-party code is that of the packages that the lock file pins.
 *
 *     npm ci --ignore-scripts && node vendored.js write        makes js/vendor/nats.js
 */

import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/** @typedef {import("./main.js").Result} Result */

const require = createRequire(import.meta.url);
const HERE = fileURLToPath(new URL(".", import.meta.url));

/** Returns the client of NATS for browsers, which npm has as CommonJS, as one module for the oldest of them. */
async function nats() {
  const { version } = JSON.parse(readFileSync(`${HERE}/node_modules/@nats-io/nats-core/package.json`, "utf8"));
  const { outputFiles } = await build({
    stdin: { contents: 'export { wsconnect } from "@nats-io/nats-core";', resolveDir: HERE },
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    platform: "browser",
    target: ["chrome80", "firefox79", "safari15"],
    legalComments: "none",
    banner: { js: `// @nats-io/nats-core ${version} and what it uses, as js/test/site/vendored.js makes it; see THIRD-PARTY-NOTICES.txt.` },
  });
  return Buffer.from(outputFiles[0].contents);
}

/**
 * @param {string} dist
 * @returns {Promise<Result[]>}
 */
export async function areVendored(dist) {
  const marked = readFileSync(`${dist}/vendor/marked.js`).equals(readFileSync(require.resolve("marked")));
  const client = readFileSync(`${dist}/anygpu/vendor/nats.js`).equals(await nats());
  return [
    { name: "vendor/marked.js is that of the package", ok: marked, message: "copy node_modules/marked/lib/marked.esm.js" },
    { name: "anygpu/vendor/nats.js is made of the package", ok: client, message: "node vendored.js write" },
  ];
}

if (process.argv[2] === "write") writeFileSync(new URL("../../vendor/nats.js", import.meta.url), await nats());
