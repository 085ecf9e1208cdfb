//! The table as a picture: the smaller the error, the deeper the colour.

use super::{Cell, Table};
use std::fmt::Write;

const LEFT: usize = 132;
const TOP: usize = 64;
const WIDTH: usize = 116;
const HEIGHT: usize = 26;
const FOOT: usize = 44;

/// Colours that are readable on light and on dark pages. Classes e0 to e4 are errors from none to the largest allowed.
const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .head, .op { font-weight: 600; } .op { text-anchor: end; } .cell, .head { text-anchor: middle; }
  .count { fill: #59636e; font-size: 10px; } .cell { font-variant-numeric: tabular-nums; }
  .page { fill: #ffffff; } .none { fill: #eaeef2; } .bad { fill: #ffb3ab; }
  .e0 { fill: #8fd3a5; } .e1 { fill: #acdfbc; } .e2 { fill: #c6ebd1; } .e3 { fill: #e2f5e7; } .e4 { fill: #fdf3c8; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f3f6; } .count { fill: #b7bdc8; }
    .page { fill: #0d1117; } .none { fill: #21262d; } .bad { fill: #8e1519; }
    .e0 { fill: #1a7f37; } .e1 { fill: #17692f; } .e2 { fill: #145427; } .e3 { fill: #10401f; } .e4 { fill: #5c4a0a; }
  }
";

/// The classes: each for errors up to a limit.
const CLASSES: &[(f64, &str, &str)] = &[
    (0.0, "e0", "exact"),
    (1e-13, "e1", "≤ 1e-13"),
    (1e-11, "e2", "≤ 1e-11"),
    (1e-9, "e3", "≤ 1e-9"),
    (f64::INFINITY, "e4", "within tolerance"),
];

fn class(cell: Cell) -> &'static str {
    match cell {
        Cell::Absent => "none",
        Cell::Failed { .. } => "bad",
        Cell::Passed { nmse, .. } => {
            CLASSES.iter().find(|(limit, ..)| nmse <= *limit).map_or("e4", |(_, class, _)| class)
        }
    }
}

/// Draws it as SVG.
pub fn draw(table: &Table) -> String {
    let ops = table.ops();
    let (width, below) = (LEFT + WIDTH * table.columns.len() + 12, TOP + HEIGHT * ops.len());
    let height = below + FOOT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"Worst error of each operator on each device\">\n<style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n"
    );
    // Writing to a string cannot fail.
    let mut text = |class: &str, x: usize, y: usize, text: &str| {
        let _ = writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
    };
    let mut boxes = String::new();
    let mut area = |class: &str, x: usize, y: usize, width: usize| {
        let height = HEIGHT - 2;
        let _ = writeln!(
            boxes,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"3\"/>"
        );
    };
    for (index, (column, results)) in table.columns.iter().enumerate() {
        let middle = LEFT + WIDTH * index + WIDTH / 2;
        let (place, interface) = column.title.split_once(' ').unwrap_or(("", column.title));
        text("head", middle, 18, place);
        text("head", middle, 34, interface);
        text("count cell", middle, 52, &format!("{} cases", results.cases()));
    }
    for (row, op) in ops.iter().enumerate() {
        let y = TOP + HEIGHT * row;
        text("op", LEFT - 10, y + 16, op);
        for (index, cell) in table.row(op).into_iter().enumerate() {
            let x = LEFT + WIDTH * index;
            area(class(cell), x, y, WIDTH - 2);
            text("cell", x + WIDTH / 2 - 1, y + 16, &cell.to_string().replace('*', ""));
        }
    }
    for (index, (_, class, meaning)) in CLASSES.iter().enumerate() {
        let x = LEFT + 130 * index;
        area(class, x, below + 10, 24);
        text("count", x + 30, below + 26, meaning);
    }
    // Boxes lie below the text.
    let at = out.find("<text").unwrap_or(out.len());
    out.insert_str(at, &boxes);
    out.push_str("</svg>\n");
    out
}
