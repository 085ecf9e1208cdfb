//! Which tensors of the file become which weights of the graph.

use backend_api::format::ROW_ALIGN;
use backend_api::op::RopeTable;
use backend_api::{DType, Format};

use super::{Joint, Linear, NormWeights, WeightId};
use crate::error::ModelError;
use crate::gguf::{Gguf, TensorInfo, shown};
use backend_api::op::{Norm, NormKind};

/// A weight to load.
#[derive(Debug, Clone)]
pub struct Weight {
    /// Its name in every graph of the model.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Packed for matrices, dense f32 for vectors and tables.
    pub dtype: DType,
    /// Where its values come from.
    pub contents: Contents,
}

/// Where the values of a weight come from.
#[derive(Debug, Clone)]
pub enum Contents {
    /// Tensors of the file, one below the other.
    Tensors(Vec<TensorInfo>),
    /// Sines and cosines of positions; the factors, if any, are a tensor of the file.
    Rope(RopeTable, Option<TensorInfo>),
}

/// Takes tensors from a file, checks them, and lists what is to be loaded.
pub(super) struct Weights<'a> {
    pub gguf: &'a Gguf,
    pub architecture: &'static str,
    pub list: Vec<Weight>,
}

impl<'a> Weights<'a> {
    fn add(&mut self, name: String, shape: Vec<usize>, dtype: DType, contents: Contents) -> WeightId {
        self.list.push(Weight { name, shape, dtype, contents });
        WeightId(self.list.len() - 1)
    }

    fn tensor(&self, name: &str) -> Result<&'a TensorInfo, ModelError> {
        let missing = || ModelError::MissingTensor { name: name.into(), architecture: self.architecture };
        self.gguf.tensor(name).ok_or_else(missing)
    }

    fn checked(&self, name: &str, shape: &[usize]) -> Result<&'a TensorInfo, ModelError> {
        let tensor = self.tensor(name)?;
        if tensor.shape == shape {
            return Ok(tensor);
        }
        let reason = format!("its shape is {:?}, but the metadata asks for {shape:?}", tensor.shape);
        Err(ModelError::Tensor { name: shown(name), reason })
    }

    /// The rows of a matrix whose columns are known.
    pub fn rows_of(&self, name: &str, cols: usize) -> Result<usize, ModelError> {
        let tensor = self.tensor(name)?;
        match tensor.shape.as_slice() {
            [rows, found] if *found == cols => Ok(*rows),
            shape => {
                let reason = format!("its shape is {shape:?}, but the metadata asks for rows of {cols}");
                Err(ModelError::Tensor { name: shown(name), reason })
            }
        }
    }

    /// A matrix in the file's format.
    pub fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<WeightId, ModelError> {
        let tensor = self.checked(name, &[rows, cols])?.clone();
        let dtype = DType::Packed(tensor.format);
        Ok(self.add(name.into(), vec![rows, cols], dtype, Contents::Tensors(vec![tensor])))
    }

    fn vector_tensor(&self, name: &str, len: usize) -> Result<&'a TensorInfo, ModelError> {
        let tensor = self.checked(name, &[len])?;
        if matches!(tensor.format, Format::F32 | Format::F16 | Format::BF16) {
            return Ok(tensor);
        }
        let reason = format!("a vector of the type {} is not supported", tensor.format.name());
        Err(ModelError::Tensor { name: shown(name), reason })
    }

    /// A vector.
    pub fn vector(&mut self, name: &str, len: usize) -> Result<WeightId, ModelError> {
        let tensor = self.vector_tensor(name, len)?.clone();
        Ok(self.add(name.into(), vec![len], DType::F32, Contents::Tensors(vec![tensor])))
    }

    /// `{stem}.weight` and, if the file has it, `{stem}.bias`.
    pub fn linear(&mut self, stem: &str, rows: usize, cols: usize) -> Result<Linear, ModelError> {
        let weight = self.matrix(&format!("{stem}.weight"), rows, cols)?;
        let bias = format!("{stem}.bias");
        let bias = if self.gguf.tensor(&bias).is_some() { Some(self.vector(&bias, rows)?) } else { None };
        Ok(Linear { weight, bias })
    }

    /// A norm; layer norm has a bias besides.
    pub fn norm(&mut self, stem: &str, norm: Norm, len: usize) -> Result<NormWeights, ModelError> {
        let gamma = self.vector(&format!("{stem}.weight"), len)?;
        let beta = match norm.kind {
            NormKind::Layer => Some(self.vector(&format!("{stem}.bias"), len)?),
            NormKind::Rms => None,
        };
        Ok(NormWeights { norm, gamma, beta })
    }

    /// Several projections of one input: as one matrix if the file's tensors can lie one below the other, which
    /// spares dispatches; else one by one. `parts` are (stem, rows).
    pub fn joint(&mut self, name: &str, parts: &[(String, usize)], cols: usize) -> Result<Joint, ModelError> {
        let widths = parts.iter().map(|(_, rows)| *rows).collect();
        let tensors = parts.iter().map(|(stem, rows)| self.checked(&format!("{stem}.weight"), &[*rows, cols]));
        let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
        let biased: Vec<bool> =
            parts.iter().map(|(stem, _)| self.gguf.tensor(&format!("{stem}.bias")).is_some()).collect();
        let agree = tensors.windows(2).all(|w| w[0].format == w[1].format) && biased.windows(2).all(|w| w[0] == w[1]);
        let aligned = parts.iter().all(|(_, rows)| rows.is_multiple_of(ROW_ALIGN));
        if !(agree && aligned) {
            let linears = parts.iter().map(|(stem, rows)| self.linear(stem, *rows, cols));
            return Ok(Joint { linears: linears.collect::<Result<_, _>>()?, widths });
        }
        let rows: usize = parts.iter().map(|(_, rows)| rows).sum();
        let dtype = DType::Packed(tensors[0].format);
        let contents = Contents::Tensors(tensors.into_iter().cloned().collect());
        let weight = self.add(format!("{name}.weight"), vec![rows, cols], dtype, contents);
        let bias = if biased[0] {
            let tensors = parts.iter().map(|(stem, n)| self.vector_tensor(&format!("{stem}.bias"), *n).cloned());
            let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
            Some(self.add(format!("{name}.bias"), vec![rows], DType::F32, Contents::Tensors(tensors)))
        } else {
            None
        };
        Ok(Joint { linears: vec![Linear { weight, bias }], widths })
    }

    /// The table of RoPE angles for `n_ctx` positions.
    pub fn rope(&mut self, n_ctx: usize, table: RopeTable, factors: &str) -> Result<WeightId, ModelError> {
        let n_dims = table.n_dims;
        let factors = match self.gguf.tensor(factors) {
            Some(_) => Some(self.vector_tensor(factors, n_dims / 2)?.clone()),
            None => None,
        };
        Ok(self.add("rope_table".into(), vec![n_ctx, n_dims], DType::F32, Contents::Rope(table, factors)))
    }
}
