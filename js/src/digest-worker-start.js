/** Starts a worker that computes digests. This file is beside its script; see `worker-start.js`. */

// Bundlers recognise exactly this form.
export const startDigestWorker = () => new Worker(new URL("./digest-worker.js", import.meta.url), { type: "module", name: "anygpu-digest" });
