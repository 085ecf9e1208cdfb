//! Layout of the picture: the passes of a step in order, with a row for each block of the model.

use backend_api::op::TopK;
use backend_api::{KernelInfo, Made, StepParams};

/// Width and height of the picture in texels.
pub const SIDE: u32 = 1024;
/// Lines that a row is wrapped into, and the most columns that these may have. Wider rows get more lines.
const LINES: usize = 8;
const WIDEST: usize = 128;
/// Fewest columns of a matrix that is shown. Smaller ones show little, and the candidates are shown elsewhere.
const LEAST: usize = TopK::MAX + 1;
/// Number of newest keys, and of heads, that are shown of attention scores.
const NEWEST: usize = 128;
const HEADS: usize = 16;
/// Width of each tile in the window, in points.
const WIDTH: usize = 256;

/// Labels of kernels' results, by the beginning of the kernel's name and a part of its weights' name.
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

/// A matrix, or a part of one, in the picture.
#[derive(Debug, Clone)]
pub struct Tile {
    pub label: String,
    /// Block of the model; `None` before the first one and after the last one.
    pub block: Option<usize>,
    pub kernel: String,
    pub made: Made,
    /// Number of its buffer or texture, in the order in which these are first used.
    pub place: usize,
    /// Position and size in the picture: x, y, width and height.
    pub area: [u32; 4],
    pub first: usize,
    pub stride: usize,
    /// Width and height of an element in the window.
    pub dot: [u32; 2],
}

/// Tiles of the newest step.
#[derive(Debug, Default)]
pub struct Board {
    pub tiles: Vec<Tile>,
    /// Position of the step in the text.
    pub position: usize,
    /// Position of the next tile, and height of the current row of tiles.
    x: u32,
    y: u32,
    height: u32,
}

/// Buffers or textures of a step, numbered in the order in which they are first used.
pub struct Places<P>(Vec<P>);

impl<P: PartialEq> Places<P> {
    pub fn new() -> Places<P> {
        Places(Vec::new())
    }

    /// Begins a pass. The first pass begins a new step.
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
    /// Begins a pass. Returns whether the pass is shown: only steps of one token are, and not prompts, which are
    /// computed in steps of many tokens.
    pub fn begin(&mut self, kernel: usize, params: &StepParams) -> bool {
        if params.rows == 1 && kernel == 0 {
            (self.tiles, self.x, self.y, self.height) = (Vec::new(), 0, 0, 0);
            self.position = params.position as usize;
        }
        params.rows == 1
    }

    /// Adds a tile for a matrix in a buffer or texture. Returns `None` if the matrix is too small to show, or if the
    /// picture is full.
    pub fn add(&mut self, info: &KernelInfo, made: &Made, place: usize) -> Option<(usize, &Tile)> {
        let (rows, cols) = (made.rows, made.cols);
        let is_scores = info.name.starts_with("attention_scores");
        if cols < LEAST || (rows > 1 && !is_scores) {
            return None;
        }
        // First element, elements from one line to the next, and size of the shown part.
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

/// Returns the label of a kernel's result, and the block of the model.
fn words(info: &KernelInfo) -> (String, Option<usize>) {
    let block = info.subject.strip_prefix("blk.").and_then(|rest| rest.split('.').next()?.parse().ok());
    let known =
        WORDS.iter().find(|(kernel, subject, _)| info.name.starts_with(kernel) && info.subject.contains(subject));
    let label = known.map(|(_, _, words)| *words).or_else(|| info.name.split(' ').next());
    (label.unwrap_or_default().replace('_', " "), block)
}
