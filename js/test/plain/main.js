/** Runs on a page of another origin, which may read everything of this one except the files in `closed`. */

import { AnyGpu, NetworkError } from "./node_modules/anygpu/src/index.js";
import { checked, formats, posted, tells } from "./page/check.js";

/** @param {string} origin Origin of this script. */
export async function run(origin) {
  const model = `${origin}/model.gguf`;
  const talker = `${origin}/talker.gguf`;
  const told = { workerUrl: `${origin}/node_modules/anygpu/src/worker.js`, wasmUrl: `${origin}/node_modules/anygpu/wasm` };
  const refused = async () => {
    const error = await AnyGpu.load(`${origin}/closed/model.gguf`).catch((error) => error);
    if (!(error instanceof NetworkError) || !/\(CORS\)/.test(error.message)) throw error;
  };
  const results = await checked({
    "loads in a worker of its own, streams a story, is disposed of": () => tells(AnyGpu, {}, model),
    "answers in a format": () => formats(AnyGpu, {}, talker),
    "takes a worker from where it is told": () => tells(AnyGpu, told, model),
    "takes that of formats from there, too": () => formats(AnyGpu, told, talker),
    "runs the suite in a worker": async () => {
      const { thread, failed, passed } = await AnyGpu.conformance({ backend: "cpu", op: "softmax" });
      if (thread !== "worker" || failed > 0 || passed === 0) throw new Error(`${thread}: ${passed} passed, ${failed} failed`);
    },
    "says that a server bars other origins": refused,
  });
  await posted(results);
}
