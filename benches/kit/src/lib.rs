//! What the benches and examples of several packages share: pictures, and medians.

mod svg;

pub use svg::{Anchor, Color, Picture};

/// The median of at least one value, the upper one of two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
