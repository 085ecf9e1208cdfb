// Checks of loading over networks and from servers of all kinds.

import { errors, sleep } from "../run.js";
import { FILE, assert, equal, load, nothingKept, rejection, size, works } from "../expect.js";

export default {
  "a connection that drops again and again": () => works(`/flaky/${FILE}?after=4000000`),

  "a server without ranges": () => works(`/norange/${FILE}`),

  "a file that the user chose": async () => {
    const blob = await (await fetch(`/files/${FILE}`)).blob();
    await works(new File([blob], FILE));
    await works(new Uint8Array(await blob.arrayBuffer()));
  },

  "an address that does not exist": async () => {
    const error = await rejection(load("/status/404/model.gguf"), errors.NetworkError);
    equal(error.status, 404, "the status");
  },

  "a server that is overloaded": async () => {
    const error = await rejection(load("/status/503/model.gguf", { network: { retries: 1 } }), errors.NetworkError);
    equal(error.status, 503, "the status");
  },

  "a connection that stalls again and again": () => {
    return works(`/stall/${FILE}?after=6000000`, { network: { stallTimeout: 500 } });
  },

  "a server that sends nothing": async () => {
    const network = { retries: 1, stallTimeout: 500 };
    await rejection(load(`/stall/${FILE}?after=0`, { network, cache: true }), errors.NetworkError);
    await nothingKept();
  },

  "a file that is too short": async () => {
    await rejection(load(`/short/${FILE}?after=${(await size()) >> 1}`, { cache: true }), errors.FileError);
    await nothingKept();
  },

  "a file that is no model": async () => {
    await rejection(load("/files/gab.reference.json", { cache: true }), errors.FileError);
    await rejection(load(new Blob([new Uint8Array(4096)])), errors.FileError);
    await rejection(load(new Uint8Array(0)), errors.FileError);
    await nothingKept();
  },

  "an abort while the server sends nothing": async () => {
    const controller = new AbortController();
    const signal = controller.signal;
    const loading = load(`/stall/${FILE}?after=1000000`, { signal, cache: true });
    const failed = rejection(loading, "AbortError");
    await sleep(300);
    controller.abort();
    await failed;
    await nothingKept();
  },

  "an abort before and during a download": async () => {
    const ended = new AbortController();
    ended.abort();
    await rejection(load(undefined, { signal: ended.signal }), "AbortError");
    const bytes = await size();
    const controller = new AbortController();
    const why = new Error("the user has gone");
    const onProgress = ({ loaded, phase }) => {
      if (phase === "download" && loaded > 0) controller.abort(why);
    };
    // The server sends nothing after this byte, so that the abort is in time on any network.
    const url = `/stall/${FILE}?after=${Math.floor(bytes / 2)}`;
    const loading = load(url, { signal: controller.signal, onProgress, cache: true });
    const error = await loading.then(() => undefined, (error) => error);
    // Older signals do not have a reason.
    const expected = "reason" in AbortSignal.prototype ? why.message : "aborted";
    assert(error?.message === expected, `the load ended with ${error} instead of the signal's reason`);
    await nothingKept();
  },

  "progress that never falls back": async () => {
    const bytes = await size();
    const seen = [];
    await works(`/flaky/${FILE}?after=9000000`, { onProgress: (progress) => seen.push(progress) });
    const fractions = seen.map(({ fraction }) => fraction);
    assert(fractions.every((fraction, index) => fraction >= (fractions[index - 1] ?? 0)), `it fell: ${fractions}`);
    equal(fractions[fractions.length - 1], 1, "the last fraction");
    equal(seen[seen.length - 1].phase, "ready", "the last phase");
    assert(seen.some(({ phase, total }) => phase === "download" && total === bytes), "no progress of a download");
  },
};
