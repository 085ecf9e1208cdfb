// A program that uses the package. Its arguments are model files: one, one with a chat template, and one for chat. It
// prints the results.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { relative } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { AnyGpu, FileError } from "anygpu";
import { STORY, checked, formats, stops, tells } from "./page/check.js";

const [, , story, talker, chat] = argv;

/** @param {(url: string) => Promise<unknown>} action */
async function served(action) {
  const server = createServer(async (_, response) => response.end(await readFile(story)));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  try {
    await action(`http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}/model.gguf`);
  } finally {
    server.close();
  }
}

/** @param {string} where */
async function isMissing(where) {
  const error = await AnyGpu.load(where).catch((error) => error);
  if (!(error instanceof FileError) || !error.message.includes("check the path")) throw error;
}

const results = await checked({
  "a path": () => tells(AnyGpu, {}, story),
  "a path from here": () => tells(AnyGpu, {}, relative(".", story)),
  "a file URL": () => tells(AnyGpu, {}, pathToFileURL(story)),
  "an address": () => served((url) => tells(AnyGpu, {}, url)),
  "bytes": async () => tells(AnyGpu, {}, await readFile(story)),
  "an answer in a format": () => formats(AnyGpu, {}, talker),
  "a generation that is left, aborted or disposed of ends": () => stops(AnyGpu, {}, story),
  "a model without a chat template does not chat": async () => {
    const engine = await AnyGpu.load(story, { backend: "cpu" });
    const messages = [{ role: "user", content: "A story, please." }];
    const error = await engine.chat.completions.create({ messages }).catch((error) => error);
    const encoding = await engine.encode(messages).catch((error) => error);
    const reading = async () => {
      for await (const _ of engine.chat.completions.create({ messages, stream: true }));
    };
    for (const refused of [error, encoding, await reading().catch((error) => error)]) {
      if (!(refused instanceof FileError) || refused.code !== "template" || !refused.message.includes("completions")) throw refused;
    }
    await engine.dispose();
  },
  "a file that is not there": () => isMissing("no such file.gguf"),
  "on this thread, whatever is there": async () => {
    const engine = await AnyGpu.load(story, { worker: false });
    const answer = await engine.completions.create({ prompt: "Once upon a time", max_tokens: 6 });
    const { thread, rungs } = engine.report;
    await engine.dispose();
    // Rungs that were not chosen have a reason.
    const silent = rungs.filter(({ outcome }) => outcome.kind === "rejected" && !outcome.reason);
    if (thread !== "main" || answer.choices[0].text !== STORY || silent.length > 0) throw new Error(JSON.stringify([thread, answer, silent]));
  },
  "the suite": async () => {
    const { passed, failed, thread } = await AnyGpu.conformance({ backend: "cpu", op: "softmax" });
    if (failed > 0 || passed === 0 || thread !== "worker") throw new Error(`${thread}: ${passed} passed, ${failed} failed`);
  },
  ...(chat === undefined ? {} : {
    "a conversation": async () => {
      const engine = await AnyGpu.load(chat, { backend: "cpu" });
      const messages = [{ role: "user", content: "What is the capital of France?" }];
      let text = "";
      for await (const part of engine.chat.completions.create({ messages, stream: true, max_tokens: 12 })) {
        text += part.choices[0]?.delta.content ?? "";
      }
      await engine.dispose();
      if (!text.includes("Paris")) throw new Error(text);
    },
  }),
});
console.log(JSON.stringify(results));
