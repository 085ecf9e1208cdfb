//! `binary`: elementwise arithmetic with broadcasting.
//!
//! *Operands*: a, b `[..]` whose dimensions, aligned at the innermost, are equal or 1.
//! *Results*: the broadcast shape.

use super::describe::{Describe, F32, Output, arity, ensure, floats, shape};
use crate::elementary::Scalar;
use crate::tensor::{DType, Tensor};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal);+ $(;)?) => {
        /// Which operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum BinaryKind { $($(#[$doc])* $variant),+ }

        impl BinaryKind {
            /// All operations.
            pub const ALL: &'static [BinaryKind] = &[$(BinaryKind::$variant),+];

            /// Its name in vectors and reports.
            pub const fn name(self) -> &'static str {
                match self { $(BinaryKind::$variant => $name),+ }
            }
        }
    };
}

kinds! {
    /// `a + b`.
    Add = "add";
    /// `a - b`.
    Sub = "sub";
    /// `a * b`.
    Mul = "mul";
    /// `a / b`.
    Div = "div";
}

impl BinaryKind {
    /// The operation on two numbers.
    #[inline(always)]
    pub fn of<T: Scalar>(self, a: T, b: T) -> T {
        match self {
            BinaryKind::Add => a + b,
            BinaryKind::Sub => a - b,
            BinaryKind::Mul => a * b,
            BinaryKind::Div => a / b,
        }
    }
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binary {
    /// Which operation.
    pub kind: BinaryKind,
}

impl Describe for Binary {
    const NAME: &'static str = "binary";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [a, b] = arity(inputs)?;
        floats(&[a, b])?;
        let (da, db) = (a.shape.dims4(), b.shape.dims4());
        let mut dims = [1; 4];
        for ((out, x), y) in dims.iter_mut().zip(da).zip(db) {
            ensure(x == y || x == 1 || y == 1, || format!("dimensions {x} and {y} do not broadcast"))?;
            *out = x.max(y);
        }
        let rank = a.shape.rank().max(b.shape.rank());
        Ok(vec![Output::New(shape(&dims[4 - rank..])?, DType::F32)])
    }
}
