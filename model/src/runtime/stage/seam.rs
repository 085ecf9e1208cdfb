//! Serialisation of activations between two stages.

use std::fmt;
use std::str::FromStr;

use half::f16;

use super::StageError;

/// Dtype of activations between two stages, little-endian. It affects the results: stages round to it, wherever they
/// run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Seam {
    /// Half precision: the rounding is far below that of quantised weights, and it takes half the bytes.
    #[default]
    F16,
    /// Full precision: the results are those of the model in one piece.
    F32,
}

impl Seam {
    /// All dtypes.
    pub const ALL: [Seam; 2] = [Seam::F16, Seam::F32];

    /// Returns the bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Seam::F16 => 2,
            Seam::F32 => 4,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Seam::F16 => "f16",
            Seam::F32 => "f32",
        }
    }

    /// Serialises numbers.
    ///
    /// *Errors*: numbers that are not finite, or that overflow the dtype.
    pub fn encode(self, values: &[f32]) -> Result<Vec<u8>, StageError> {
        let mut bytes = Vec::with_capacity(values.len() * self.bytes());
        let mut sound = true;
        for value in values {
            match self {
                Seam::F16 => {
                    let half = f16::from_f32(*value);
                    sound &= half.is_finite();
                    bytes.extend(half.to_le_bytes());
                }
                Seam::F32 => {
                    sound &= value.is_finite();
                    bytes.extend(value.to_le_bytes());
                }
            }
        }
        if sound { Ok(bytes) } else { Err(StageError::NotFinite { seam: self }) }
    }

    /// Deserialises numbers; an incomplete last one is ignored.
    ///
    /// *Errors*: numbers that are not finite.
    pub fn decode(self, bytes: &[u8]) -> Result<Vec<f32>, StageError> {
        let values: Vec<f32> = match self {
            Seam::F16 => bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
            Seam::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        };
        let sound = values.iter().all(|value| value.is_finite());
        if sound { Ok(values) } else { Err(StageError::NotFinite { seam: self }) }
    }
}

impl FromStr for Seam {
    type Err = String;

    fn from_str(name: &str) -> Result<Seam, String> {
        let known = || format!("seams of {name:?} are not known; choose f16 or f32");
        Seam::ALL.into_iter().find(|seam| seam.name() == name).ok_or_else(known)
    }
}

impl fmt::Display for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_once() {
        let values = [0.0, -1.5, 1.0 / 3.0, 65504.0, -6e-8];
        for seam in Seam::ALL {
            let bytes = seam.encode(&values).unwrap();
            assert_eq!(bytes.len(), values.len() * seam.bytes());
            let rounded = seam.decode(&bytes).unwrap();
            assert_eq!(seam.encode(&rounded).unwrap(), bytes);
            assert!(values.iter().zip(&rounded).all(|(a, b)| (a - b).abs() <= a.abs() / 2048.0 + 6e-8), "{rounded:?}");
            assert_eq!(seam.to_string().parse(), Ok(seam));
        }
        assert_eq!(Seam::F32.decode(&Seam::F32.encode(&values).unwrap()).unwrap(), values);
        assert!("q8_0".parse::<Seam>().unwrap_err().contains("f16 or f32"));
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        for seam in Seam::ALL {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                assert_eq!(seam.encode(&[1.0, bad]), Err(StageError::NotFinite { seam }));
            }
        }
        // 70,000 overflows half precision.
        assert_eq!(Seam::F16.encode(&[7e4]), Err(StageError::NotFinite { seam: Seam::F16 }));
        assert!(Seam::F32.encode(&[7e4]).is_ok());
        assert!(Seam::F16.decode(&f16::NAN.to_le_bytes()).is_err());
        assert!(Seam::F32.decode(&f32::INFINITY.to_le_bytes()).is_err());
    }
}
