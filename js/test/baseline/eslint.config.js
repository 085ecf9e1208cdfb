/**
 * Holds all JavaScript that browsers get to the oldest of them: to the syntax and the built-ins of ES2020 and, as far as
 * names can tell, to what browsers had then.
 */

import esx from "eslint-plugin-es-x";
import browserApi from "./browser-api.js";

/** What is younger than ES2020 but in all of the oldest browsers, and what is older but not. */
const EXCEPTIONS = {
  "es-x/no-class-instance-fields": "off",
  "es-x/no-class-static-fields": "off",
  "es-x/no-numeric-separators": "off",
  "es-x/no-export-ns-from": "error",
};

/** Methods go by their names, and arrays or classes of our own have these too. */
const NAMESAKES = Object.fromEntries(
  ["every", "filter", "find", "flatmap", "foreach", "map", "reduce", "some", "take"].map((name) => [
    `es-x/no-iterator-prototype-${name}`,
    "off",
  ]),
);

/** What the code looks for before it uses it, or what is nothing but absent where it is missing. */
const DETECTED = [
  // Where models are kept.
  ...["storage", "estimate", "persist", "persisted", "caches", "locks"],
  ...["getDirectoryHandle", "getFileHandle", "removeEntry", "createSyncAccessHandle", "createWritable", "truncate"],
  // How many threads the machine runs at once; without it there is one.
  "hardwareConcurrency",
  // GPUs.
  ...["gpu", "requestAdapter", "OffscreenCanvas"],
  // Of errors and of signals, see errors.js and abort.js.
  ...["cause", "reason"],
  "asyncDispose",
  "isComposing",
  // Of canvases, all of which have it, though not all that may be in it.
  "font",
];

/** Fields and methods of our own, and of the client of NATS, that have the name of something young. */
const OURS = [
  ...["address", "subject", "subscribe", "unsubscribe", "watch"],
  ...["architecture", "build", "bytes", "chunks", "connection", "dispose", "entry", "first", "identity", "info", "last", "layout"],
  ...["loading", "lost", "manifest", "memory", "messages", "ms", "number", "quota", "role", "session", "share", "states"],
  ...["stats", "take", "to", "token", "turn", "usage", "use"],
];

export default [
  // Of others, and imported only by browsers that have what it takes: see markdown.js.
  { ignores: ["web/vendor/**"] },
  { linterOptions: { noInlineConfig: true } },
  esx.configs["flat/restrict-to-es2020"],
  { settings: { "es-x": { aggressive: true } }, rules: { ...EXCEPTIONS, ...NAMESAKES } },
  {
    // What wasm-bindgen writes looks for these first.
    files: ["js/wasm/older/**"],
    rules: { "es-x/no-weakrefs": "off", "es-x/no-arraybuffer-prototype-transfer": "off" },
  },
  {
    // The tests themselves use what the browser has that they run in.
    files: ["js/src/**", "web/**"],
    plugins: { anygpu: { rules: { "browser-api": browserApi } } },
    rules: { "anygpu/browser-api": ["error", { allowed: [...DETECTED, ...OURS] }] },
  },
];
