// Another tab of the same site, in a frame of the checking page. It asks in a stored session, or continues what another
// tab asked there, and reports each token until it is closed.

import { AnyGpu } from "/below/a/path/anygpu/src/index.js";

const say = (message) => parent.postMessage(message, location.origin);

async function main() {
  const { url, load, request, session } = JSON.parse(new URLSearchParams(location.search).get("what"));
  try {
    const engine = await AnyGpu.load(url, load);
    say({ asked: true });
    let tokens = 0;
    const isBegun = (await engine.sessions.list()).some(({ name }) => name === session);
    const { completions } = engine;
    const stream = isBegun ? completions.resume(session) : completions.create({ ...request, stream: true }, { session });
    for await (const chunk of stream) {
      if (chunk.token !== undefined) say({ tokens: ++tokens });
    }
    await engine.dispose();
    say({ ended: true });
  } catch (error) {
    say({ error: `${error?.name}: ${error?.message}` });
  }
}

main();
