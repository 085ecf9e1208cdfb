//! Kernels as data: the draws that an operator becomes.

use crate::Layout;
use crate::dense::Dense;
use backend_api::format::{Codebook, Packing, TEXEL, codebooks};
use backend_api::op::At;
use backend_api::{Bound, Codec, DType, Format, Tensor};

/// Where a draw reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// An operand of the node.
    Input(usize),
    /// A scratch texture.
    Scratch(usize),
    /// See [`Target::Beside`].
    Beside(usize),
}

/// Where a draw writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A result of the node.
    Output(usize),
    /// A scratch texture.
    Scratch(usize),
    /// A scratch texture as large as that of this result, so that both can be drawn to at once.
    Beside(usize),
}

/// A constant of a draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Word {
    Int(i32),
    Float(f32),
}

impl Word {
    /// An integer; element counts are below 2^31.
    pub(crate) fn int(value: usize) -> Word {
        Word::Int(i32::try_from(value).unwrap_or(i32::MAX))
    }

    pub(crate) fn glsl(self) -> &'static str {
        match self {
            Word::Int(_) => "int",
            Word::Float(_) => "float",
        }
    }

    pub(crate) fn bytes(self) -> [u8; 4] {
        match self {
            Word::Int(v) => v.to_ne_bytes(),
            Word::Float(v) => v.to_ne_bytes(),
        }
    }
}

/// Which texels of the targets are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    /// The first ones.
    Whole(usize),
    /// Those from the first to before the second.
    Part(usize, usize),
    /// Those of the step's new rows of a state.
    Append {
        at: At,
        /// Texels of one appended row.
        unit: usize,
        /// Rows that may come at once.
        max: usize,
        /// Texels of the state.
        texels: usize,
    },
}

