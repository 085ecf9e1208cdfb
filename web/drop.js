// Local files, dropped or chosen.

import { $ } from "./dom.js";
import { fileName } from "./format.js";

/** Loads a local file, or all files of a split model. */
export function loadFiles(files, load) {
  if (files.length > 0) load({ source: files.length === 1 ? files[0] : files, name: fileName(files[0].name) });
}

/** Accepts files that are dropped anywhere on the page. */
export function startDrop(load) {
  const hasFile = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    $("drop").hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) $("drop").hidden = true;
  });
  addEventListener("drop", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    $("drop").hidden = true;
    loadFiles([...event.dataTransfer.files], load);
  });
}
