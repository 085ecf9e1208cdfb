// Another tab of the same site, as a frame that can be closed.

import { beat } from "./run.js";

/**
 * Opens a page that reports what it does. `until` resolves to the first message that matches; failures there reject.
 */
export function openFrame(page, query) {
  const frame = document.createElement("iframe");
  frame.src = `${page}?${new URLSearchParams(query)}`;
  const until = (wanted) =>
    new Promise((resolve, reject) => {
      const listen = ({ data, source }) => {
        if (source !== frame.contentWindow) return;
        beat();
        if (data.error) reject(new Error(`the other tab: ${data.error}`));
        else if (!wanted(data)) return;
        else resolve(data);
        removeEventListener("message", listen);
      };
      addEventListener("message", listen);
    });
  document.body.append(frame);
  return { until, close: () => frame.remove() };
}
