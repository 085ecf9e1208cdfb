// Another tab of the same site, in a frame of the checking page. It loads a model, and reports how that goes.

import { AnyGpu } from "/below/a/path/anygpu/src/index.js";

const query = new URLSearchParams(location.search);
const say = (message) => parent.postMessage(message, location.origin);

async function main() {
  const onProgress = (progress) => say({ progress });
  const options = { backend: query.get("backend"), worker: query.get("worker") !== "false", nCtx: 128, cache: "require" };
  try {
    const engine = await AnyGpu.load(query.get("url"), { ...options, onProgress });
    say({ cache: engine.info.cache });
    await engine.dispose();
  } catch (error) {
    say({ error: `${error?.name}: ${error?.message}` });
  }
}

main();
