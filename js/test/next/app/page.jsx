"use client";

import { useEffect, useState } from "react";
import { AnyGpu } from "anygpu";
import { checked, posted, tells } from "../page/check.js";

/** Rendered on the server first, where nothing is loaded. */
export default function Page() {
  const [state, setState] = useState("loading");
  useEffect(() => {
    checked({ "loads in a worker, streams a story, is disposed of": () => tells(AnyGpu) }).then((results) => {
      setState("done");
      posted(results, "/report");
    });
  }, []);
  return <p>{state}</p>;
}
