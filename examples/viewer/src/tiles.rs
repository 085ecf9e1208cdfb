//! Tiles: the result of each pass, with a row for each block of the model.

use eframe::egui::{
    Align2, Color32, FontId, Pos2, Rect, RichText, ScrollArea, Sense, Stroke, StrokeKind, TextureId, Ui, pos2, vec2,
};

use crate::board::{Board, SIDE, Tile};
use crate::window::{FAINT, TEXT};
use crate::{Backend, colour};

/// Height of a label, gap between tiles, and margin before them, in points.
const LABEL: f32 = 16.0;
const GAP: f32 = 12.0;
const MARGIN: f32 = 66.0;

/// Shows the result of each pass. Returns the position of each tile.
pub fn show(ui: &mut Ui, board: &Board, picture: TextureId, backend: Backend) -> Vec<Rect> {
    ui.label(RichText::new("What each pass leaves on the GPU").color(TEXT).size(15.0));
    let (holders, attention) = match backend {
        Backend::Webgpu => ("buffers", " Scores of attention never leave its kernel here."),
        Backend::Webgl => ("textures", ""),
    };
    let how = format!(
        "A dot is a number, a line a block of the model. Letters name the {holders}, which the passes use in turn.\
             {attention}"
    );
    ui.label(RichText::new(how).color(FAINT).size(12.0));
    legend(ui);
    let mut drawn = Vec::with_capacity(board.tiles.len());
    ScrollArea::both().auto_shrink(false).show(ui, |ui| {
        let origin = ui.cursor().min.round();
        let (mut at, mut right, mut bottom) = (origin + vec2(MARGIN, 0.0), origin.x, origin.y);
        for (index, tile) in board.tiles.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| board.tiles.get(before));
            if before.is_none_or(|before| before.block != tile.block) {
                at = pos2(origin.x + MARGIN, bottom);
                let outside = || if before.is_none() { "before".into() } else { "after".into() };
                let name = tile.block.map_or_else(outside, |block| format!("block {block}"));
                let left = pos2(origin.x, at.y + LABEL);
                ui.painter().text(left, Align2::LEFT_TOP, name, FontId::proportional(13.0), TEXT);
            }
            let dots = draw(ui, picture, tile, at);
            at.x = dots.right() + GAP;
            (right, bottom) = (right.max(dots.right()), bottom.max(dots.bottom() + GAP));
            drawn.push(dots);
        }
        ui.allocate_space(vec2(right - origin.x, bottom - origin.y));
    });
    drawn
}

/// Draws a tile with its label. Returns its position, without the label.
fn draw(ui: &Ui, picture: TextureId, tile: &Tile, at: Pos2) -> Rect {
    let letter = char::from(b'A' + (tile.place % 26) as u8);
    let label = format!("{} · {letter}", tile.label);
    ui.painter().text(at, Align2::LEFT_TOP, label, FontId::proportional(11.0), FAINT);
    let ([_, _, wide, high], [across, down]) = (tile.area, tile.dot);
    let dots = Rect::from_min_size(at + vec2(0.0, LABEL), vec2((wide * across) as f32, (high * down) as f32));
    let [x, y, width, height] = tile.area.map(|texels| texels as f32 / SIDE as f32);
    let part = Rect::from_min_size(pos2(x, y), vec2(width, height));
    ui.painter().image(picture, dots, part, Color32::WHITE);
    ui.painter().rect_stroke(dots, 0.0, Stroke::new(1.0, Color32::from_gray(58)), StrokeKind::Outside);
    dots
}

/// Draws the legend of colours.
fn legend(ui: &mut Ui) {
    let (response, painter) = ui.allocate_painter(vec2(400.0, 34.0), Sense::hover());
    let bar = Rect::from_min_size((response.rect.min + vec2(0.0, 4.0)).round(), vec2(400.0, 8.0));
    let scale = |t: f32| t.signum() * (10001f32.powf(t.abs()) - 1.0) / 100.0;
    for step in 0..200 {
        let value = scale((step as f32 + 0.5) / 100.0 - 1.0);
        let dot = Rect::from_min_size(bar.min + vec2(2.0 * step as f32, 0.0), vec2(2.0, bar.height()));
        painter.rect_filled(dot, 0.0, colour::of(value));
    }
    for (text, t) in [("−100", -1.0), ("−10", -0.75), ("−1", -0.5), ("0", 0.0), ("1", 0.5), ("10", 0.75), ("100", 1.0)]
    {
        let align = match t {
            -1.0 => Align2::LEFT_TOP,
            1.0 => Align2::RIGHT_TOP,
            _ => Align2::CENTER_TOP,
        };
        let at = pos2(bar.center().x + t * bar.width() / 2.0, bar.bottom() + 2.0);
        painter.text(at, align, text, FontId::proportional(11.0), FAINT);
    }
}
