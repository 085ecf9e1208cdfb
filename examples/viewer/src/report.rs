//! Report for `--screenshot`: the window as a PNG file, and its contents as JSON on the standard output.

use std::path::Path;

use anyhow::{Context as _, Result};
use eframe::egui::{ColorImage, Rect};
use serde_json::{Value, json};

use crate::board::{Board, Tile};
use crate::story::Told;

/// Saves the window and prints its contents. `drawn` has the positions of the board's tiles, in points of `scale`
/// pixels each.
///
/// *Errors*: the file cannot be written.
pub fn save(image: &ColorImage, path: &Path, told: &Told, (board, drawn, scale): (&Board, &[Rect], f32)) -> Result<()> {
    let bytes: Vec<u8> = image.pixels.iter().flat_map(|pixel| [pixel.r(), pixel.g(), pixel.b()]).collect();
    let [width, height] = image.size.map(|side| side as u32);
    image::save_buffer(path, &bytes, width, height, image::ColorType::Rgb8)
        .with_context(|| format!("cannot save the screenshot {}", path.display()))?;
    let candidates = told.candidates.iter().map(|one| json!([one.text, one.chance, one.is_taken]));
    let report = json!({
        "device": told.device,
        "text": told.pieces.concat(),
        "tokens": told.tokens,
        "candidates": candidates.collect::<Vec<_>>(),
        "position": board.position,
        "tiles": board.tiles.iter().zip(drawn).map(|(tile, at)| entry(tile, at, scale)).collect::<Vec<_>>(),
    });
    println!("{report}");
    Ok(())
}

fn entry(tile: &Tile, at: &Rect, scale: f32) -> Value {
    let pixels = [at.min.x, at.min.y, at.width(), at.height()].map(|points| (points * scale).round());
    json!({
        "label": tile.label, "block": tile.block, "kernel": tile.kernel, "place": tile.place,
        "rows": tile.made.rows, "cols": tile.made.cols, "first": tile.first, "stride": tile.stride,
        "texels": [tile.area[2], tile.area[3]],
        "pixels": pixels,
    })
}
