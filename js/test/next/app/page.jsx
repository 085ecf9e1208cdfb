"use client";

import { useEffect, useState } from "react";
import { AnyGpu } from "anygpu";
import { useAnyGpu } from "anygpu/react";
import { STORY, checked, formats, posted, tells } from "../page/check.js";

/** The hook, with a list that is made anew with each rendering. */
function Story({ told, failed }) {
  const { engine, progress, error } = useAnyGpu(["model.gguf"], { backend: "cpu" });
  useEffect(() => {
    if (error !== null) failed(error);
    engine?.completions.create({ prompt: "Once upon a time", max_tokens: 6 }).then(({ choices }) => told(choices[0].text), failed);
  }, [engine, error]);
  return <p>{progress?.phase ?? "nothing yet"}</p>;
}

/** Rendered on the server first, where nothing is loaded. */
export default function Page() {
  const [state, setState] = useState("loading");
  const [story, setStory] = useState(null);
  useEffect(() => {
    const hooked = async () => {
      const text = await new Promise((told, failed) => setStory({ told, failed }));
      if (text !== STORY) throw new Error(`the hook tells ${text}`);
    };
    const checks = {
      "loads in a worker, streams a story, is disposed of": () => tells(AnyGpu),
      "answers in a format": () => formats(AnyGpu),
      "a hook loads a model": hooked,
    };
    checked(checks).then((results) => {
      setState("done");
      posted(results, "/report");
    });
  }, []);
  return (
    <>
      {story && <Story {...story} />}
      <p>{state}</p>
    </>
  );
}
