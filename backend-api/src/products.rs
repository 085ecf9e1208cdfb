//! Matmul precision, where a user prefers speed to exactness.

use std::fmt;
use std::str::FromStr;

/// Precision of matmuls of several rows with quantised weights. A single row, as in decoding, and dense weights are
/// always multiplied in 32-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Products {
    /// 32-bit floats: exact but for rounding.
    #[default]
    F32,
    /// The weights' own integers, and activations in 255 steps of the largest of 16.
    Int8,
}

impl Products {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Products); 2] = [("f32", Products::F32), ("int8", Products::Int8)];

    /// The NMSE against exact products that a correct kernel may have.
    ///
    /// *Source*: of bytes what llama.cpp's backend tests allow.
    pub fn tolerance(self) -> f64 {
        match self {
            Products::F32 => 0.0,
            Products::Int8 => 5e-4,
        }
    }
}

impl fmt::Display for Products {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Products::ALL.iter().find(|(_, p)| p == self).map_or("", |(name, _)| *name))
    }
}

impl FromStr for Products {
    type Err = String;

    fn from_str(name: &str) -> Result<Products, String> {
        let found = Products::ALL.iter().find(|(known, _)| *known == name).map(|(_, products)| *products);
        found.ok_or_else(|| format!("products in {name:?} are not known; choose f32 or int8"))
    }
}
