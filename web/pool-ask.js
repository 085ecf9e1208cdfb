// Asks a pool, and shows the text while it is generated.

import { $ } from "./dom.js";
import { rate } from "./format.js";
import { clearError, showError } from "./notice.js";

/** Largest number of tokens in an answer. */
const MOST = 96;

/** Returns the texts of an answer that is streamed as server-sent events. */
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

/** Sends a request. If the browser hides the response, the error explains how to allow this page. */
async function post(url, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if ($("key").value) headers.Authorization = `Bearer ${$("key").value}`;
  const response = await fetch(url, { method: "POST", headers, body, signal }).catch((cause) => {
    if (signal.aborted) throw cause;
    const remedy = `start it with --cors ${location.origin} to allow this page`;
    throw new Error(`this page cannot reach the coordinator (CORS): ${remedy}, or restart it if it has stopped`);
  });
  if (response.ok) return response;
  if (response.status === 401) {
    for (const id of ["key", "key-label"]) $(id).hidden = false;
    $("key").focus();
  }
  throw await refusal(response);
}

/** Returns the server's error for a refused request. */
async function refusal(response) {
  const body = await response.json().catch(() => null);
  return new Error(body?.error?.message ?? `the pool answered with status ${response.status}; try again`);
}

let asking = false;
/** Whether an answer was asked for, and nothing of it has arrived. */
let awaited = false;

/** Says why an answer has not begun, if the pool cannot run the model now. */
export function tellWaiting({ serves }) {
  if (awaited) $("pace").textContent = serves ? "" : "Waiting for a chain: there are too few workers for the whole model.";
}

/** Makes the form ask a pool. `at` returns the address of a path there. */
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
    awaited = true;
    $("pace").textContent = "";
    try {
      const body = JSON.stringify({ model, prompt, max_tokens: MOST, temperature: 0, stream: true });
      const response = await post(at("/v1/completions"), body, controller.signal);
      for await (const piece of pieces(response)) {
        awaited = false;
        count += 1;
        $("answer").append(piece);
        $("pace").textContent = `${rate((1000 * count) / (performance.now() - begin))} tokens per second`;
      }
    } catch (error) {
      if (!controller.signal.aborted) showError(error, [["Ask again", () => ask(prompt)]]);
    }
    if (awaited) $("pace").textContent = "";
    awaited = false;
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
