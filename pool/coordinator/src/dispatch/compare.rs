//! Comparison of the outputs of workers for the same inputs.

use anygpu_pool_proto::Seam;
use half::f16;

/// Normalised mean squared error of a row up to which two workers have computed the same. See
/// docs/decisions/0071-checks-are-copies-of-texts.md.
const NMSE: f64 = 1e-6;
/// Tokens of a text that may be others, since a chance may fall between two on one machine as on the other: so many, and
/// then one of so many.
const OTHERS: (usize, usize) = (3, 64);

/// Output of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Output {
    /// Activations: a number of rows, in the seam's bytes.
    Rows(u32, Vec<u8>),
    /// A token.
    Token(u32),
}

/// Whether what two gave in the same steps is the same, but for rounding.
pub(super) fn agree<'a>(pairs: impl Iterator<Item = (&'a Output, &'a Output)>, seam: Seam) -> bool {
    let (mut tokens, mut others) = (0, 0);
    for pair in pairs {
        match pair {
            (Output::Rows(rows, a), Output::Rows(of, b)) => {
                // What is no number is never the same.
                let same = rows == of && a.len() == b.len() && worst(a, b, *rows, seam) <= NMSE;
                if !same {
                    return false;
                }
            }
            (Output::Token(a), Output::Token(b)) => {
                tokens += 1;
                others += usize::from(a != b);
            }
            _ => return false,
        }
    }
    others <= OTHERS.0.max(tokens / OTHERS.1)
}

/// The largest normalised mean squared error of a row, infinite where one has numbers that are none.
fn worst(a: &[u8], b: &[u8], rows: u32, seam: Seam) -> f64 {
    let row = (a.len() / rows.max(1) as usize).max(1);
    let error = |(a, b): (&[u8], &[u8])| {
        let (mut apart, mut all) = (0.0, 0.0);
        for (a, b) in numbers(a, seam).zip(numbers(b, seam)) {
            apart += (a - b) * (a - b);
            all += b * b;
        }
        let error = if apart == 0.0 { 0.0 } else { apart / all };
        if error.is_nan() { f64::INFINITY } else { error }
    };
    a.chunks(row).zip(b.chunks(row)).map(error).fold(0.0, f64::max)
}

fn numbers(bytes: &[u8], seam: Seam) -> impl Iterator<Item = f64> {
    let size = seam.bytes().max(1) as usize;
    bytes.chunks_exact(size).map(|it| match *it {
        [a, b] => f16::from_le_bytes([a, b]).to_f64(),
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
        _ => f64::NAN,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: u32, numbers: &[f32]) -> Output {
        Output::Rows(rows, numbers.iter().flat_map(|it| it.to_le_bytes()).collect())
    }

    fn same(a: &Output, b: &Output) -> bool {
        agree([(a, b)].into_iter(), Seam::F32)
    }

    #[test]
    fn rounding_is_the_same_and_noise_is_not() {
        let honest = rows(2, &[100.0, 1.0, 0.0, 2.0]);
        assert!(same(&honest, &honest) && same(&rows(2, &[100.01, 1.0, 0.0, 2.001]), &honest));
        // A row is not hidden by a larger one.
        assert!(!same(&rows(2, &[100.0, 1.0, 0.0, 2.01]), &honest));
        assert!(!same(&rows(2, &[100.0, 1.0, f32::NAN, 2.0]), &honest));
        assert!(!same(&rows(2, &[f32::INFINITY; 4]), &rows(2, &[f32::INFINITY; 4])));
        assert!(!same(&rows(1, &[100.0, 1.0, 0.0, 2.0]), &honest) && !same(&rows(2, &[100.0, 1.0]), &honest));
        assert!(!same(&Output::Token(1), &honest));
        assert!(same(&rows(1, &[0.0, 0.0]), &rows(1, &[0.0, 0.0])) && !same(&rows(1, &[0.1]), &rows(1, &[0.0])));
        let half =
            |it: f32| Output::Rows(1, [f16::from_f32(it), f16::ONE].iter().flat_map(|it| it.to_le_bytes()).collect());
        assert!(agree([(&half(3.0), &half(3.001))].into_iter(), Seam::F16));
        assert!(!agree([(&half(3.0), &half(3.01))].into_iter(), Seam::F16));
    }

    #[test]
    fn few_tokens_may_be_others() {
        let differ = |others: usize, tokens: usize| {
            let pairs: Vec<_> =
                (0..tokens).map(|at| (Output::Token(u32::from(at < others)), Output::Token(0))).collect();
            !agree(pairs.iter().map(|(a, b)| (a, b)), Seam::F16)
        };
        assert!(!differ(3, 3) && differ(4, 4) && differ(4, 255) && !differ(4, 256) && differ(5, 256));
    }
}
