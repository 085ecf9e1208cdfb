// Checks of the selection: the chosen backend, and the report on the others.

import { AnyGpu, PACKAGE, errors, options } from "../run.js";
import { FILE, assert, equal, load, rejection, requests, speaks } from "../expect.js";
import { hide, hideExtensions, hinder } from "../instrument.js";

/** GPU backend that a browser should choose as it is started here. Old ones have no WebGPU, or no adapter. */
const GPU = { chromium: options.version === null ? "webgpu" : "webgl", firefox: options.backend === "webgpu" ? "webgpu" : "webgl", webkit: "webgl" };

/** Whether this browser needs the older build: Chromium before 96 lacks features that the current one needs. */
const isOlder = Number(/Chrome\/(\d+)/.exec(navigator.userAgent)?.[1] ?? Infinity) < 96;

/** Returns how often a module was downloaded, from the build for current or for older browsers. */
const downloads = (name, older = isOlder) => requests(`${PACKAGE}/wasm/${older ? "older/" : ""}${name}_bg.wasm`);

/** Loads on WebGL while workers cannot run it, so the page's own thread must. */
async function onThePage(hindrance) {
  if (options.backend !== "webgl") return "this is about WebGL";
  const restore = hinder(hindrance);
  try {
    const { info, report } = await chosen("webgl", { worker: true });
    equal(info.thread, "main", "the thread");
    assert(report.thread_reason, "no reason was given");
  } finally {
    restore();
  }
}

/** Checks that each rung has a time, or a reason why it has none. */
function complete(report) {
  for (const { name, outcome, matvec_ms } of report.rungs) {
    const told = outcome.kind === "chosen" || outcome.kind === "slower" ? matvec_ms !== null : outcome.reason;
    assert(told, `the rung ${name} (${outcome.kind}) has neither a time nor a reason`);
  }
  equal(report.rungs.filter(({ outcome }) => outcome.kind === "chosen").length, 1, "the number of rungs chosen");
}

async function chosen(backend, more) {
  const engine = await load(undefined, { backend, ...more });
  await speaks(engine);
  await engine.dispose();
  complete(engine.report);
  return engine;
}

export default {
  "the backend asked for": async () => {
    const { info } = await chosen(options.backend);
    if (options.backend !== "auto" && options.backend !== "gpu") equal(info.backend, options.backend, "the backend");
    assert(info.adapter, "the adapter has no name");
  },

  "auto takes the fastest": async () => {
    const { report } = await chosen("auto");
    const timed = report.rungs.filter(({ matvec_ms }) => matvec_ms !== null);
    const best = Math.min(...timed.map(({ matvec_ms }) => matvec_ms));
    const taken = timed.find(({ outcome }) => outcome.kind === "chosen");
    // A GPU that is about as fast is preferred, since it leaves the CPU to the page.
    assert(taken.matvec_ms <= 2 * best, `${taken.name} takes ${taken.matvec_ms} ms, the fastest ${best} ms`);
  },

  "gpu takes the best GPU": async () => {
    const { info } = await chosen("gpu");
    equal(info.backend, GPU[options.browser], "the backend");
  },

  "WebGL2 without any extension": async () => {
    if (options.backend !== "webgl") return "this is about WebGL";
    const restore = hideExtensions();
    try {
      const { report } = await chosen("webgl", { worker: false });
      const outcome = (name) => report.rungs.find((rung) => rung.name === name).outcome;
      equal(outcome("webgl bits").kind, "chosen", "the layout that needs no extension");
      for (const name of ["webgl packed", "webgl r32f"]) {
        assert(/EXT_color_buffer_float/.test(outcome(name).reason), `${name}: ${outcome(name).reason}`);
      }
    } finally {
      restore();
    }
  },

  "a backend that is absent": async () => {
    for (const backend of ["webgpu", "webgl"]) {
      const restore = hide(backend);
      try {
        const error = await rejection(load(undefined, { backend, worker: false }), errors.BackendError);
        const rungs = error.report.rungs.filter(({ name }) => name.startsWith(backend));
        assert(rungs.length && rungs.every(({ outcome }) => outcome.reason), "the report gives no reason");
      } finally {
        restore();
      }
    }
  },

  "no GPU at all": async () => {
    const restore = [hide("webgpu"), hide("webgl")];
    try {
      await rejection(load(undefined, { backend: "gpu", worker: false }), errors.BackendError);
      const { info } = await chosen("auto", { worker: false });
      equal(info.backend, "cpu", "the backend");
    } finally {
      restore.forEach((undo) => undo());
    }
  },

  "tuning tells what it tried, and is kept": async () => {
    const trials = [];
    const how = { backend: "cpu", worker: options.worker, cache: false, onTrial: (what) => trials.push(what) };
    const report = await AnyGpu.tune(`/files/${FILE}`, how);
    equal(report.winner.rung, "cpu", "the rung");
    equal(report.trials.length, 1, "the runs of a backend without tunables");
    assert(trials.length > 0 && report.text.includes("nothing to tune"), "nothing was told");
    equal(report.kept, typeof navigator.storage?.getDirectory === "function", "whether it is kept");
  },

  "the suite is downloaded by who runs it, and the engine is not": async () => {
    const before = await downloads("conformance");
    equal(before, 0, "the downloads of the suite before it is run");
    await chosen("cpu");
    equal(await downloads("conformance"), before, "the downloads of the suite after a model was loaded");
    const engines = await downloads("bindings");
    assert(engines > 0, "the engine was never downloaded");
    const report = await AnyGpu.conformance({ backend: "cpu", op: "softmax", worker: options.worker });
    equal(report.failed, 0, "the cases that failed");
    assert(report.passed > 0, "no case was run");
    equal(await downloads("conformance"), 1, "the downloads of the suite after it was run");
    equal(await downloads("bindings"), engines, "the downloads of the engine after the suite was run");
  },

  "the build for other browsers is not downloaded": async () => {
    await chosen("cpu");
    assert((await downloads("bindings")) > 0, "the build for this browser was not downloaded");
    equal(await downloads("bindings", !isOlder), 0, "the downloads of the other build");
  },

  "workers without a canvas": () => onThePage("no canvas"),

  "workers that cannot be modules": () => onThePage("no modules"),

  "a probe without a model": async () => {
    const report = await AnyGpu.probe({ backend: options.backend, worker: options.worker });
    assert(report.chosen, "nothing was chosen");
    assert(["worker", "main"].includes(report.thread) && report.thread_reason, "the thread is not explained");
  },
};
