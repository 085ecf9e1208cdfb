//! How results are compared with those of the reference.

use crate::tensor::DType;

/// The values of a tensor as they were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// The element type.
    pub dtype: DType,
    /// Its little-endian values.
    pub bytes: Vec<u8>,
}

impl From<&[f32]> for Values {
    fn from(values: &[f32]) -> Values {
        Values { dtype: DType::F32, bytes: bytemuck::cast_slice(values).to_vec() }
    }
}

/// The error of a result: squared differences over squared reference values (NMSE).
///
/// Elements that are NaN or infinite must be so on both sides, with the same sign; they are left out of the sums. If
/// all reference values are zero, the squared differences stand alone.
///
/// *Errors*: what cannot be measured: lengths that differ, NaN or infinity on one side only.
pub fn nmse(found: &Values, expected: &Values) -> Result<f64, String> {
    if found.bytes.len() != expected.bytes.len() || found.dtype != expected.dtype {
        return Err("results have different sizes or dtypes".into());
    }
    let (mut difference, mut energy) = (0.0, 0.0);
    let pairs = found.dtype.numbers(&found.bytes).zip(expected.dtype.numbers(&expected.bytes));
    for (at, (a, b)) in pairs.enumerate() {
        if a.is_finite() && b.is_finite() {
            difference += (a - b) * (a - b);
            energy += b * b;
        } else if !(a == b || (a.is_nan() && b.is_nan())) {
            return Err(format!("element {at} is {a}, not {b}"));
        }
    }
    Ok(if energy > 0.0 { difference / energy } else { difference })
}

/// The largest NMSE of several results, if none is beyond the tolerance. Integers must be equal.
///
/// *Errors*: the first result that is wrong, and how.
pub fn worst(found: &[Values], expected: &[Values], tolerance: f64) -> Result<f64, String> {
    if found.len() != expected.len() {
        return Err(format!("{} results instead of {}", found.len(), expected.len()));
    }
    let mut worst = 0f64;
    for (found, expected) in found.iter().zip(expected) {
        let tolerance = if found.dtype == DType::I32 { 0.0 } else { tolerance };
        let error = nmse(found, expected)?;
        if error > tolerance {
            return Err(format!("NMSE {error:.2e} instead of at most {tolerance:.0e}"));
        }
        worst = worst.max(error);
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(found: &[f32], expected: &[f32]) -> Result<f64, String> {
        nmse(&found.into(), &expected.into())
    }

    #[test]
    fn nmse_measures_and_does_not_divide_by_zero() {
        assert_eq!(error(&[1.0, 2.0], &[1.0, 2.0]), Ok(0.0));
        assert_eq!(error(&[1.0, 1.0], &[1.0, 2.0]), Ok(0.2));
        assert_eq!(error(&[0.0], &[0.0]), Ok(0.0));
        assert_eq!(error(&[0.5], &[0.0]), Ok(0.25));
    }

    #[test]
    fn nan_and_infinity_must_agree() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(error(&[nan, inf, 1.0], &[nan, inf, 1.0]), Ok(0.0));
        assert!(error(&[1.0], &[nan]).is_err());
        assert!(error(&[nan], &[1.0]).is_err());
        assert!(error(&[inf], &[-inf]).is_err());
        assert!(error(&[inf, 2.0], &[inf, 1.0]).is_ok_and(|e| e == 1.0));
        assert!(error(&[1.0], &[1.0, 1.0]).is_err());
    }

    #[test]
    fn results_are_held_to_the_tolerance_and_integers_to_equality() {
        let floats: Values = [1.0, 1.0].as_slice().into();
        let near: Values = [1.0, 1.001].as_slice().into();
        let ids = |id: i32| Values { dtype: DType::I32, bytes: id.to_le_bytes().to_vec() };
        let worst = |found: &Values, expected: &Values| {
            worst(&[floats.clone(), found.clone()], &[floats.clone(), expected.clone()], 1e-6)
        };
        assert!(worst(&near, &floats).is_ok_and(|e| e > 0.0));
        assert!(worst(&[1.0, 1.1].as_slice().into(), &floats).is_err());
        assert_eq!(worst(&ids(7000), &ids(7000)), Ok(0.0));
        assert!(worst(&ids(7000), &ids(7001)).is_err(), "an id that is near is another id");
        assert!(super::worst(&[], &[floats], 1.0).is_err());
    }
}
