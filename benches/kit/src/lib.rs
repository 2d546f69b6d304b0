//! What the benches, examples and tests of several packages share: pictures, medians, and a judge of dashboards.

#[cfg(feature = "dashboard")]
pub mod dashboard;
mod svg;

pub use svg::{Anchor, Color, Picture};

/// The median of at least one value, the upper one of two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
