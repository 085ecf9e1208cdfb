// Runs the programs of both READMEs as they are. The arguments are the READMEs, the built-in model, a chat model with a
// fixed answer, and an embedding model. It prints the results.
import * as ai from "ai";
import { readFileSync } from "node:fs";
import { argv } from "node:process";
import * as anygpu from "anygpu";
import * as sdk from "anygpu/ai-sdk";
import { checked } from "./page/check.js";

const [, , root, own, gab, texts, vectors] = argv;

/** @type {Record<string, object>} */
const MODULES = { ai, anygpu, "anygpu/ai-sdk": sdk };
/** Files for the models that programs name. @type {Record<string, string>} */
const FILES = {
  "model.gguf": texts,
  "models/model.gguf": texts,
  "https://example.org/model.gguf": texts,
  "https://example.org/embedding-model.gguf": vectors,
};
/** Programs that other stages run, since they need a page, and programs with a shortened digest. */
const ELSEWHERE = [/^\/\/ (\w|\.)+\.js/, /workerUrl/, /<SHA-256/, /joinPool/];

const AsyncFunction = /** @type {any} */ (async () => {}).constructor;

/** Returns the programs of a document, by the line that they begin in. @param {string} file */
function programs(file) {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(({ 1: code, index }) => ({ code, line: text.slice(0, index).split("\n").length }));
}

/** Engines that a program loaded. @type {anygpu.AnyGpu[]} */
let loaded = [];

/** The class `AnyGpu`, which finds the named models in local files. */
class Found extends anygpu.AnyGpu {
  /** @param {any} source @param {any} [options] */
  static async load(source, options) {
    const engine = await anygpu.AnyGpu.load(FILES[source] ?? source, { ...options, backend: "cpu" });
    loaded.push(engine);
    return engine;
  }
}

/** Returns the values of a program's imports. @param {string} code */
function imported(code) {
  return [...code.matchAll(/^import \{ ([\w, ]+) \} from "(.*)";$/gm)].flatMap(([, names, from]) =>
    names.split(", ").map((name) => {
      if (!(name in MODULES[from])) throw new Error(`${from} has no ${name}`);
      return [name, /** @type {any} */ (MODULES[from])[name]];
    }),
  );
}

/** Runs a program, with the variables that the text around it assumes. @param {string} code */
async function run(code) {
  const turns = () => [{ role: "user", content: "Is it warm in Paris?" }];
  const scope = {
    // The model with the fixed answer cannot follow a format.
    engine: await Found.load(code.includes("response_format") ? gab : texts),
    messages: turns(),
    mine: turns(),
    yours: turns(),
    url: texts,
    call: async () => "25 degrees",
    output: { append() {} },
    note: {},
    ...Object.fromEntries(imported(code)),
    AnyGpu: Found,
  };
  // The code runs in a block of its own, since it may declare names that are also parameters.
  const body = `{ ${code.replace(/^import .*$/gm, "")}\nreturn typeof textStream === "undefined" ? [] : textStream; }`;
  for await (const _ of await new AsyncFunction(...Object.keys(scope), body)(...Object.values(scope)));
}

const checks = [root, own].flatMap((file, at) =>
  programs(file)
    .filter(({ code }) => !ELSEWHERE.some((one) => one.test(code)))
    .map(({ code, line }) => {
      const check = async () => {
        try {
          await run(code);
        } finally {
          await Promise.all(loaded.map((engine) => engine.dispose()));
          loaded = [];
        }
      };
      return /** @type {const} */ ([`${at === 0 ? "README.md" : "js/README.md"}, line ${line}`, check]);
    }),
);
if (checks.length < 10) throw new Error(`only ${checks.length} programs were found`);
// A program's output may not end with a line break.
console.log(`\n${JSON.stringify(await checked(Object.fromEntries(checks)))}`);
