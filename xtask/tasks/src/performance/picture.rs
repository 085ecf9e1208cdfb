//! Decode rates as bars, with the device's floor and another engine marked on each.

use super::Run;
use super::tables::number;
use std::fmt::Write;

const LEFT: usize = 300;
const TOP: usize = 40;
const WIDTH: f64 = 560.0;
const HEIGHT: usize = 28;
const FOOT: usize = 46;
/// Powers of ten that the axis goes from and to. In tokens a second.
const AXIS: (i32, i32) = (-1, 4);

/// Colours that are readable on light and on dark pages.
const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #1f2328; font-variant-numeric: tabular-nums; }
  .label { text-anchor: end; } .tick { text-anchor: middle; fill: #59636e; font-size: 10px; }
  .page { fill: #ffffff; } .grid { stroke: #d1d9e0; } .bar { fill: #8fd3a5; }
  .floor { stroke: #cf222e; stroke-width: 2; } .peer { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f3f6; } .tick { fill: #b7bdc8; }
    .page { fill: #0d1117; } .grid { stroke: #3d444d; } .bar { fill: #1a7f37; }
    .floor { stroke: #ff7b72; } .peer { fill: #79c0ff; }
  }
";

/// Where a rate lies on the axis, which is logarithmic.
fn at(rate: f64) -> f64 {
    let (from, to) = (f64::from(AXIS.0), f64::from(AXIS.1));
    let place = (rate.max(f64::MIN_POSITIVE).log10() - from) / (to - from);
    LEFT as f64 + WIDTH * place.clamp(0.0, 1.0)
}

/// Draws it as SVG.
pub fn draw(runs: &[Run]) -> String {
    let bars: Vec<_> = runs.iter().flat_map(|run| run.models.iter().map(move |model| (run, model))).collect();
    let (width, below) = (LEFT + WIDTH as usize + 70, TOP + HEIGHT * bars.len());
    let height = below + FOOT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"Tokens decoded a second, the floor of each device, and another engine\">\n\
         <style>{STYLE}</style>\n<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n"
    );
    // Writing to a string cannot fail.
    for power in AXIS.0..=AXIS.1 {
        let (x, rate) = (at(10f64.powi(power)), 10f64.powi(power));
        let _ = writeln!(out, "<line class=\"grid\" x1=\"{x:.0}\" y1=\"{TOP}\" x2=\"{x:.0}\" y2=\"{below}\"/>");
        let _ = writeln!(out, "<text class=\"tick\" x=\"{x:.0}\" y=\"{}\">{rate}</text>", TOP - 8);
    }
    let _ = writeln!(out, "<text class=\"label\" x=\"{}\" y=\"{}\">tokens/s, decode</text>", LEFT - 24, TOP - 8);
    for (index, (run, model)) in bars.into_iter().enumerate() {
        let (y, rate) = (TOP + HEIGHT * index + 4, model.decode_tokens_per_s);
        let (bar, tall) = (at(rate) - LEFT as f64, HEIGHT - 8);
        let (title, base) = (format!("{}, {}", run.title, model.model), y + 15);
        let _ = writeln!(out, "<text class=\"label\" x=\"{}\" y=\"{base}\">{title}</text>", LEFT - 10);
        let _ =
            writeln!(out, "<rect class=\"bar\" x=\"{LEFT}\" y=\"{y}\" width=\"{bar:.1}\" height=\"{tall}\" rx=\"3\"/>");
        if model.decode_floor.floor_ms > 0.0 {
            let x = at(1000.0 / model.decode_floor.floor_ms);
            let end = y + tall;
            let _ = writeln!(out, "<line class=\"floor\" x1=\"{x:.1}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{end}\"/>");
        }
        if let Some(peer) = run.peer(model) {
            let x = at(peer.decode_tokens_per_s);
            let _ = writeln!(out, "<circle class=\"peer\" cx=\"{x:.1}\" cy=\"{}\" r=\"4\"/>", y + tall / 2);
        }
        let _ = writeln!(out, "<text x=\"{}\" y=\"{base}\">{}</text>", LEFT + WIDTH as usize + 12, number(rate));
    }
    let y = below + 26;
    let _ = writeln!(out, "<line class=\"floor\" x1=\"{LEFT}\" y1=\"{}\" x2=\"{LEFT}\" y2=\"{}\"/>", y - 12, y + 4);
    let _ = writeln!(out, "<text x=\"{}\" y=\"{y}\">what the device's floors allow</text>", LEFT + 10);
    let _ = writeln!(out, "<circle class=\"peer\" cx=\"{}\" cy=\"{}\" r=\"4\"/>", LEFT + 240, y - 4);
    let _ = writeln!(out, "<text x=\"{}\" y=\"{y}\">wllama, same browser and run</text>", LEFT + 250);
    out.push_str("</svg>\n");
    out
}
