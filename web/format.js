// Numbers and names in readable form.

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** Formats a size in bytes, in decimal units like download pages. */
export function bytes(count) {
  let unit = 0;
  while (count >= 1000 && unit < UNITS.length - 1) {
    count /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || count >= 100 ? 0 : count >= 10 ? 1 : 2;
  return `${count.toFixed(digits)} ${UNITS[unit]}`;
}

/** Formats a duration given in milliseconds. */
export function duration(ms) {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}

/** Formats a number of tokens per second. */
export const rate = (perSecond) => perSecond.toFixed(perSecond < 10 ? 2 : perSecond < 100 ? 1 : 0);

/** Formats a count with its noun. */
export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** Says what was left out of a text that outgrew the context. */
export function leftOut({ dropped_messages, dropped_tokens }) {
  const counts = [
    [dropped_messages, "earlier message"],
    [dropped_tokens, "earlier token"],
  ].filter(([count]) => count > 0);
  return `${counts.map(([count, noun]) => plural(count, noun)).join(" and ")} left out to fit the context`;
}

/** Formats an error measure; zero is exact. */
export const nmse = (value) => (value === 0 ? "exact" : value.toExponential(1).replace("e-", "e−"));

const FAMILIES = [
  [/^webgpu/, "WebGPU"],
  [/^webgl/, "WebGL2"],
  [/^cpu/, "CPU"],
  [/^gpu/, "GPU"],
  [/^auto/, "Auto"],
];

/** Returns the label of a backend or rung. */
export function backendLabel(name) {
  for (const [pattern, label] of FAMILIES) {
    if (pattern.test(name)) return name.replace(pattern, label).replace(/-/g, " ");
  }
  return name;
}

/**
 * Makes a message a sentence: with a capital or a backend's proper name at the beginning, and a full stop at the end.
 */
export function sentence(text) {
  const line = text.replace(/\s+/g, " ").trim();
  const begin = line.replace(/^(webgpu|webgl|cpu)\b/, backendLabel).replace(/^./, (first) => first.toUpperCase());
  return /[.!?]$/.test(begin) ? begin : `${begin}.`;
}

/** Returns the backend that a rung is a variant of: webgpu, webgl or cpu. */
export const family = (name) => name.match(/^(webgpu|webgl|cpu)/)?.[0] ?? name;

/**
 * Returns a model's name for display: its address without folder, ending and query, and without the number of its file.
 */
export function fileName(address) {
  const path = address.split(/[?#]/)[0];
  const name = path.slice(path.lastIndexOf("/") + 1).replace(/(-\d{5}-of-\d{5})?\.gguf$/i, "") || address;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
