//! A kernel as data: what [`lower`](crate::lower) gives, the assembler turns into WGSL and a program binds.

use crate::storage::Chunk;
use backend_api::format::{Codebook, GROUP, codebooks};
use backend_api::{Bound, Codec, DType, Format, Tensor};

/// Storage bindings of a shader that every device has.
pub const MAX_BINDINGS: usize = 8;

/// An operand or a result of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// Operand i.
    Input(usize),
    /// Result i.
    Output(usize),
    /// Memory between the kernels of one node, read or written.
    Scratch {
        /// Whether the kernel writes it.
        write: bool,
    },
}

impl Operand {
    /// Whether a kernel writes it.
    pub fn is_written(self) -> bool {
        matches!(self, Operand::Output(_) | Operand::Scratch { write: true })
    }
}

/// A storage binding.
#[derive(Debug, Clone)]
pub struct Binding {
    /// Its name in the shader.
    pub name: &'static str,
    /// Its WGSL type.
    pub ty: &'static str,
    /// Operand that is bound.
    pub operand: Operand,
    /// Which chunk of a packed weight.
    pub chunk: usize,
    /// Bytes bound.
    pub bytes: u64,
}

/// A parameter that is fixed when compiled.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// An unsigned integer.
    U(u32),
    /// A float.
    F(f32),
}

impl Value {
    /// Its bits in the uniform block.
    pub fn bits(self) -> u32 {
        match self {
            Value::U(v) => v,
            Value::F(v) => v.to_bits(),
        }
    }

    /// Its WGSL type.
    pub fn ty(self) -> &'static str {
        match self {
            Value::U(_) => "u32",
            Value::F(_) => "f32",
        }
    }
}

/// How a table of numbers is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoder {
    /// Row-major f32.
    Dense,
    /// Row-major f32 in rows of whole vectors of four.
    Quads,
    /// Row-major f32 in rows of whole groups.
    Whole,
    /// The planes of a weight format.
    Packed(Format),
}

impl Decoder {
    /// Returns the name of the kernel in reports.
    pub fn name(self) -> &'static str {
        match self {
            Decoder::Dense => "dense",
            Decoder::Quads => "quads",
            Decoder::Whole => "whole",
            Decoder::Packed(format) => format.name(),
        }
    }
}

