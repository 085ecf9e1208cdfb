// Another tab of the same site, in a frame of the disturbing page. It holds a conversation, reports how that goes, and
// loses its device or its worker on request.

import { AnyGpu } from "/below/a/path/anygpu/src/index.js";
import { endWorker, lose } from "./instrument.js";

const { url, load, turns, first, session, texts } = JSON.parse(new URLSearchParams(location.search).get("what"));
const say = (message) => parent.postMessage(message, location.origin);

/** Resolve once the other page asks for a turn. */
const wanted = turns.map(() => {
  let go;
  return { promise: new Promise((resolve) => (go = resolve)), go };
});

addEventListener("message", ({ data }) => {
  if (data.lose === "device") lose(load.backend);
  if (data.lose === "worker") endWorker();
  if (data.turn !== undefined) wanted[data.turn].go();
});

/** Loads the model, with as many attempts as needed, since loads fail when they are disturbed. */
async function open() {
  for (let attempt = 1; ; attempt++) {
    try {
      const engine = await AnyGpu.load(url, { ...load, onProgress: ({ phase, fraction }) => say({ phase, fraction }) });
      return engine;
    } catch (error) {
      if (attempt === 3 || !["lost", "crash"].includes(error.code)) throw error;
    }
  }
}

/** Whether a text begins with another. */
const begins = (text, beginning) => text.length >= beginning.length && beginning.every((token, at) => text[at] === token);

async function main() {
  try {
    const engine = await open();
    engine.on("recovered", ({ ms }) => say({ recovered: ms }));
    let prompt = [];
    for (const [turn, { words, request }] of turns.entries()) {
      prompt = [...prompt, ...(await engine.encode(words))];
      if (turn < first) {
        prompt.push(...texts[turn]);
        continue;
      }
      say({ loaded: turn });
      await wanted[turn].promise;
      say({ asked: turn });
      const known = Array.from(await engine.tokens({ session }));
      const stream = begins(known, prompt)
        ? engine.completions.resume(session)
        : engine.completions.create({ ...request, prompt, stream: true }, { session });
      const tokens = [];
      for await (const chunk of stream) {
        if (chunk.token === undefined) continue;
        tokens.push(chunk.token);
        say({ turn, tokens: tokens.length });
      }
      prompt.push(...tokens);
      say({ turn, answer: tokens });
    }
    await engine.dispose();
    say({ ended: true });
  } catch (error) {
    say({ error: `${error?.name} (${error?.code}): ${error?.message}` });
  }
}

main();
