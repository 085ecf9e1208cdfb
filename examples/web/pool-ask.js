// Asking a pool: a text as it comes.

import { $ } from "./dom.js";
import { rate } from "./format.js";
import { clearError, showError } from "./notice.js";

/** Tokens of an answer, at most. */
const MOST = 96;

/** The pieces of an answer that is streamed as server-sent events. */
async function* pieces(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const { choices, error } = JSON.parse(line.slice(6));
      if (error) throw new Error(error.message);
      if (choices?.length) yield choices[0].text;
    }
  }
}

/** What the server says of a request that it refuses. */
async function refusal(response) {
  const body = await response.json().catch(() => null);
  return new Error(body?.error?.message ?? `the pool answers with status ${response.status}; ask again`);
}

let asking = false;

/** Has the form ask a pool. `at` gives the address of a path there. */
export function startAsking(at, model) {
  if (asking) return;
  asking = true;
  let controller = null;
  const ask = async (prompt) => {
    controller = new AbortController();
    $("send").disabled = true;
    $("stop").hidden = false;
    $("answer").textContent = prompt;
    $("answer").setAttribute("aria-busy", "true");
    const begin = performance.now();
    let count = 0;
    try {
      const body = JSON.stringify({ model, prompt, max_tokens: MOST, temperature: 0, stream: true });
      const headers = { "Content-Type": "application/json" };
      const response = await fetch(at("/v1/completions"), { method: "POST", headers, body, signal: controller.signal });
      if (!response.ok) throw await refusal(response);
      for await (const piece of pieces(response)) {
        count += 1;
        $("answer").append(piece);
        $("pace").textContent = `${rate((1000 * count) / (performance.now() - begin))} tokens a second`;
      }
    } catch (error) {
      if (!controller.signal.aborted) showError(error, [["Ask again", () => ask(prompt)]]);
    }
    $("answer").removeAttribute("aria-busy");
    $("send").disabled = false;
    $("stop").hidden = true;
  };
  $("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    clearError();
    ask($("prompt").value);
  });
  $("stop").addEventListener("click", () => controller?.abort());
}