/// One draw.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    /// The shader file.
    pub(crate) shader: &'static str,
    /// Preprocessor definitions.
    pub(crate) defines: Vec<(&'static str, &'static str)>,
    /// Words of the file that are replaced.
    pub(crate) words: Vec<(&'static str, String)>,
    /// Constants, in the order of the uniform block.
    pub(crate) params: Vec<(String, Word)>,
    /// Dense operands with the names that shaders give them.
    pub(crate) dense: Vec<(&'static str, Source)>,
    /// Which of them are states that textures hold as words, with the columns of their rows.
    pub(crate) states: Vec<(&'static str, Codec, usize)>,
    /// Packed operands.
    pub(crate) weights: Vec<(Source, Format)>,
    /// Colour attachments.
    pub(crate) targets: Vec<Target>,
    /// Part of the target that is drawn.
    pub(crate) region: Region,
    /// Triangles, whose results are added up.
    pub(crate) slices: usize,
    /// Operands, with the bytes of all of each.
    pub(crate) operands: Vec<(Bound, u64)>,
}

/// An operator as draws.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kernel {
    pub(crate) draws: Vec<Draw>,
    /// Texels of each scratch texture.
    pub(crate) scratch: Vec<usize>,
}

impl From<Draw> for Kernel {
    fn from(draw: Draw) -> Kernel {
        Kernel { draws: vec![draw], scratch: Vec::new() }
    }
}

impl Draw {
    fn empty(shader: &'static str, region: Region) -> Draw {
        Draw {
            shader,
            defines: Vec::new(),
            words: Vec::new(),
            params: Vec::new(),
            dense: Vec::new(),
            states: Vec::new(),
            weights: Vec::new(),
            targets: Vec::new(),
            region,
            slices: 1,
            operands: Vec::new(),
        }
    }

    /// A draw of a whole tensor.
    pub(crate) fn new(shader: &'static str, to: Target, out: &Dense) -> Draw {
        let mut draw =
            Draw::empty(shader, Region::Whole(out.texels())).int("out_rows", out.rows).int("out_cols", out.cols);
        draw.targets.push(to);
        draw
    }

    /// A draw of one value a texel into a scratch texture.
    pub(crate) fn raw(shader: &'static str, to: usize, count: usize) -> Draw {
        let mut draw = Draw::empty(shader, Region::Whole(count)).int("out_count", count);
        draw.targets.push(Target::Scratch(to));
        draw
    }

    /// A draw of the step's new rows into a state of `units` appended rows at most.
    pub(crate) fn append(
        shader: &'static str,
        to: Target,
        state: &Dense,
        at: At,
        unit_rows: usize,
        max: usize,
    ) -> Draw {
        let unit = unit_rows * state.row_texels();
        let region = Region::Append { at, unit, max, texels: state.texels() };
        let mut draw = Draw::empty(shader, region)
            .define("APPEND", "")
            .int("out_rows", state.rows)
            .int("out_cols", state.cols)
            .int("append_unit", unit_rows)
            .int("append_max", max);
        draw = draw.define_if(at == At::Next, "APPEND_NEXT").define_if(at == At::EachNext, "APPEND_EACH");
        draw.targets.push(to);
        draw
    }

    /// Another colour attachment of the same shape.
    pub(crate) fn and(mut self, to: Target) -> Draw {
        self.targets.push(to);
        let count = if self.targets.len() == 2 { "TWO" } else { "THREE" };
        self.define(count, "")
    }

    /// Limits the draw to the rows of a tensor from `first` to before `end`.
    pub(crate) fn part(mut self, out: &Dense, first: usize, end: usize) -> Draw {
        self.region = Region::Part(first * out.row_texels(), end * out.row_texels());
        self.define("PART", "")
    }

    /// As the sum of so many slices.
    pub(crate) fn sliced(mut self, slices: usize) -> Draw {
        self.slices = slices;
        self.define("SLICED", "").int("slices", slices)
    }

    pub(crate) fn define(mut self, name: &'static str, value: &'static str) -> Draw {
        self.defines.push((name, value));
        self
    }

    pub(crate) fn define_if(self, condition: bool, name: &'static str) -> Draw {
        if condition { self.define(name, "") } else { self }
    }

    /// An integer constant.
    pub(crate) fn int(mut self, name: impl Into<String>, value: usize) -> Draw {
        self.params.push((name.into(), Word::int(value)));
        self
    }

    pub(crate) fn word(mut self, name: &'static str, text: String) -> Draw {
        self.words.push((name, text));
        self
    }

    pub(crate) fn float(mut self, name: impl Into<String>, value: f32) -> Draw {
        self.params.push((name.into(), Word::Float(value)));
        self
    }

    /// A dense operand.
    pub(crate) fn input(mut self, name: &'static str, index: usize, tensor: &Tensor) -> Draw {
        self.dense.push((name, Source::Input(index)));
        self.operands.push((Bound::Input(index), tensor.dense_bytes()));
        self
    }

    /// Sets BLOCKS if textures of this layout hold these states as words. They are operands or results, by the names that
    /// the shader gives them.
    pub(crate) fn codec(mut self, layout: Layout, tensor: &Tensor, states: &[&'static str]) -> Draw {
        let cols = tensor.shape.cols();
        match tensor.dtype {
            DType::Coded(codec) if layout.words(codec, cols).is_some() => {
                self.states.extend(states.iter().map(|name| (*name, codec, cols)));
                self.define("BLOCKS", "")
            }
            _ => self,
        }
    }

    /// Rows and columns of what it makes, if it makes a matrix: what kernels know of it themselves.
    pub(crate) fn out_shape(&self) -> Option<(usize, usize)> {
        let param = |name: &str| self.params.iter().find(|(param, _)| param == name);
        match (param("out_rows")?, param("out_cols")?) {
            ((_, Word::Int(rows)), (_, Word::Int(cols))) => {
                Some((usize::try_from(*rows).ok()?, usize::try_from(*cols).ok()?))
            }
            _ => None,
        }
    }

    /// A scratch texture as an operand.
    pub(crate) fn scratch(self, name: &'static str, index: usize) -> Draw {
        self.source(name, Source::Scratch(index))
    }

    /// A dense operand from anywhere.
    pub(crate) fn source(mut self, name: &'static str, from: Source) -> Draw {
        self.dense.push((name, from));
        self
    }

    /// A packed operand.
    ///
    /// *Errors*: it is not packed or too large to address.
    pub(crate) fn packed(mut self, index: usize, tensor: &Tensor) -> Result<Draw, String> {
        let DType::Packed(format) = tensor.dtype else { return Err(format!("operand {index} must be packed")) };
        let packing = Packing::new(format, tensor.shape.rows(), tensor.shape.cols()).map_err(|e| e.to_string())?;
        if i32::try_from(packing.texels).is_err() {
            return Err(format!("{} has 2^31 texels or more", tensor.name));
        }
        let operand = crate::shader::OPERANDS.get(self.weights.len()).ok_or("too many packed operands")?;
        for (plane, start) in packing.planes.iter().enumerate() {
            self = self.int(format!("plane{plane}_{operand}"), *start as usize);
        }
        self = self.int(format!("groups_{operand}"), packing.groups);
        self.weights.push((Source::Input(index), format));
        self.operands.push((Bound::Input(index), (packing.texels * TEXEL) as u64));
        Ok(self)
    }

    /// The codebooks of its packed operands, in order.
    pub(crate) fn codebooks(&self) -> Vec<&'static Codebook> {
        codebooks(self.weights.iter().map(|(_, format)| *format))
    }

    /// Returns the name of the kernel in reports.
    pub(crate) fn name(&self, layout: Layout) -> String {
        let mut name = self.shader.to_string();
        for (_, format) in &self.weights {
            name = format!("{name} {}", format.name());
        }
        if let Some((_, codec, _)) = self.states.first() {
            name = format!("{name} {}", codec.spec().name);
        }
        for (define, value) in &self.defines {
            name = format!("{name} {}", if value.is_empty() { define } else { value });
        }
        match layout {
            Layout::Packed => name,
            Layout::R32f | Layout::Bits => format!("{name} {}", layout.name()),
        }
    }
}
