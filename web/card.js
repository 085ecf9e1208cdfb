// A picture of a story: its text, the model and device, and the speed.

import { backendLabel, rate } from "./format.js";

const [WIDTH, HEIGHT, MARGIN] = [1200, 630, 72];
const [SIZE, LINE, FOOT] = [34, 52, 96];

/** Draws the picture in the colours of the page. */
export function drawCard(canvas, { prompt, text, model, family, adapter, pace }) {
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const context = canvas.getContext("2d");
  const write = (words, x, y, font, ink) => {
    context.font = font;
    context.fillStyle = colour(ink);
    context.fillText(words, x, y);
    return context.measureText(words).width;
  };
  context.fillStyle = colour("paper");
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = colour("accent");
  context.fillRect(0, 0, 12, HEIGHT);

  const font = `${SIZE}px ${colour("serif")}`;
  context.font = font;
  const most = Math.floor((HEIGHT - 2 * MARGIN - FOOT) / LINE) + 1;
  const lines = wrap(context, (prompt + text).replace(/\s+/g, " ").trim(), WIDTH - 2 * MARGIN);
  const shown = lines.slice(0, most);
  if (lines.length > most) shown.push(`${shown.pop().replace(/[\s.,;:]*\S*$/, "")}…`);
  shown.forEach((line, index) => write(line, MARGIN, MARGIN + SIZE + index * LINE, font, "ink"));

  const foot = HEIGHT - MARGIN;
  context.fillStyle = colour("line");
  context.fillRect(MARGIN, foot - FOOT + 24, WIDTH - 2 * MARGIN, 2);
  const figure = pace ? `${rate(pace)} tokens per second` : "";
  const width = write(figure, MARGIN, foot - 16, `600 30px ${colour("sans")}`, "accent");
  write(`on ${family === "cpu" ? "the CPU" : backendLabel(family)}, in a browser`, MARGIN + (width && width + 12), foot - 16, `30px ${colour("sans")}`, "ink");
  const small = `22px ${colour("sans")}`;
  context.font = small;
  write(clip(context, `${model.name} · ${adapter}`, 780), MARGIN, foot + 20, small, "soft");
  context.textAlign = "right";
  write("anygpu", WIDTH - MARGIN, foot + 20, `700 26px ${colour("sans")}`, "ink");
}

/** Breaks a text into lines that are no wider than `width`. */
function wrap(context, text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines[lines.length - 1] ? `${lines[lines.length - 1]} ${word}` : word;
    if (context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Shortens a line to fit `width`. */
function clip(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  while (context.measureText(`${text}…`).width > width) text = text.slice(0, -1);
  return `${text}…`;
}
