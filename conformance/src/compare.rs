//! How results are compared with the reference's.

use backend_api::DType;

/// The values of a tensor as they were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// The element type.
    pub dtype: DType,
    /// Its little-endian values.
    pub bytes: Vec<u8>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn values(list: &[f32]) -> Values {
        Values { dtype: DType::F32, bytes: list.iter().flat_map(|v| v.to_le_bytes()).collect() }
    }

    #[test]
    fn nmse_measures_and_does_not_divide_by_zero() {
        assert_eq!(nmse(&values(&[1.0, 2.0]), &values(&[1.0, 2.0])), Ok(0.0));
        assert_eq!(nmse(&values(&[1.0, 1.0]), &values(&[1.0, 2.0])), Ok(0.2));
        assert_eq!(nmse(&values(&[0.0]), &values(&[0.0])), Ok(0.0));
        assert_eq!(nmse(&values(&[0.5]), &values(&[0.0])), Ok(0.25));
    }

    #[test]
    fn nan_and_infinity_must_agree() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(nmse(&values(&[nan, inf, 1.0]), &values(&[nan, inf, 1.0])), Ok(0.0));
        assert!(nmse(&values(&[1.0]), &values(&[nan])).is_err());
        assert!(nmse(&values(&[nan]), &values(&[1.0])).is_err());
        assert!(nmse(&values(&[inf]), &values(&[-inf])).is_err());
        assert!(nmse(&values(&[inf, 2.0]), &values(&[inf, 1.0])).is_ok_and(|e| e == 1.0));
        assert!(nmse(&values(&[1.0]), &values(&[1.0, 1.0])).is_err());
    }
}
