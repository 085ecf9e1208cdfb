// The device: given back whole, and lost at bad moments. On this thread, where its objects can be counted.

import { AnyGpu, errors, options, sleep } from "../run.js";
import { assert, equal, load, rejection, speaks, works } from "../expect.js";
import { living, lose } from "../instrument.js";

const here = { worker: false };
const request = { prompt: "Once upon a time", max_tokens: 100, ignore_eos: true };

function nothingLives(when) {
  const objects = living();
  equal(Object.keys(objects).length, 0, `the kinds of objects that live ${when} (${JSON.stringify(objects)})`);
}

export default {
  "a disposed engine leaves no object behind": async () => {
    nothingLives("before");
    const engine = await load(undefined, here);
    await speaks(engine);
    if (options.backend !== "cpu") assert(Object.keys(living()).length, "no object was seen to be made");
    await engine.dispose();
    nothingLives("afterwards");
  },

  "a failed load leaves no object behind": async () => {
    const controller = new AbortController();
    const onProgress = ({ fraction }) => fraction > 0.6 && controller.abort();
    await rejection(load(undefined, { ...here, onProgress, signal: controller.signal }), "AbortError");
    // What was under way ends after the promise.
    await sleep(500);
    nothingLives("after an abort");
  },

  "a device lost while loading": async () => {
    if (options.backend === "cpu") return "the CPU is not lost";
    let lost = false;
    const onProgress = ({ phase, fraction }) => {
      if (lost || phase === "connect" || phase === "select" || fraction < 0.5) return;
      lost = true;
      lose(options.backend);
    };
    await rejection(load(undefined, { ...here, onProgress, cache: true }), errors.DeviceLostError);
    assert(lost, "the device was not lost");
    // The file is not to blame: what arrived of it is used the next time.
    const [entry] = await AnyGpu.cache.list();
    assert(entry === undefined || entry.stored <= entry.size, "more is kept than there is");
    await works(undefined, { ...here, cache: true });
    await works(undefined, here);
  },

  "a device lost while nothing happens": async () => {
    if (options.backend === "cpu") return "the CPU is not lost";
    const engine = await load(undefined, here);
    await speaks(engine);
    lose(options.backend);
    await rejection(engine.completions.create(request), errors.DeviceLostError);
    assert((await engine.lost) instanceof errors.DeviceLostError, "nobody was told");
    await engine.dispose();
  },

  "a device lost while generating": async () => {
    if (options.backend === "cpu") return "the CPU is not lost";
    const engine = await load(undefined, here);
    const read = async () => {
      let chunks = 0;
      for await (const chunk of engine.completions.create({ ...request, stream: true })) {
        if (++chunks === 3) lose(options.backend);
      }
    };
    await rejection(read(), errors.DeviceLostError);
    await rejection(engine.completions.create(request), errors.DeviceLostError);
    await engine.dispose();
    await works(undefined, here);
  },
};
