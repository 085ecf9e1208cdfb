// Checks of the device: all its objects are released, and its loss at bad moments is handled. They run on this thread,
// where its objects can be counted.

import { AnyGpu, errors, options, sleep } from "../run.js";
import { assert, equal, load, rejection, speaks, works } from "../expect.js";
import { endWorker, hangWorker, living, lose, loseOnceMapped } from "../instrument.js";

const here = { worker: false };
/** A model that loads quickly. */
const TINY = "/files/llama-q4_0.gguf";
const request = { prompt: "Once upon a time", max_tokens: 24, ignore_eos: true };

async function textOf(engine, sampling = {}) {
  return (await engine.completions.create({ ...request, ...sampling })).choices[0].text;
}

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
    // Work in progress ends later than the promise.
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
    // The file is not at fault, so the downloaded part is used the next time.
    const [entry] = await AnyGpu.cache.list();
    assert(entry === undefined || entry.stored <= entry.size, "more is kept than there is");
    await works(undefined, { ...here, cache: true });
    await works(undefined, here);
  },

  "a device lost between two writes to memory that is mapped": async () => {
    if (options.backend !== "webgpu") return "this is about WebGPU";
    let losses = 0;
    for (const times of [4, 5, 6, 7]) {
      loseOnceMapped(times);
      try {
        await (await load(undefined, here)).dispose();
      } catch (error) {
        assert(error instanceof errors.DeviceLostError, `${error}, where DeviceLostError is due`);
        losses += 1;
      }
    }
    assert(losses > 0, "no device was lost while a model was loaded");
    loseOnceMapped(Infinity);
    await works(undefined, here);
  },

  "a device lost while nothing happens": async () => {
    if (options.backend === "cpu") return "the CPU is not lost";
    const engine = await load(undefined, here);
    const text = await textOf(engine);
    const told = [];
    engine.on("recovered", (event) => told.push(event));
    lose(options.backend);
    equal(await textOf(engine), text, "the text after a loss");
    equal(told.length, 1, "the times that a recovery was told");
    await engine.dispose();
  },

  "a device lost while generating": async () => {
    if (options.backend === "cpu") return "the CPU is not lost";
    const engine = await load(undefined, here);
    for (const sampling of [{}, { temperature: 1, seed: 9 }]) {
      const text = await textOf(engine, sampling);
      const told = [];
      const stop = engine.on("recovered", (event) => told.push(event));
      let [chunks, found] = [0, ""];
      for await (const chunk of engine.completions.create({ ...request, ...sampling, stream: true })) {
        if (++chunks === 3) lose(options.backend);
        found += chunk.choices[0]?.text ?? "";
      }
      equal(found, text, "the text during which the device was lost");
      equal(told.length, 1, "the times that a recovery was told");
      stop();
    }
    await engine.dispose();
  },

  "a worker that ends while generating, and while nothing happens": async () => {
    if (navigator.locks === undefined) return "this browser does not tell that a worker has ended";
    const engine = await load(undefined, { worker: true });
    if (engine.info.thread !== "worker") return "the engine is not in a worker here";
    const sampling = { temperature: 1, seed: 9 };
    const text = await textOf(engine, sampling);
    const told = [];
    engine.on("recovered", (event) => told.push(event));
    let [chunks, found] = [0, ""];
    // The worker hangs until it is terminated, however slow this page is.
    hangWorker(3);
    for await (const chunk of engine.completions.create({ ...request, ...sampling, stream: true })) {
      if (++chunks === 3) endWorker();
      found += chunk.choices[0]?.text ?? "";
    }
    equal(found, text, "the text during which the worker ended");
    endWorker();
    equal(await textOf(engine, sampling), text, "the text after the worker ended");
    equal(told.length, 2, "the times that a recovery was told");
    await engine.dispose();
  },

  "a worker that hangs while generating, and while it is asked": async () => {
    const engine = await load(TINY, { backend: "cpu", worker: true, workerTimeout: 2000 });
    if (engine.info.thread !== "worker") return "the engine is not in a worker here";
    const asked = { ...request, prompt: [1, 2, 3], temperature: 1, seed: 9 };
    const { tokens } = await engine.completions.create(asked);
    const told = [];
    engine.on("recovered", ({ reason }) => told.push(reason));
    const found = [];
    hangWorker(3);
    for await (const { token } of engine.completions.create({ ...asked, stream: true })) {
      if (token !== undefined) found.push(token);
    }
    equal(found.join(), tokens.join(), "the tokens during which the worker hung");
    hangWorker();
    equal((await engine.completions.create(asked)).tokens.join(), tokens.join(), "the tokens after it hung");
    equal(told.length, 2, "the times that a recovery was told");
    assert(told.every((reason) => reason.includes("no sign of life")), told.join());
    await engine.dispose();
  },

  "a device that is lost again and again": async () => {
    if (options.backend === "cpu") return "the CPU is not lost";
    // All rungs of the backend stay allowed: WebGPU has two, and WebGL three.
    const engine = await load(TINY, here);
    const asked = { ...request, prompt: [1, 2, 3] };
    const told = [];
    engine.on("recovered", () => told.push(engine.report.chosen));
    const first = engine.report.chosen;
    let tokens = 0;
    for await (const chunk of engine.completions.create({ ...asked, stream: true })) {
      if (chunk.token === undefined) continue;
      tokens += 1;
      if (tokens % 6 === 3 && tokens < 18) lose(options.backend);
    }
    equal(tokens, asked.max_tokens, "the number of tokens");
    equal(told.slice(0, 2).join(), [first, first].join(), "the rungs after two losses");
    equal(told.length, 3, "the times that a recovery was told");
    assert(told[2] !== first, `${first} was lost three times and took over again`);
    await engine.dispose();
  },

  "a device lost after old tokens made room": async () => {
    if (options.backend === "cpu") return "the CPU is not lost";
    const engine = await load(undefined, { ...here, nCtx: 16 });
    const shift = { ...request, max_tokens: 26, overflow: "shift", temperature: 1, seed: 5 };
    const undisturbed = await engine.completions.create(shift);
    equal(undisturbed.overflow.times, 2, "the times that room was made");
    const told = [];
    engine.on("recovered", (event) => told.push(event));
    let [tokens, last] = [0, null];
    for await (const chunk of engine.completions.create({ ...shift, stream: true })) {
      if (chunk.token !== undefined && ++tokens === 15) lose(options.backend);
      last = chunk;
    }
    equal(last.tokens.join(), undisturbed.tokens.join(), "the tokens during which the device was lost");
    equal(last.overflow.dropped_tokens, undisturbed.overflow.dropped_tokens, "the tokens that made room");
    equal(told.length, 1, "the times that a recovery was told");
    await engine.dispose();
  },

  "a session goes on in another engine": async () => {
    const engine = await load(undefined, here);
    const sampled = { ...request, temperature: 1, seed: 4 };
    const whole = await textOf(engine, { temperature: 1, seed: 4 });
    const begin = await engine.completions.create({ ...sampled, max_tokens: 10 });
    const session = await engine.export();
    await engine.dispose();
    const other = await load(undefined, { ...here, session });
    const end = await other.completions.create({ ...sampled, prompt: await other.tokens(), max_tokens: 14 });
    equal(begin.choices[0].text + end.choices[0].text, whole, "the text in two parts");
    // The last token was sampled, but not computed.
    equal(end.usage.prompt_tokens - end.usage.cached_tokens, 1, "the tokens that were computed again");
    await other.dispose();
    await rejection(load(undefined, { ...here, session: new Uint8Array(100) }), errors.OptionsError);
  },
};
