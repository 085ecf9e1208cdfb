// The results of each kernel of a step: a line for each block of the model, a tile for each matrix, a dot for each
// number. The kernels reuse their buffers or textures, so none of this is left on the device when the step ends.

import { el, fill } from "./dom.js";

/** Largest width of a tile, in dots; wider rows are wrapped. */
const WIDEST = 128;
const LINES = 8;
/** Number of attention heads that are shown, with their newest keys. */
const HEADS = 16;
/** Matrices with fewer columns than this are not shown. */
const LEAST = 65;
/** Limit for stored numbers of earlier steps, which can be looked at again. */
const KEPT = 4e6;
const [DARK, BELOW, ABOVE] = [[26, 28, 33], [64, 166, 255], [255, 158, 38]];

/** Labels of kernels' results, by the beginning of the kernel's name and a part of its weights' name. */
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

/** Stored steps by position, oldest first. */
let steps = new Map();
let size = 0;
let shown = null;
let wanted = null;
const lines = el("div", { className: "passes", tabIndex: 0, role: "group", "aria-label": "Results of each kernel" });
const note = el("p", { className: "fine" });

/** The element that shows the results. */
export const picture = el("div", { hidden: true }, el("h3", {}, "Results of each kernel"), note, lines);

/** Removes all steps. */
export function clear() {
  [steps, size, shown] = [new Map(), 0, null];
  picture.hidden = true;
  fill(lines);
}

/** Stores a step. */
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

/** Shows the step at a position with the next frame. A step that was not watched is shown as missing. */
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
  // Tiles are reused, so that nothing jumps.
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
    // A result without weights belongs to the block of the kernel before it.
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

/** Paints the numbers of a matrix. Attention scores get a line for each head, with the newest keys. */
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
