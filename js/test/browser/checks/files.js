// Checks of local files: several of a split model, and large ones.

import { errors } from "../run.js";
import { FILE, assert, equal, load, rejection, works } from "../expect.js";
import { split, withGap } from "../split.js";

const whole = async () => new Uint8Array(await (await fetch(`/files/${FILE}`)).arrayBuffer());

export default {
  "a split model, its files in any order": async () => {
    const [first, second, third] = split(await whole(), [0, 10]);
    const info = await works([third, first, second]);
    equal(info.file_bytes, first.size + second.size + third.size, "the size of all files");
  },

  "a split model that lacks a file": async () => {
    const [first, , third] = split(await whole(), [5, 10]);
    const error = await rejection(load([first, third]), errors.FileError);
    assert(error.message.includes("-00002-of-00003.gguf"), `the message does not name it: ${error.message}`);
  },

  "a file whose weights lie beyond four gibibytes": async () => {
    const file = withGap(await whole(), 5 * 2 ** 30);
    assert(file.size > 5 * 2 ** 30, `the file has ${file.size} bytes`);
    await works(file);
  },
};
