// Another tab of the same site: a frame, which ends when it is closed.

import { beat } from "./run.js";

/** Opens a page that tells what it does. `until` gives the first message that is wanted; what failed there rejects. */
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
