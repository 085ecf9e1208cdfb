//! Weights of a model's graphs, and the tensors of the file that they come from.

use std::collections::HashMap;
use std::ops::Range;

use backend_api::op::RopeTable;
use backend_api::{DType, Format};

use super::attention::Temperature;
use crate::error::ModelError;
use crate::gguf::{Gguf, TensorInfo, shown};

/// A weight to load.
#[derive(Debug, Clone)]
pub struct Weight {
    /// The name in every graph of the model.
    pub name: String,
    /// The shape.
    pub shape: Vec<usize>,
    /// The dtype: packed for matrices, dense f32 for vectors and tables.
    pub dtype: DType,
    /// Source of the values.
    pub contents: Contents,
}

impl Weight {
    /// Returns whether it has the matrices of experts.
    pub fn is_of_experts(&self) -> bool {
        matches!(&self.contents, Contents::Tensors(tensors) if tensors.iter().any(|tensor| tensor.shape.len() == 3))
    }
}

/// Source of a weight's values.
#[derive(Debug, Clone)]
pub enum Contents {
    /// Tensors of the file, stacked.
    Tensors(Vec<TensorInfo>),
    /// Matrices of the file, each transposed, as f32; stacked.
    Transposed(Vec<TensorInfo>),
    /// One number everywhere, for a weight that the file leaves out.
    Constant(f32),
    /// Sines and cosines of positions. The frequency factors, if any, are a tensor of the file.
    Rope(RopeTable, Option<TensorInfo>),
    /// Factors of queries, by position.
    Temperature(Temperature),
}

/// Biases of feed-forward layers and of the last product of attention.
const AFTER_ATTENTION: &[&str] = &["attn_output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"];

/// Tensors that files of some families may have, but that their models do not use: names without `blk.N.`.
const UNUSED: &[(&str, &[&str])] = &[
    ("apertus", &["attn_q_norm.bias", "attn_k_norm.bias"]),
    ("dream", &["output.bias"]),
    ("ernie4_5", &["attn_output.bias"]),
    ("llada", AFTER_ATTENTION),
    ("qwen2vl", &["output.bias"]),
    ("refact", AFTER_ATTENTION),
];

/// Tensors of a file by name, with checks of their shapes and formats.
#[derive(Debug)]
pub(super) struct Tensors {
    pub architecture: &'static str,
    by_name: HashMap<Box<str>, TensorInfo>,
}

/// Returns a tensor's name without the prefix of its block.
fn within_block(name: &str) -> &str {
    name.strip_prefix("blk.").and_then(|name| name.split_once('.')).map_or(name, |(_, name)| name)
}

impl Tensors {
    pub fn new(gguf: &Gguf, architecture: &'static str) -> Tensors {
        let unused = UNUSED.iter().filter(|(name, _)| *name == architecture).flat_map(|(_, names)| *names);
        let unused: Vec<&str> = unused.copied().collect();
        let used = gguf.tensors.iter().filter(|t| !unused.contains(&within_block(&t.name)));
        let by_name = used.map(|t| (t.name.clone(), t.clone())).collect();
        Tensors { architecture, by_name }
    }

    /// Returns a tensor that may be absent.
    pub fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name.get(name)
    }

    fn get(&self, name: &str) -> Result<&TensorInfo, ModelError> {
        let missing = || ModelError::MissingTensor { name: name.into(), architecture: self.architecture };
        self.find(name).ok_or_else(missing)
    }

    /// Returns a tensor, which must have this shape.
    pub fn of_shape(&self, name: &str, shape: &[usize]) -> Result<&TensorInfo, ModelError> {
        let tensor = self.get(name)?;
        if tensor.shape == shape {
            return Ok(tensor);
        }
        let reason = format!("its shape is {:?}, but the metadata asks for {shape:?}", tensor.shape);
        Err(ModelError::Tensor { name: shown(name), reason })
    }

    /// Returns some of the matrices that are stacked in a tensor of this shape.
    pub fn stack(&self, name: &str, shape: [usize; 3], which: Range<usize>) -> Result<TensorInfo, ModelError> {
        let tensor = self.of_shape(name, &shape)?;
        let [n, rows, cols] = shape;
        let bytes = tensor.bytes / n as u64;
        Ok(TensorInfo {
            shape: vec![which.len() * rows, cols],
            offset: tensor.offset + which.start as u64 * bytes,
            bytes: which.len() as u64 * bytes,
            ..tensor.clone()
        })
    }

    /// Returns a vector, which must have this length.
    pub fn vector(&self, name: &str, len: usize) -> Result<&TensorInfo, ModelError> {
        self.dense(name, &[len])
    }

    /// Returns a tensor of so many elements in any shape, as a vector of floats.
    pub fn flat(&self, name: &str, len: usize) -> Result<TensorInfo, ModelError> {
        let shape = self.get(name)?.shape.clone();
        if shape.iter().product::<usize>() != len {
            return self.vector(name, len).cloned();
        }
        let tensor = self.dense(name, &shape)?.clone();
        Ok(TensorInfo { shape: vec![len], ..tensor })
    }

    /// Returns a tensor of floats, which must have this shape.
    pub fn dense(&self, name: &str, shape: &[usize]) -> Result<&TensorInfo, ModelError> {
        let tensor = self.of_shape(name, shape)?;
        if matches!(tensor.format, Format::F32 | Format::F16 | Format::BF16) {
            return Ok(tensor);
        }
        let reason = format!("its type is {}, but only f32, f16 and bf16 are supported for it", tensor.format.name());
        Err(ModelError::Tensor { name: shown(name), reason })
    }

    /// Returns the rows of a matrix, which must have so many columns.
    pub fn rows_of(&self, name: &str, cols: usize) -> Result<usize, ModelError> {
        match self.get(name)?.shape.as_slice() {
            [rows, found] if *found == cols => Ok(*rows),
            shape => {
                let reason = format!("its shape is {shape:?}, but the metadata asks for rows of {cols}");
                Err(ModelError::Tensor { name: shown(name), reason })
            }
        }
    }
}
