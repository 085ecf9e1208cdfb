// Checks of one engine: streams, aborts, the order of requests, disposal.

import { errors, options } from "../run.js";
import { assert, equal, load, rejection, speaks } from "../expect.js";

const request = { prompt: "Once upon a time", max_tokens: 64, ignore_eos: true };

export default {
  "an abort during a generation leaves the engine usable": async () => {
    const engine = await load();
    const controller = new AbortController();
    const stream = engine.completions.create({ ...request, signal: controller.signal, stream: true });
    const read = async () => {
      let chunks = 0;
      for await (const chunk of stream) if (++chunks === 3) controller.abort();
    };
    await rejection(read(), "AbortError");
    await speaks(engine);
    await engine.dispose();
  },

  "leaving a stream early ends it": async () => {
    const engine = await load();
    for await (const chunk of engine.completions.create({ ...request, stream: true })) {
      assert(chunk.object === "text_completion", `a chunk is ${chunk.object}`);
      break;
    }
    await speaks(engine);
    await engine.dispose();
  },

  "generations of one engine wait for each other": async () => {
    const engine = await load();
    await Promise.all([speaks(engine), speaks(engine)]);
    await engine.dispose();
  },

  "the parts of a stream make the whole": async () => {
    const engine = await load();
    const once = { ...request, max_tokens: 8 };
    const whole = await engine.completions.create(once);
    let text = "";
    for await (const chunk of engine.completions.create({ ...once, stream: true })) text += chunk.choices[0].text;
    equal(text, whole.choices[0].text, "the text of the parts");
    equal(whole.usage.total_tokens, whole.usage.prompt_tokens + 8, "the tokens in all");
    await engine.dispose();
  },

  "what kernels make is told while somebody listens": async () => {
    const engine = await load();
    const once = { ...request, max_tokens: 12 };
    const unwatched = (await engine.completions.create(once)).choices[0].text;
    const steps = [];
    const stop = engine.on("step", (step) => steps.push(step));
    equal((await engine.completions.create(once)).choices[0].text, unwatched, "the text while it is watched");
    assert(steps.length > 0, "no step was told");
    const length = (await engine.encode(request.prompt)).length;
    steps.forEach(({ position, matrices }, at) => {
      assert(position >= length - 1 && position < length + 11, `a step is at ${position}`);
      assert(at === 0 || position > steps[at - 1].position, "a step was told late");
      for (const { rows, cols, values, kernel } of matrices) equal(values.length, rows * cols, `the values of ${kernel}`);
      const downs = matrices.filter(({ subject }) => subject.includes("ffn_down"));
      assert(downs.length > 1 && downs.every(({ values }) => values.some((value) => value !== 0)), "nothing is in a matrix");
    });
    const { length: told } = steps;
    stop();
    equal((await engine.completions.create(once)).choices[0].text, unwatched, "the text afterwards");
    equal(steps.length, told, "the steps that were told");
    await engine.dispose();
  },

  "a prompt that does not fit": async () => {
    const engine = await load();
    const prompt = new Array(200).fill(5);
    await rejection(engine.completions.create({ prompt, max_tokens: 4 }), errors.ContextError);
    await speaks(engine);
    await engine.dispose();
  },

  "an option that makes no sense": async () => {
    await rejection(load(undefined, { backend: "quantum" }), errors.OptionsError);
  },

  "the end of an engine": async () => {
    const engine = await load();
    equal(engine.info.thread, engine.report.thread, "the thread in the report");
    const under = engine.completions.create(request);
    const failed = rejection(under, errors.DisposedError);
    await engine.dispose();
    await failed;
    await rejection(engine.completions.create(request), errors.DisposedError);
    await engine.dispose();
    if (!options.worker) equal(engine.info.thread, "main", "the thread");
  },
};
