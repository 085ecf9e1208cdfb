// Times other engines like this one, in the same browser and run. `js/test/peers` has their versions.

import { beat, median, modelNamed, options } from "./run.js";

/** Number of batches, the least number, and the time limit; the same as in this engine's own measurements. */
const BATCHES = 15, LEAST = 3, ENOUGH_MS = 2000;

/** Loads a classic script. */
function script(path) {
  return new Promise((resolve, reject) => {
    const element = document.createElement("script");
    element.src = `/peers/${path}`;
    element.onload = resolve;
    element.onerror = () => reject(new Error(`${path} is not there; see cargo xtask bench --help`));
    document.head.append(element);
  });
}

/** Returns an operator of TF.js by its name in the engine's list, such as `mm 1x576x1536`. */
function operator(tf, name) {
  const [, kind, sizes] = /^(\w+) ([\dx]+)$/.exec(name);
  const [rows, cols, n] = sizes.split("x").map(Number);
  const x = tf.randomUniform([rows, cols], -1, 1);
  switch (kind) {
    case "mm": {
      const b = tf.randomUniform([cols, n], -1, 1);
      return () => tf.matMul(x, b);
    }
    case "softmax":
      return () => tf.softmax(x);
    case "layernorm": {
      const gamma = tf.randomUniform([cols]), beta = tf.randomUniform([cols]);
      return () => tf.tidy(() => {
        const { mean, variance } = tf.moments(x, 1, true);
        return tf.add(tf.mul(tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5))), gamma), beta);
      });
    }
    case "rmsnorm": {
      const gamma = tf.randomUniform([cols]);
      return () => tf.tidy(() => tf.mul(tf.mul(x, tf.rsqrt(tf.add(tf.mean(tf.square(x), 1, true), 1e-5))), gamma));
    }
    case "gelu":
      return () => tf.tidy(() => {
        const inner = tf.mul(tf.add(x, tf.mul(tf.mul(tf.square(x), x), 0.044715)), Math.sqrt(2 / Math.PI));
        return tf.mul(tf.mul(x, 0.5), tf.add(tf.tanh(inner), 1));
      });
    default:
      throw new Error(`there is no ${kind} to compare with`);
  }
}

/** Runs a report's operators with TF.js: a number of them queued, then one read. */
export async function ops({ backend, queued, ops }) {
  if (backend === "cpu") return { text: "TF.js is compared on GPUs only", ops: [] };
  await script("@tensorflow/tfjs-core/dist/tf-core.min.js");
  await script("@tensorflow/tfjs-backend-cpu/dist/tf-backend-cpu.min.js");
  await script(`@tensorflow/tfjs-backend-${backend}/dist/tf-backend-${backend}.min.js`);
  const { tf } = globalThis;
  if (!(await tf.setBackend(backend))) throw new Error(`TF.js does not start on ${backend}`);
  await tf.ready();
  const rows = [];
  for (const op of new Set(ops.map(({ op }) => op))) {
    const run = operator(tf, op);
    const batch = async () => {
      const begin = performance.now();
      const results = Array.from({ length: queued }, run);
      await results[results.length - 1].data();
      const ms = (performance.now() - begin) / queued;
      results.forEach((tensor) => tensor.dispose());
      beat();
      return ms;
    };
    await batch();
    const times = [], begin = performance.now();
    while (times.length < LEAST || (times.length < BATCHES && performance.now() - begin < ENOUGH_MS)) {
      times.push(await batch());
    }
    // The faster of this engine's variants counts.
    const own = Math.min(...ops.filter((own) => own.op === op).map((own) => own.ms.median));
    const ms = spread(times);
    rows.push({ op, ms, ratio: own / ms.median });
  }
  const version = `TF.js ${tf.version_core} ${backend}`;
  const lines = rows.map(({ op, ms, ratio }) => `${op.padEnd(26)} ${ms.median.toFixed(3).padStart(10)} ${ratio.toFixed(3).padStart(10)}`);
  return { engine: version, queued, ops: rows, text: [`${version}: ms an operator, and anygpu's time over it`, ...lines].join("\n") };
}

/** Returns words that are one token each in the vocabularies at hand. The first one differs between runs. */
export const words = (run, tokens) => ["One", "Two", "The", "For", "And", "But", "All", "Now"][run % 8] + " and".repeat(tokens - 1);

/**
 * Opens a model in wllama, from a blob, which is also how it loads from an address. Without cross-origin isolation it
 * has one thread.
 */
export async function open(model, nCtx) {
  const { Wllama } = await import("/peers/@wllama/wllama/esm/index.js");
  const quiet = { debug() {}, log() {}, warn() {}, error() {} };
  const engine = new Wllama({ default: "/peers/@wllama/wllama/esm/wasm/wllama.wasm" }, { suppressNativeLog: true, logger: quiet });
  const blob = await (await fetch(`/files/${modelNamed(model).file}`)).blob();
  const begin = performance.now();
  await engine.loadModel([blob], { n_ctx: nCtx, n_threads: options.threads, n_gpu_layers: 0 });
  return { engine, load_ms: performance.now() - begin, threads: engine.getNumThreads() };
}

/** Returns the median, the ends and the number of times. */
function spread(times) {
  return { median: median(times), min: Math.min(...times), max: Math.max(...times), n: times.length };
}

/** Runs the model of a report with wllama. */
export async function model(report) {
  const { prefill_tokens: prefill, decode_tokens: decode } = report;
  const { engine, load_ms, threads } = await open(report.model, prefill + decode + 64);
  const runs = [];
  for (let run = 0; run <= options.repeat; run++) {
    let timings;
    await engine.createCompletion({
      prompt: words(run, prefill), max_tokens: decode, temperature: 0, ignore_eos: true, stream: true,
      onData: (chunk) => {
        beat();
        timings = chunk.timings ?? timings;
      },
    });
    if (run > 0) runs.push(timings);
  }
  await engine.exit();
  const tokens = median(runs.map((timings) => timings.prompt_n));
  const prefill_ms = spread(runs.map((timings) => (1000 * timings.prompt_n) / timings.prompt_per_second));
  const decode_ms_per_token = spread(runs.map((timings) => 1000 / timings.predicted_per_second));
  const found = { prefill: (1000 * tokens) / prefill_ms.median, decode: 1000 / decode_ms_per_token.median };
  const ratios = { prefill: report.prefill_tokens_per_s / found.prefill, decode: report.decode_tokens_per_s / found.decode };
  const name = `wllama, ${threads} thread${threads > 1 ? "s" : ""}`;
  const range = ({ min, max, n }) => `(${min.toFixed(1)} to ${max.toFixed(1)} ms, n ${n})`;
  const text =
    `${name}, ${report.model}: prefill of ${tokens} ${found.prefill.toFixed(1)} tokens/s ${range(prefill_ms)}, decode ` +
    `${found.decode.toFixed(1)} tokens/s ${range(decode_ms_per_token)}; anygpu on ${report.backend} is ` +
    `${ratios.prefill.toFixed(2)} and ${ratios.decode.toFixed(2)} times as fast`;
  return {
    engine: name, threads, model: report.model, prefill_tokens: tokens, decode_tokens: decode, load_ms,
    prefill_ms, decode_ms_per_token, prefill_tokens_per_s: found.prefill, decode_tokens_per_s: found.decode,
    prefill_ratio: ratios.prefill, decode_ratio: ratios.decode, text,
  };
}
