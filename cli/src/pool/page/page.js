// The page of a coordinator: the pool as it is now, and how to join it.

import { $ } from "./dom.js";
import { bytes, plural } from "./format.js";
import { showPicture } from "./pool-picture.js";

/** How often it looks, in milliseconds. */
const LOOK = 1000;

async function json(path) {
  const response = await fetch(path, { cache: "no-store" });
  if (!response.ok) throw new Error(`${path} answers with status ${response.status}`);
  return response.json();
}

async function look() {
  try {
    showPicture(await json("/state.json"));
  } catch {
    $("counts").textContent = "The coordinator does not answer.";
  }
  setTimeout(look, LOOK);
}

async function describe() {
  const { model, websocket } = await json("/pool.json");
  $("model").textContent = `This pool runs ${model.name}: ${plural(model.blocks, "block")}, ${bytes(model.bytes)}.`;
  $("work").textContent = `anygpu pool work --coordinator ${location.origin}`;
  $("query").textContent = `pool.html?coordinator=${location.origin}`;
  for (const id of ["pages", "query"]) $(id).hidden = websocket === null;
}

describe().catch(() => {});
look();
