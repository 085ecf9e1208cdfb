/**
 * Checks all JavaScript for browsers against the oldest of them: the syntax and built-ins of ES2020 and, as far as
 * names can tell, the interfaces that they had.
 */

import esx from "eslint-plugin-es-x";
import browserApi from "./browser-api.js";

/** Exceptions to ES2020: newer features that all of the oldest browsers have, and older ones that some lack. */
const EXCEPTIONS = {
  "es-x/no-class-instance-fields": "off",
  "es-x/no-class-static-fields": "off",
  "es-x/no-numeric-separators": "off",
  "es-x/no-export-ns-from": "error",
};

/** Methods are judged by their names, and arrays or our own classes have methods of these names too. */
const NAMESAKES = Object.fromEntries(
  ["every", "filter", "find", "flatmap", "foreach", "map", "reduce", "some", "take"].map((name) => [
    `es-x/no-iterator-prototype-${name}`,
    "off",
  ]),
);

/** Names that the code tests before use, or that are harmless where they are missing. */
const DETECTED = [
  // Storage of models.
  ...["storage", "estimate", "persist", "persisted", "caches", "locks"],
  ...["getDirectoryHandle", "getFileHandle", "removeEntry", "createSyncAccessHandle", "createWritable", "truncate"],
  // Number of threads that the machine runs at once; without it there is one.
  "hardwareConcurrency",
  // GPUs.
  ...["gpu", "requestAdapter", "OffscreenCanvas"],
  // Fields of errors and signals, see errors.js.
  ...["cause", "reason"],
  "asyncDispose",
  "isComposing",
  // A field of canvas contexts. All browsers have it, though not all of its values.
  "font",
];

/** Fields and methods of our own, and of the NATS client, that share the name of a newer feature. */
const OURS = [
  ...["address", "subject", "subscribe", "unsubscribe", "watch"],
  ...["architecture", "build", "bytes", "chunks", "connection", "dispose", "entry", "first", "format", "identity", "info", "last", "layout"],
  ...["loading", "lost", "manifest", "memory", "messages", "ms", "number", "quota", "role", "run", "session", "share", "states"],
  ...["stats", "take", "to", "token", "turn", "usage", "use"],
];

export default [
  // Third-party code, only imported by browsers that support it: see markdown.js.
  { ignores: ["web/vendor/**"] },
  { linterOptions: { noInlineConfig: true } },
  esx.configs["flat/restrict-to-es2020"],
  { settings: { "es-x": { aggressive: true } }, rules: { ...EXCEPTIONS, ...NAMESAKES } },
  {
    // The glue code of wasm-bindgen tests for these before use.
    files: ["js/wasm/older/**"],
    rules: { "es-x/no-weakrefs": "off", "es-x/no-arraybuffer-prototype-transfer": "off" },
  },
  {
    // Tests may use features of the browser that they run in.
    files: ["js/src/**", "web/**"],
    plugins: { anygpu: { rules: { "browser-api": browserApi } } },
    rules: { "anygpu/browser-api": ["error", { allowed: [...DETECTED, ...OURS] }] },
  },
];
