/** Loads a model, and loads it again after the server has ended. */

const FIRST = "what the first visit found";

/** @param {string} report Where results go. */
export async function run(report) {
  const first = localStorage.getItem(FIRST);
  if (first === null) {
    const { serviceWorker } = navigator;
    await serviceWorker.register("sw.js");
    if (serviceWorker.controller === null) {
      await new Promise((resolve) => serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
    }
  }
  const { checked, posted, tells } = await import("./page/check.js");
  const { AnyGpu } = await import("./node_modules/anygpu/src/index.js");
  if (first === null) {
    const results = await checked({ "the first visit loads the model": () => tells(AnyGpu) });
    localStorage.setItem(FIRST, JSON.stringify(results));
    await tell(report, "next");
    location.reload();
    return;
  }
  const results = await checked({
    "the server has gone": async () => {
      const answer = await fetch("model.gguf?anew").catch(() => null);
      if (answer !== null) throw new Error("it answers");
    },
    "the page loads the model without a network": async () => {
      const { info } = await tells(AnyGpu);
      if (info.cache.state !== "hit") throw new Error(JSON.stringify(info.cache));
    },
  });
  await posted([...JSON.parse(first), ...results], report);
}

/** @param {string} to @param {string} body */
const tell = (to, body) => fetch(to, { method: "POST", body, mode: "no-cors" });