/// One dispatch.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The file in `shaders/`, without its extension.
    pub file: &'static str,
    /// Flags of the file's conditional parts.
    pub flags: Vec<&'static str>,
    /// Words of the file that are replaced.
    pub words: Vec<(&'static str, String)>,
    /// The decoders of its tables by name.
    pub decoders: Vec<(&'static str, Decoder)>,
    /// Its states in codecs of levels by name, with the columns of their rows.
    pub states: Vec<(&'static str, Codec, usize)>,
    /// Its storage bindings, in order.
    pub bindings: Vec<Binding>,
    /// Its parameters, in order.
    pub params: Vec<(String, Value)>,
    /// Workgroups.
    pub grid: [u32; 3],
    /// How often the lines that stand for each row, or whatever it has several of, are repeated.
    pub rows: usize,
}

impl Kernel {
    /// A kernel of a file with a grid.
    pub fn new(file: &'static str, grid: [u32; 3]) -> Kernel {
        Kernel {
            file,
            flags: Vec::new(),
            words: Vec::new(),
            decoders: Vec::new(),
            states: Vec::new(),
            bindings: Vec::new(),
            params: Vec::new(),
            grid,
            rows: 1,
        }
    }

    /// Makes each invocation multiply its weights with so many rows of x, not with one.
    pub fn rows(self, rows: usize) -> Kernel {
        self.rows_of(rows, rows)
    }

    /// Makes each invocation multiply its weights with `own` rows of the `all` that x has; others take the rest.
    pub fn rows_of(self, own: usize, all: usize) -> Kernel {
        self.each(own).flag("SEVERAL", all > 1).word("ALL_ROWS", format!("{all}u"))
    }

    /// Repeats the lines that stand for each row so many times.
    pub fn each(self, times: usize) -> Kernel {
        Kernel { rows: times, ..self }.word("ROWS", format!("{times}u"))
    }

    /// Sets a flag if a condition holds.
    pub fn flag(mut self, name: &'static str, on: bool) -> Kernel {
        if on && !self.flags.contains(&name) {
            self.flags.push(name);
        }
        self
    }

    /// Replaces a word.
    pub fn word(mut self, name: &'static str, text: impl ToString) -> Kernel {
        self.words.push((name, text.to_string()));
        self
    }

    /// Adds an integer parameter. Sizes fit: tensors have fewer than 2^31 elements.
    pub fn u(mut self, name: impl Into<String>, value: usize) -> Kernel {
        self.params.push((name.into(), Value::U(value as u32)));
        self
    }

    /// Adds a float parameter.
    pub fn f(mut self, name: &'static str, value: f32) -> Kernel {
        self.params.push((name.to_owned(), Value::F(value)));
        self
    }

    /// Adds four parameters `name0` .. `name3`.
    pub fn u4(self, name: &str, values: [usize; 4]) -> Kernel {
        values.into_iter().enumerate().fold(self, |k, (i, v)| k.u(format!("{name}{i}"), v))
    }

    /// Binds a dense tensor.
    pub fn bind(mut self, name: &'static str, ty: &'static str, operand: Operand, tensor: &Tensor) -> Kernel {
        self.bindings.push(Binding { name, ty, operand, chunk: 0, bytes: tensor.dense_bytes() });
        self
    }

    /// Sets the flag of kernels that read or write a state in this tensor's codec: HALVES share a word in pairs, BLOCKS
    /// have a file of their own. `states` are the names of the bindings of tensors of this shape.
    pub fn codec(mut self, tensor: &Tensor, states: &[&'static str]) -> Kernel {
        let DType::Coded(codec) = tensor.dtype else { return self };
        if codec.spec().levels.is_none() {
            return self.flag("HALVES", true);
        }
        self.states.extend(states.iter().map(|name| (*name, codec, tensor.shape.cols())));
        self.flag("BLOCKS", true)
    }

    /// Sets the flags of kernels that read keys and values, each in a codec of its own.
    pub fn keys_and_values(mut self, k: &Tensor, v: &Tensor) -> Kernel {
        let flags = [("KEY_HALVES", "KEY_BLOCKS"), ("VALUE_HALVES", "VALUE_BLOCKS")];
        for ((name, tensor), (halves, blocks)) in [("k", k), ("v", v)].into_iter().zip(flags) {
            let DType::Coded(codec) = tensor.dtype else { continue };
            if codec.spec().levels.is_none() {
                self = self.flag(halves, true);
                continue;
            }
            self.states.push((name, codec, tensor.shape.cols()));
            self = self.flag(blocks, true);
        }
        self
    }

    /// Binds dense operand `i` as `array<f32>`.
    pub fn input(self, name: &'static str, i: usize, tensor: &Tensor) -> Kernel {
        self.bind(name, element(tensor), Operand::Input(i), tensor)
    }

    /// Binds result `i`.
    pub fn output(self, name: &'static str, i: usize, tensor: &Tensor) -> Kernel {
        self.bind(name, element(tensor), Operand::Output(i), tensor)
    }

    /// Binds the scratch memory as `array<vec4<f32>>`.
    pub fn scratch(self, name: &'static str, write: bool, quads: usize) -> Kernel {
        self.scratch_of(name, "array<vec4<f32>>", write, quads as u64 * 16)
    }

    /// Binds the scratch memory as `array<u32>`.
    pub fn scratch_words(self, name: &'static str, write: bool, words: usize) -> Kernel {
        self.scratch_of(name, "array<u32>", write, words as u64 * 4)
    }

    /// Binds the scratch memory as `array<vec4<u32>>`.
    pub fn scratch_texels(self, name: &'static str, write: bool, texels: usize) -> Kernel {
        self.scratch_of(name, "array<vec4<u32>>", write, texels as u64 * 16)
    }

    fn scratch_of(mut self, name: &'static str, ty: &'static str, write: bool, bytes: u64) -> Kernel {
        self.bindings.push(Binding { name, ty, operand: Operand::Scratch { write }, chunk: 0, bytes });
        self
    }

    /// Binds a chunk of a table with its decoder.
    pub fn table(mut self, name: &'static str, i: usize, tensor: &Tensor, chunk: &Chunk) -> Kernel {
        let operand = Operand::Input(i);
        match &chunk.packing {
            Some(packing) => {
                self.decoders.push((name, Decoder::Packed(packing.format)));
                let bytes = chunk.bytes();
                self.bindings.push(Binding { name, ty: "array<vec4<u32>>", operand, chunk: chunk.index, bytes });
                let planes = packing.planes.map(|p| p as usize);
                self.u(format!("{name}_groups"), packing.groups).u4(&format!("{name}_plane"), planes)
            }
            None => {
                let cols = tensor.shape.cols();
                let decoder = match cols {
                    _ if cols.is_multiple_of(GROUP) => Decoder::Whole,
                    _ if cols.is_multiple_of(4) => Decoder::Quads,
                    _ => Decoder::Dense,
                };
                self.decoders.push((name, decoder));
                self.bind(name, row_type(cols), operand, tensor)
                    .u(format!("{name}_groups"), cols.div_ceil(GROUP))
                    .u(format!("{name}_cols"), cols)
            }
        }
    }

    /// Lists what it binds with the bytes of that, for traces.
    pub fn bound(&self) -> Vec<(Bound, u64)> {
        let bound = |binding: &Binding| match binding.operand {
            Operand::Input(i) => Bound::Input(i),
            Operand::Output(i) => Bound::Output(i),
            Operand::Scratch { .. } => Bound::Between,
        };
        self.bindings.iter().map(|binding| (bound(binding), binding.bytes)).collect()
    }

    /// The codebooks of its tables, which are bound after the storages, in order.
    pub fn codebooks(&self) -> Vec<&'static Codebook> {
        let packed = |(_, decoder): &(_, Decoder)| match decoder {
            Decoder::Packed(format) => Some(*format),
            Decoder::Dense | Decoder::Quads | Decoder::Whole => None,
        };
        codebooks(self.decoders.iter().filter_map(packed))
    }

    /// The name with the variant, for traces.
    pub fn title(&self) -> String {
        let mut title = self.file.to_owned();
        for (_, decoder) in &self.decoders {
            title.push(' ');
            title.push_str(decoder.name());
        }
        if let Some((_, codec, _)) = self.states.first() {
            title.push(' ');
            title.push_str(codec.spec().name);
        }
        if let Some((_, function)) = self.words.iter().find(|(word, _)| *word == "ELEMENT") {
            title.push(' ');
            title.push_str(function);
        }
        for flag in &self.flags {
            title.push(' ');
            title.push_str(&flag.to_lowercase());
        }
        title
    }
}

/// How rows of `k` numbers are bound.
pub fn row_type(k: usize) -> &'static str {
    if k.is_multiple_of(4) { "array<vec4<f32>>" } else { "array<f32>" }
}

/// How keys and values are bound where heads are whole vectors of four.
pub fn quads_type(tensor: &Tensor) -> &'static str {
    match tensor.dtype {
        DType::Coded(codec) if codec.device_words(tensor.shape.cols()).is_some() => "array<u32>",
        DType::Coded(_) => "array<vec2<u32>>",
        _ => "array<vec4<f32>>",
    }
}

/// Neighbours that are written to a state together: what its codec encodes at once, or what shares a word.
pub fn written_together(state: &Tensor) -> usize {
    match state.dtype {
        DType::Coded(codec) if codec.device_words(state.shape.cols()).is_some() => codec.spec().block_len,
        DType::Coded(_) => 2,
        _ => 1,
    }
}

fn element(tensor: &Tensor) -> &'static str {
    match tensor.dtype {
        DType::I32 => "array<i32>",
        DType::Coded(_) => "array<u32>",
        DType::F32 | DType::Packed(_) => "array<f32>",
    }
}
