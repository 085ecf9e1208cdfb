// A component that tells a story, rendered twice like React does in development.
import { StrictMode, createElement, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import type { AnyGpu } from "anygpu";
import { useAnyGpu } from "anygpu/react";

interface Props {
  model: string;
  listed: boolean;
  told: (engine: AnyGpu, text: string) => void;
  failed: (error: Error) => void;
}

function Story({ model, listed, told, failed }: Props) {
  // Both are new objects with each rendering.
  const url = new URL(model, location.href);
  const { engine, progress, error } = useAnyGpu(listed ? [url] : url, { backend: "cpu" });
  const [text, setText] = useState("");
  useEffect(() => {
    if (error !== null) failed(error);
    if (engine === null) return;
    engine.completions.create({ prompt: "Once upon a time", max_tokens: 6 }).then((answer) => setText(answer.choices[0].text), failed);
  }, [engine, error]);
  useEffect(() => {
    if (engine !== null && text !== "") told(engine, document.querySelector("p")?.textContent ?? "");
  }, [text]);
  return createElement("p", null, text === "" ? (progress?.phase ?? "nothing yet") : text);
}

/**
 * Returns the text of the component, with the model's address or a list of it, and checks that its engine is gone
 * afterwards.
 */
export async function rendered(model: string, listed: boolean): Promise<string> {
  const place = document.body.appendChild(document.createElement("div"));
  const root = createRoot(place);
  const [engine, shown] = await new Promise<[AnyGpu, string]>((resolve, reject) => {
    const told = (engine: AnyGpu, text: string) => resolve([engine, text]);
    root.render(createElement(StrictMode, null, createElement(Story, { model, listed, told, failed: reject })));
  });
  root.unmount();
  const error = await after(engine);
  if (!(error instanceof Error) || error.name !== "DisposedError") throw new Error(`the engine stays: ${String(error)}`);
  return shown;
}

/** Returns the error that an engine gives after it was disposed of. */
async function after(engine: AnyGpu): Promise<unknown> {
  for (let tries = 0; tries < 100; tries += 1) {
    const error: unknown = await engine.stats().then(() => null, (error: unknown) => error);
    if (error !== null) return error;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return null;
}
