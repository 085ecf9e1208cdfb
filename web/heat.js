// The table of the conformance tab: operators by backends, with warmer colours for larger errors. The variants of a
// backend are folded into one column, which shows the worst of them, until the visitor unfolds it.

import { el, fill } from "./dom.js";
import { backendLabel, family, nmse } from "./format.js";

/** Exponents of ten at which a cell gets warmer. */
const STEPS = [-15, -13, -11, -9, -8];

/** Returns the heat step of an error; an error of 0 has step 0. */
const heatOf = (worst) => (worst === 0 ? 0 : 1 + STEPS.filter((exponent) => worst >= 10 ** exponent).length);

/**
 * Makes a table of tallies. Returns it with `add`, which takes the operator of a case, and `redraw` for a backend's
 * change of state.
 */
export function heatMap(tallies) {
  const table = el("table", { className: "matrix" });
  const families = [...new Set(tallies.map(({ backend }) => family(backend)))];
  const columns = families.flatMap((name) => columnsOf(name, tallies.filter(({ backend }) => family(backend) === name)));
  const body = el("tbody");
  const heads = columns.map((column) => (column.head = headOf(column, () => fold(column))));
  fill(table, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "operator"), ...heads)), body);
  const rows = new Map();

  function fold(column) {
    column.open = !column.open;
    column.toggle.setAttribute("aria-expanded", String(column.open));
    draw();
  }

  /** Whether a column is shown: its backend must be unfolded, and the backend must not be absent. */
  const isShown = ({ fold, tallies: of }) => (!fold || fold.open) && of.some(({ state }) => state !== "absent");

  function draw() {
    for (const [index, column] of columns.entries()) {
      const hidden = !isShown(column);
      for (const row of table.rows) row.cells[1 + index].hidden = hidden;
    }
  }

  function rowOf(op) {
    if (!rows.has(op)) {
      const row = el("tr", {}, el("th", { scope: "row" }, op), ...columns.map((column) => el("td", { hidden: !isShown(column) })));
      body.append(row);
      rows.set(op, row);
    }
    return rows.get(op);
  }

  /** Shows a tally's operator, in its own column and in the column that it is folded into. */
  function add(tally, op) {
    const row = rowOf(op);
    for (const [index, column] of columns.entries()) {
      if (column.tallies.includes(tally)) drawCell(row.cells[1 + index], worstOf(column.tallies, op));
    }
  }

  draw();
  return { table, add, redraw: draw };
}

/** Returns the columns of a backend: one, or one that folds its variants and one for each of them. */
function columnsOf(name, tallies) {
  if (tallies.length === 1) return [{ label: backendLabel(tallies[0].backend), tallies, fold: null }];
  const whole = { label: `${backendLabel(name)}, worst of ${tallies.length}`, tallies, fold: null, open: false, folds: true };
  return [whole, ...tallies.map((tally) => ({ label: backendLabel(tally.backend), tallies: [tally], fold: whole }))];
}

function headOf(column, toggle) {
  if (!column.folds) return el("th", { scope: "col" }, column.label);
  column.toggle = el("button", { type: "button", className: "small fold", "aria-expanded": "false", onclick: toggle }, column.label);
  return el("th", { scope: "col" }, column.toggle);
}

/** Combines the entries of several tallies for an operator; the worst error counts. */
function worstOf(tallies, op) {
  const entries = tallies.map(({ ops }) => ops.get(op)).filter(Boolean);
  const sum = (name) => entries.reduce((total, entry) => total + entry[name], 0);
  return { cases: sum("cases"), failed: sum("failed"), worst: Math.max(0, ...entries.map((entry) => entry.worst_nmse)) };
}

function drawCell(cell, { cases, failed, worst }) {
  cell.className = failed > 0 ? "fail" : `heat-${heatOf(worst)}`;
  const count = el("small", {}, String(cases), el("span", { className: "hidden" }, " cases"));
  fill(cell, el("div", {}, el("span", {}, failed > 0 ? `${failed} failed` : nmse(worst)), count));
}

/** Makes the legend of the colours. */
export function legend() {
  const step = (name, text) => el("li", {}, el("span", { className: `swatch ${name}`, "aria-hidden": "true" }), text);
  const bounds = STEPS.map((exponent, index) => step(`heat-${index + 1}`, `< 10${raised(exponent)}`));
  return el("ul", { className: "legend fine", "aria-label": "Colours" }, step("heat-0", "exact"), ...bounds, step(`heat-${STEPS.length + 1}`, "larger, within the limit"), step("fail", "failed"));
}

const raised = (exponent) => [...String(exponent)].map((sign) => ({ "-": "⁻" })[sign] ?? "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]).join("");
