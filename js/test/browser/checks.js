// Everything around a model, one thing after the other. A check passes if it does not throw; text that it returns says
// why it cannot be made here.

import "./instrument.js";
import { AnyGpu, Results, beat, options } from "./run.js";

const GROUPS = [
  ...["selection", "generation", "chances", "formats", "overflow", "sessions", "embedding", "network", "cache", "storage", "files", "device"],
  ...["pace", "page", "policy"],
];

export default async function checks() {
  const results = new Results();
  for (const group of GROUPS) {
    const { default: members } = await import(`./checks/${group}.js`);
    for (const [title, check] of Object.entries(members)) {
      const name = `${group}: ${title}`;
      if (!options.only.some((part) => name.includes(part))) continue;
      await AnyGpu.cache.clear();
      const begin = performance.now();
      let failure, reason;
      try {
        reason = await check();
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
