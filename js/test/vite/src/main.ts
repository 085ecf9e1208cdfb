// A program like a user's, and more; the results go to the server that served the page.
import { AnyGpu, BackendError, ChecksumError, type ChatMessage, type LoadProgress } from "anygpu";
import { formats } from "../page/check.js";
import { rendered } from "./component";

interface Result {
  name: string;
  ok: boolean;
  message?: string;
}

const results: Result[] = [];

async function check(name: string, action: () => Promise<void>): Promise<void> {
  try {
    await action();
    results.push({ name, ok: true });
  } catch (error) {
    results.push({ name, ok: false, message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

function equal(actual: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error("it was not refused");
    },
    (error: unknown) => error,
  );
}

const MODEL = "model.gguf";
const STORY = ", there was a little dragon";

for (const worker of [true, false]) {
  const where = worker ? "in a worker" : "on this thread";

  await check(`${where}: loads from the network, streams a story, is disposed of`, async () => {
    const phases: LoadProgress["phase"][] = [];
    const engine = await AnyGpu.load(MODEL, { backend: "cpu", worker, onProgress: ({ phase }) => phases.push(phase) });
    equal(engine.info.thread, worker ? "worker" : "main");
    equal(engine.report.chosen, "cpu");
    equal(phases[0], "connect");
    equal(phases.at(-1), "ready");
    let text = "";
    let tokens = 0;
    const request = { prompt: "Once upon a time", max_tokens: 6 };
    for await (const part of engine.completions.create({ ...request, stream: true })) {
      text += part.choices[0]?.text;
      tokens = part.usage?.completion_tokens ?? tokens;
    }
    equal([text, tokens], [STORY, 6]);
    const whole = await engine.completions.create(request);
    equal(whole.choices[0].text, STORY);
    equal(await engine.decode(whole.tokens), STORY);
    await engine.dispose();
    equal((await rejection(engine.completions.create(request)) as Error).name, "DisposedError");
  });

  await check(`${where}: the second load comes from the cache`, async () => {
    await using engine = await AnyGpu.load(MODEL, { backend: "cpu", worker });
    equal(engine.info.cache, { state: "hit" });
  });

  await check(`${where}: an abort ends a generation, and the engine stays usable`, async () => {
    const engine = await AnyGpu.load(new URL(MODEL, location.href), { backend: "cpu", worker });
    const controller = new AbortController();
    const request = { prompt: "The dragon", max_tokens: 200, stream: true, signal: controller.signal } as const;
    const reading = async () => {
      for await (const _ of engine.completions.create(request)) controller.abort(new Error("enough"));
    };
    equal((await rejection(reading()) as Error).message, "enough");
    const next = await engine.completions.create({ prompt: "Once upon a time", max_tokens: 6 });
    equal(next.choices[0].text, STORY);
    await engine.dispose();
  });

  await check(`${where}: a wrong digest is refused, and nothing is kept`, async () => {
    await AnyGpu.cache.clear();
    const error = await rejection(AnyGpu.load(MODEL, { backend: "cpu", worker, sha256: "0".repeat(64) }));
    if (!(error instanceof ChecksumError)) throw error;
    equal(await AnyGpu.cache.list(), []);
  });
}

await check("webgl gives the same story", async () => {
  const engine = await AnyGpu.load(MODEL, { backend: "webgl" });
  const answer = await engine.completions.create({ prompt: "Once upon a time", max_tokens: 6 });
  equal([engine.info.backend, answer.choices[0].text], ["webgl", STORY]);
  await engine.dispose();
});

await check("a blob loads as well, and the cache is left alone", async () => {
  const blob = await (await fetch(MODEL)).blob();
  await AnyGpu.cache.clear();
  const engine = await AnyGpu.load(new File([blob], "chosen.gguf"), { backend: "cpu" });
  const messages: ChatMessage[] = [{ role: "user", content: "A story, please." }];
  equal(engine.info.file_bytes, blob.size);
  equal((await engine.encode(engine.info.has_chat ? messages : "Once upon a time")).length > 0, true);
  equal((await AnyGpu.cache.usage()).entries, 0);
  await engine.dispose();
});

await check("a backend that is not there is refused with a report", async () => {
  // The browser was started without WebGPU.
  const error = await rejection(AnyGpu.load(MODEL, { backend: "webgpu" }));
  if (!(error instanceof BackendError)) throw error;
  equal(error.report?.rungs.some((rung) => rung.outcome.kind === "rejected"), true);
});

for (const listed of [false, true]) {
  await check(`a hook of React loads a model by its address${listed ? " in a list" : ""}, and disposes of it`, async () => {
    equal(await rendered(MODEL, listed), STORY);
  });
}

await check("answers have the format that is asked for", () => formats(AnyGpu));

await check("a part of the suite passes", async () => {
  let cases = 0;
  const report = await AnyGpu.conformance({ backend: "cpu", op: "softmax", onCase: () => (cases += 1) });
  equal([report.failed, report.passed > 0, report.passed === cases], [0, true, true]);
});

await fetch("report", { method: "POST", body: JSON.stringify(results) });
