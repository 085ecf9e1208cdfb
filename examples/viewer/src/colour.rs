//! Colours of values. The shaders use the same ones.

use eframe::egui::Color32;

const DARK: [f32; 3] = [0.10, 0.11, 0.13];
const BELOW: [f32; 3] = [0.25, 0.65, 1.0];
const ABOVE: [f32; 3] = [1.0, 0.62, 0.15];

/// Returns the colour of a value: dark at 0, orange above and blue below. The brightness at 1 is half of that at 100
/// and beyond.
pub fn of(value: f32) -> Color32 {
    let t = ((1.0 + 100.0 * value.abs()).ln() / 10001f32.ln()).min(1.0);
    let hue = if value < 0.0 { BELOW } else { ABOVE };
    let [r, g, b] = std::array::from_fn(|i| (255.0 * (DARK[i] + t * (hue[i] - DARK[i]))).round() as u8);
    Color32::from_rgb(r, g, b)
}
