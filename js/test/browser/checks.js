// Checks of everything around a model, one after the other. A check passes if it does not throw; text that it returns
// says why it cannot be run here.

import "./instrument.js";
import { AnyGpu, Results, beat, options, sleep } from "./run.js";

/** Time limit of a check, in milliseconds. Later checks run even if one hangs. */
const LIMIT = 180_000;

const GROUPS = [
  ...["selection", "generation", "chances", "formats", "overflow", "sessions", "embedding", "network", "cache", "storage", "files", "device"],
  ...["pace", "page", "policy"],
];

async function late() {
  await sleep(LIMIT);
  throw new Error(`it took longer than ${LIMIT / 1000} s`);
}

export default async function checks() {
  const results = new Results();
  for (const group of GROUPS) {
    const { default: members } = await import(`./checks/${group}.js`);
    for (const [title, check] of Object.entries(members)) {
      const name = `${group}: ${title}`;
      if (!options.only.some((part) => name.includes(part))) continue;
      // If the run hangs, this tells in which check.
      await fetch("/phase", { method: "POST", body: name });
      const begin = performance.now();
      let failure, reason;
      try {
        reason = await Promise.race([AnyGpu.cache.clear().then(check), late()]);
      } catch (error) {
        failure = `${error?.name}: ${error?.message}`;
      }
      beat();
      const ms = Math.round(performance.now() - begin);
      if (typeof reason === "string") await results.skip(name, reason);
      else await results.add(`${name} (${ms} ms)`, failure, { ms });
    }
  }
  return { ...results };
}
