// Each line below has something that one of the oldest browsers lacks.
value ??= Object.hasOwn(it, "name");
class Young { #hidden = 1; }
const last = list.at(-1);
signal.throwIfAborted();
element.replaceChildren(crypto.randomUUID());
await structuredClone(value);
export * as names from "./names.js";
