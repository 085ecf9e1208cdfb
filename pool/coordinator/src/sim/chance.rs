//! Random times.

use rand::{RngExt, rngs::StdRng};

/// A Weibull-distributed time. Below a shape of 1 who has stayed long stays longer, as visitors of pages do.
pub fn weibull(chance: &mut StdRng, scale: f64, shape: f64) -> f64 {
    let u: f64 = chance.random_range(f64::MIN_POSITIVE..1.0);
    scale * (-u.ln()).powf(1.0 / shape)
}

/// A time between two events that come at a rate.
pub fn exponential(chance: &mut StdRng, rate: f64) -> f64 {
    weibull(chance, 1.0 / rate, 1.0)
}
