//! Which matrix is painted where: a step's passes in order, a line for each block of the model.

use backend_api::op::TopK;
use backend_api::{KernelInfo, Made, StepParams};

/// Texels of the picture, on each side.
pub const SIDE: u32 = 1024;
/// Lines that rows are wrapped into, and the most columns that this gives: wider rows have more lines.
const LINES: usize = 8;
const WIDEST: usize = 128;
/// What has fewer columns is not shown: there is little to see, and candidates stand elsewhere.
const LEAST: usize = TopK::MAX + 1;
/// Of attention, the newest keys are shown, of so many heads at most.
const NEWEST: usize = 128;
const HEADS: usize = 16;
/// Points in the window that all tiles are wide.
const WIDTH: usize = 256;

/// What kernels make, in people's words: by the beginning of the kernel's name and what its weights are called.
const WORDS: &[(&str, &str, &str)] = &[
    ("attention_scores", "", "attention scores, a line a head"),
    ("attention", "", "what attention found"),
    ("", "position_embd", "embedding"),
    ("embed", "", "embedding"),
    ("get_rows", "token_embd", "embedding"),
    ("softmax", "", "probabilities"),
    ("penalize", "", "logits, adjusted"),
    ("", "attn_qkv", "queries"),
    ("", "attn_q.", "queries"),
    ("", "attn_output", "after attention"),
    ("", "ffn_up", "feed-forward"),
    ("", "ffn_gate", "feed-forward"),
    ("", "ffn_down", "after feed-forward"),
    ("linear", "token_embd", "logits"),
    ("linear", "output.", "logits"),
];

/// A matrix, or a part of it, in the picture.
#[derive(Debug, Clone)]
pub struct Tile {
    pub label: String,
    /// The block of the model; none before the first and after the last.
    pub block: Option<usize>,
    pub kernel: String,
    pub made: Made,
    /// Which of the buffers or textures it lies in, by the order in which they first came.
    pub place: usize,
    /// x, y, width and height in the picture.
    pub area: [u32; 4],
    pub first: usize,
    pub stride: usize,
    /// The size of an element in the window.
    pub dot: [u32; 2],
}

/// The tiles of the newest step.
#[derive(Debug, Default)]
pub struct Board {
    pub tiles: Vec<Tile>,
    /// The step's position in the text.
    pub position: usize,
    /// Where the next tile goes, and how high its shelf is.
    x: u32,
    y: u32,
    height: u32,
}

/// The buffers or textures of a step, numbered in the order in which they come first.
pub struct Places<P>(Vec<P>);

impl<P: PartialEq> Places<P> {
    pub fn new() -> Places<P> {
        Places(Vec::new())
    }

    /// Takes note of a pass: with the first one a step begins.
    pub fn begin(&mut self, kernel: usize) {
        if kernel == 0 {
            self.0.clear();
        }
    }

    pub fn number(&mut self, place: P) -> usize {
        let known = self.0.iter().position(|known| *known == place);
        known.unwrap_or_else(|| {
            self.0.push(place);
            self.0.len() - 1
        })
    }
}

impl Board {
    /// Takes note of a pass. Only steps of one token are shown: prompts go through in one with many.
    pub fn begin(&mut self, kernel: usize, params: &StepParams) -> bool {
        if params.rows == 1 && kernel == 0 {
            (self.tiles, self.x, self.y, self.height) = (Vec::new(), 0, 0, 0);
            self.position = params.position as usize;
        }
        params.rows == 1
    }

    /// Finds room for a matrix that lies at a place; none if it is too small to show or there is no room left.
    pub fn add(&mut self, info: &KernelInfo, made: &Made, place: usize) -> Option<(usize, &Tile)> {
        let (rows, cols) = (made.rows, made.cols);
        let is_scores = info.name.starts_with("attention_scores");
        if cols < LEAST || (rows > 1 && !is_scores) {
            return None;
        }
        // The first element, those from line to line, and how many are shown.
        let (first, stride, width, height) = if is_scores {
            let first = (self.position + 1).saturating_sub(NEWEST);
            (first, cols, NEWEST.min(cols), rows.min(HEADS))
        } else {
            let width = cols.div_ceil(LINES).min(WIDEST);
            (0, width, width, cols.div_ceil(width))
        };
        let across = (WIDTH / width) as u32;
        let dot = [across, if is_scores { 2 * across } else { across }];
        let (width, height) = (width as u32, u32::try_from(height).ok()?);
        if self.x + width > SIDE {
            (self.x, self.y, self.height) = (0, self.y + self.height, 0);
        }
        if self.y + height > SIDE {
            return None;
        }
        let area = [self.x, self.y, width, height];
        (self.x, self.height) = (self.x + width, self.height.max(height));
        let (label, block) = words(info);
        let tile =
            Tile { label, block, kernel: info.name.clone(), made: made.clone(), place, area, first, stride, dot };
        self.tiles.push(tile);
        Some((self.tiles.len() - 1, self.tiles.last()?))
    }
}

/// What a kernel makes, and in which block.
fn words(info: &KernelInfo) -> (String, Option<usize>) {
    let block = info.subject.strip_prefix("blk.").and_then(|rest| rest.split('.').next()?.parse().ok());
    let known =
        WORDS.iter().find(|(kernel, subject, _)| info.name.starts_with(kernel) && info.subject.contains(subject));
    let label = known.map(|(_, _, words)| *words).or_else(|| info.name.split(' ').next());
    (label.unwrap_or_default().replace('_', " "), block)
}
