//! `linear`: norm, matmul, bias, activation and residual in one.
//!
//! *Operands*: x `[m, k]`; with `norm` gamma (and beta) `[k]`; w `[n, k]` packed; with `bias` `[n]`; with `residual`
//! `[m, out]`. *Results*: `[m, out]`: `act(norm(x) * w^T + bias) + residual`, where out is n, or n / 2 for a GLU, whose
//! gate is the first half of the rows of w and whose up part is the second.

use super::{Describe, F32, GluKind, Norm, NormKind, Output, UnaryKind, ensure, floats, shape};
use crate::case::Case;
use crate::format::Format;
use crate::graph::TensorId;
use crate::step::StepParams;
use crate::tensor::{DType, Tensor};

/// What follows the matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Nothing.
    None,
    /// An elementwise function.
    Unary(UnaryKind),
    /// A gated linear unit of the two halves of the columns.
    Glu(GluKind),
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// A norm of x before the matmul.
    pub norm: Option<Norm>,
    /// Whether a bias is added.
    pub bias: bool,
    /// What follows.
    pub activation: Activation,
    /// Whether a residual is added at the end.
    pub residual: bool,
}

/// The operands of a [`Linear`] by name.
#[derive(Debug, Clone, Copy)]
pub struct LinearOperands<'a, T> {
    /// The input.
    pub x: &'a T,
    /// Gamma, then beta for layer norm; empty without a norm.
    pub norm: &'a [T],
    /// The weight matrix.
    pub w: &'a T,
    /// The bias.
    pub bias: Option<&'a T>,
    /// The residual.
    pub residual: Option<&'a T>,
}

impl Linear {
    /// A matmul and nothing else.
    pub const PLAIN: Linear = Linear { norm: None, bias: false, activation: Activation::None, residual: false };

    /// Names the operands in a list; `None` if their number does not fit.
    pub fn operands<'a, T>(&self, list: &'a [T]) -> Option<LinearOperands<'a, T>> {
        let (x, rest) = list.split_first()?;
        let (norm, rest) = rest.split_at_checked(self.norm.map_or(0, |n| n.kind.params()))?;
        let (w, rest) = rest.split_first()?;
        let (bias, rest) = rest.split_at_checked(usize::from(self.bias))?;
        let (residual, rest) = rest.split_at_checked(usize::from(self.residual))?;
        rest.is_empty().then_some(LinearOperands { x, norm, w, bias: bias.first(), residual: residual.first() })
    }

    /// The columns of the result for `n` rows of weights.
    pub fn out_cols(&self, n: usize) -> usize {
        if matches!(self.activation, Activation::Glu(_)) { n / 2 } else { n }
    }
}

impl Describe for Linear {
    const NAME: &'static str = "linear";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let o = self.operands(inputs).ok_or_else(|| format!("does not take {} operands", inputs.len()))?;
        floats(&[o.x])?;
        ensure(matches!(o.w.dtype, DType::Packed(_)), || "w must be packed".into())?;
        ensure(o.x.shape.rank() == 2, || "x must be a matrix".into())?;
        let (m, k, n) = (o.x.shape.dim(0), o.x.shape.cols(), o.w.shape.dim(0));
        ensure(o.w.shape.cols() == k, || "the inner dimensions differ".into())?;
        if let Some(norm) = &self.norm {
            norm.check(k, o.norm)?;
        }
        let halves = matches!(self.activation, Activation::Glu(_));
        ensure(!halves || n.is_multiple_of(2), || "a GLU needs an even number of rows".into())?;
        if let Some(bias) = o.bias {
            floats(&[bias])?;
            ensure(bias.shape.rank() == 1 && bias.shape.len() == n, || format!("the bias must be [{n}]"))?;
        }
        let out = shape(&[m, self.out_cols(n)])?;
        if let Some(residual) = o.residual {
            floats(&[residual])?;
            ensure(residual.shape == out, || format!("the residual must be {out}"))?;
        }
        Ok(vec![Output::New(out, DType::F32)])
    }

    fn cases() -> Vec<Case> {
        let rms = Some(Norm { kind: NormKind::Rms, eps: 1e-5 });
        let layer = Some(Norm { kind: NormKind::Layer, eps: 1e-5 });
        let silu = Activation::Unary(UnaryKind::Silu);
        let gelu = Activation::Unary(UnaryKind::GeluTanh);
        let swiglu = Activation::Glu(GluKind::Swiglu);
        let geglu = Activation::Glu(GluKind::GegluTanh);
        let none = Activation::None;
        let mut cases = Vec::new();
        let mut add = |format: Format, m: usize, n: usize, k: usize, norm, bias, activation, residual| {
            let op = Linear { norm, bias, activation, residual };
            let kind = norm.map(|n: Norm| n.kind);
            let name =
                format!("{} {m}x{n}x{k} norm {kind:?} bias {bias} {activation:?} residual {residual}", format.name());
            cases.push(Case::new(op, name, StepParams::at(0, m as u32), |o| {
                let mut list: Vec<TensorId> = vec![o.input(&[m, k])];
                list.extend((0..norm.map_or(0, |n| n.kind.params())).map(|_| o.weight(&[k])).collect::<Vec<_>>());
                list.push(o.packed(format, n, k));
                if bias {
                    list.push(o.weight(&[n]));
                }
                if residual {
                    list.push(o.input(&[m, op.out_cols(n)]));
                }
                list
            }));
        };
        for m in [1, 6] {
            for format in Format::ALL {
                let k = if format.spec().block_len == 256 { 512 } else { 576 };
                add(*format, m, 72, k, rms, false, none, false);
                add(*format, m, 96, k, rms, false, swiglu, false);
                add(*format, m, 40, k, None, true, none, true);
            }
            add(Format::Q4_0, m, 64, 512, layer, true, none, false);
            add(Format::Q4_0, m, 64, 512, layer, true, gelu, false);
            add(Format::Q4_0, m, 64, 512, None, true, none, true);
            add(Format::Q8_0, m, 5256, 512, layer, false, none, false);
            add(Format::F32, m, 33, 70, layer, true, silu, true);
            add(Format::F16, m, 22, 100, rms, true, geglu, true);
            add(Format::Q4_1, m, 576, 1536, None, false, none, true);
        }
        // Several blocks of rows, and one that is smaller.
        add(Format::Q4_0, 19, 328, 64, None, true, none, false);
        add(Format::Q8_0, 4, 96, 64, None, false, swiglu, false);
        cases
    }
}
