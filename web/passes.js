// What each pass of a step left on the device: a line for each block of the model, a tile for each matrix, a dot for each
// number. Passes take the same buffers or textures in turn, so that of all this nothing is left there when the step ends.

import { el, fill } from "./dom.js";

/** Dots that a tile is wide at most; wider rows are wrapped. */
const WIDEST = 128;
const LINES = 8;
/** Of attention, the newest keys and some heads are shown. */
const HEADS = 16;
/** What has fewer columns shows little. */
const LEAST = 65;
/** Numbers that are kept of the steps before, so that they can be looked at. */
const KEPT = 4e6;
const [DARK, BELOW, ABOVE] = [[26, 28, 33], [64, 166, 255], [255, 158, 38]];

/** What kernels make, in people's words: by the beginning of the kernel's name, and a part of the name of its weights. */
const WORDS = [
  ["qkv_append", "", "keys and values"],
  ["attention_scores", "", "attention scores"],
  ["attention", "", "attention output"],
  ["", "position_embd", "embedding"],
  ["embed", "", "embedding"],
  ["get_rows", "token_embd", "embedding"],
  ["softmax", "", "probabilities"],
  ["penalize", "", "logits, adjusted"],
  ["", "attn_qkv", "queries"],
  ["", "attn_q.", "queries"],
  ["", "attn_k.", "keys"],
  ["", "attn_v.", "values"],
  ["", "attn_output", "after attention"],
  ["", "attn_norm", "normalised"],
  ["", "ffn_norm", "normalised"],
  ["", "ffn_up", "feed-forward"],
  ["", "ffn_gate", "feed-forward"],
  ["", "ffn_down", "after feed-forward"],
  ["", "output_norm", "normalised"],
  ["matmul", "token_embd", "logits"],
  ["linear", "token_embd", "logits"],
  ["", "output.", "logits"],
];

const HOLDERS = { webgpu: "GPU buffers", webgl: "GPU textures", cpu: "memory" };

/** The steps that were seen, by position, oldest first. */
let steps = new Map();
let size = 0;
let shown = null;
let wanted = null;
const lines = el("div", { className: "passes", tabIndex: 0, role: "group", "aria-label": "Results of each kernel" });
const note = el("p", { className: "fine" });

/** What shows them. */
export const picture = el("div", { hidden: true }, el("h3", {}, "Results of each kernel"), note, lines);

/** Forgets all steps. */
export function clear() {
  [steps, size, shown] = [new Map(), 0, null];
  picture.hidden = true;
  fill(lines);
}

/** Keeps a step, as the engine tells of it. */
export function keep(step, backend) {
  const matrices = step.matrices.filter(({ cols }) => cols >= LEAST);
  steps.set(step.position, matrices);
  size += sizeOf(matrices);
  for (const [position, old] of steps) {
    if (size <= KEPT || position === step.position) break;
    steps.delete(position);
    size -= sizeOf(old);
  }
  note.textContent = `Each dot is a number in ${HOLDERS[backend] ?? "memory"}: orange above zero, blue below, and half as bright at 1 as at 100. Each line is a block of the model.`;
}

/** Shows the step at a position with the next frame; one that was not seen is shown as such. */
export function show(position) {
  if (wanted === null) requestAnimationFrame(draw);
  wanted = position;
}

function draw() {
  const position = wanted;
  wanted = null;
  if (position === shown || steps.size === 0) return;
  const matrices = steps.get(position);
  picture.hidden = false;
  lines.classList.toggle("absent", matrices === undefined);
  if (matrices === undefined) return;
  shown = position;
  // The same tiles go on, so that nothing jumps.
  let tiles = [...lines.querySelectorAll("canvas")];
  if (tiles.length !== matrices.length) tiles = build(matrices);
  matrices.forEach((matrix, at) => paint(tiles[at], matrix, position));
}

const sizeOf = (matrices) => matrices.reduce((sum, { values }) => sum + values.length, 0);

/** Makes a line of empty tiles for each block. */
function build(matrices) {
  fill(lines);
  const tiles = [];
  let [block, line] = [null, null];
  for (const matrix of matrices) {
    const name = /^blk\.(\d+)\./.exec(matrix.subject)?.[1] ?? (tiles.length === 0 || block === "before" ? "before" : "after");
    // What has no weights belongs to the block that it stands in.
    const own = matrix.subject === "" && block !== null ? block : name;
    if (own !== block) {
      block = own;
      line = el("div", {});
      lines.append(el("div", { className: "line" }, el("span", { className: "fine" }, /\d/.test(own) ? `block ${own}` : own), line));
    }
    const tile = el("canvas", { title: `${matrix.kernel}: ${matrix.rows} × ${matrix.cols}` });
    line.append(el("figure", {}, el("figcaption", { className: "fine" }, words(matrix)), tile));
    tiles.push(tile);
  }
  return tiles;
}

function words({ kernel, subject }) {
  const known = WORDS.find(([begin, part]) => kernel.startsWith(begin) && subject.includes(part));
  return known ? known[2] : kernel.split(" ")[0].replace(/_/g, " ");
}

/** Paints the numbers of a matrix: of scores, those of the newest keys, a line a head. */
function paint(canvas, { rows, cols, values }, position) {
  const width = rows > 1 ? Math.min(WIDEST, cols) : Math.min(WIDEST, Math.ceil(cols / LINES));
  const height = rows > 1 ? Math.min(HEADS, rows) : Math.ceil(cols / width);
  const first = rows > 1 ? Math.max(0, Math.min(position + 1, cols) - width) : 0;
  const stride = rows > 1 ? cols : width;
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const value = values[first + y * stride + x] ?? 0;
      const hue = value < 0 ? BELOW : ABOVE;
      const bright = Math.min(1, Math.log(1 + 100 * Math.abs(value)) / Math.log(10001));
      const at = 4 * (y * width + x);
      for (let c = 0; c < 3; c += 1) image.data[at + c] = DARK[c] + bright * (hue[c] - DARK[c]);
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}
