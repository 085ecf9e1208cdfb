//! Descriptors of formats for shaders: the decoder of a family takes flags and words from them, the same in WGSL and
//! GLSL.

use super::{Family, Floats, FormatSpec, GROUP, Grid, Indices, MAX_PLANES, Signs, Steps};
use crate::shader::Instance;

/// A part of a decoder: a file of each backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The decoder of floats.
    Floats,
    /// Scale and minimum of both halves of a group, for the families that have such.
    Scales,
    /// The decoder of linear blocks.
    Linear,
    /// The decoder of tables of levels.
    Levels,
    /// Entries of a codebook, signs and scales of a group of a grid.
    Entries,
    /// The decoder of grids.
    Grid,
    /// The digits of trits.
    Digits,
    /// The decoder of trits.
    Trits,
}

impl FormatSpec {
    /// The decoder: `file` gives the file of a part, `planes` the names of the planes' first texels.
    pub fn decoder(&self, file: impl Fn(Part) -> &'static str, planes: [String; MAX_PLANES]) -> Instance {
        let mut decoder = Instance::default();
        for (plane, first) in self.planes().iter().zip(planes) {
            decoder.words.push((plane.name, first));
        }
        match &self.family {
            Family::Floats(floats) => {
                decoder.files.push(file(Part::Floats));
                decoder.flags.push(match floats {
                    Floats::F32 => "F32",
                    Floats::F16 => "F16",
                    Floats::BF16 => "BF16",
                });
            }
            Family::Linear(linear) => {
                decoder.files.extend([file(Part::Scales), file(Part::Linear)]);
                decoder.flags.push(linear.scales.flag());
                decoder.words.push(("GROUP_SHIFT", self.group_shift()));
                decoder.flags.push(match linear.bits() {
                    1 => "BITS1",
                    2 => "BITS2",
                    3 => "BITS3",
                    4 => "BITS4",
                    5 => "BITS5",
                    6 => "BITS6",
                    _ => "BITS8",
                });
                if linear.scales.minima() {
                    decoder.flags.push("MINIMA");
                }
                // A code of 1 bit stands for 0 or 2. One of 8 bits has a sign: as a level it is 128 more.
                let steps = 1 << linear.bits().max(2);
                let zero = if linear.bits() == 8 { 128 } else { i32::from(linear.zero) };
                decoder.words.push(("ZERO", format!("{}.0", linear.zero)));
                decoder.words.push(("STEPS", format!("{steps}.0")));
                decoder.words.push(("BASE", format!("{}.0", steps + zero)));
            }
            Family::Levels(levels) => {
                decoder.files.extend([file(Part::Scales), file(Part::Levels)]);
                decoder.flags.push(levels.scales.flag());
                decoder.words.push(("GROUP_SHIFT", self.group_shift()));
                for (word, levels) in ["LEVEL0", "LEVEL1", "LEVEL2", "LEVEL3"].into_iter().zip(levels.words()) {
                    decoder.words.push((word, format!("{levels:#010x}u")));
                }
            }
            Family::Grid(grid) => {
                decoder.files.extend([file(Part::Entries), file(Part::Grid)]);
                describe(grid, &mut decoder);
            }
            Family::Trits(trits) => {
                decoder.files.extend([file(Part::Scales), file(Part::Digits), file(Part::Trits)]);
                decoder.flags.push(trits.scales().flag());
                decoder.words.push(("GROUP_SHIFT", self.group_shift()));
            }
        }
        decoder
    }

    /// How far the number of a group is shifted to give that of its block.
    fn group_shift(&self) -> String {
        (self.block_len / GROUP).trailing_zeros().to_string()
    }
}

/// The flags and words of a grid.
fn describe(grid: &Grid, decoder: &mut Instance) {
    let mut flag = |flag, set| decoder.flags.extend(Some(flag).filter(|_| set));
    flag("NINES", matches!(grid.indices, Indices::Nines { .. }));
    flag("FOURS", grid.codebook.bits == 4);
    flag("NARROW", grid.apart() == 4);
    flag("SIGNS_APART", grid.signs_apart());
    flag("EXTENDED", grid.high.is_some());
    decoder.flags.push(match grid.signs {
        Signs::Sevens { .. } | Signs::Nines { .. } => "SEVENS",
        Signs::Bytes { .. } => "EIGHTS",
        Signs::High { .. } => "ALIKE",
    });
    decoder.flags.push(match grid.steps {
        Steps::Sevens { .. } => "STEP_ABOVE_SIGNS",
        Steps::Halves { .. } => "STEP_OF_HALF",
        Steps::Groups { .. } => "STEP_OF_GROUP",
        Steps::High => "STEP_ABOVE_INDICES",
        Steps::Threes { .. } => "STEPS_BELOW_FACTOR",
    });
    if let Some(high) = grid.high {
        decoder.words.push(("HIGH_BYTES", high.bytes.to_string()));
        decoder.words.push(("HIGH_PITCH", high.pitch.to_string()));
        decoder.words.push(("HIGH_MASK", format!("{}u", (1 << high.bits) - 1)));
    }
    if let Signs::High { bit, pitch } = grid.signs {
        decoder.words.extend([("SIGN_BIT", bit.to_string()), ("SIGN_PITCH", pitch.to_string())]);
    }
    // The plane of words has a block's indices, then its signs.
    let (indices, signs) = (grid.index_texels(), if grid.signs_apart() { 2 } else { 0 });
    decoder.words.extend([("SIGNS", indices.to_string()), ("SPAN", (indices + signs).to_string())]);
    let [first, second] = grid.codebook.words().map(|word| format!("{word:#010x}u"));
    decoder.words.extend([("LEVEL0", first), ("LEVEL1", second)]);
    decoder.words.push(("CODEBOOK", grid.codebook.shader_name()));
    decoder.words.push(("UNIT", format!("{:?}", f32::from(grid.quarters) / 4.0)));
}
