//! Percentiles of a sample.

/// The smallest value that at least the share `quantile` of the sample does not exceed (nearest
/// rank); `None` of an empty sample.
pub fn quantile(sorted: &[i64], quantile: f64) -> Option<i64> {
    debug_assert!(sorted.is_sorted());
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).or(sorted.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ranks() {
        let sorted: Vec<i64> = (1..=1000).collect();
        assert_eq!(quantile(&sorted, 0.5), Some(500));
        assert_eq!(quantile(&sorted, 0.99), Some(990));
        assert_eq!(quantile(&sorted, 0.999), Some(999));
        assert_eq!(quantile(&sorted, 1.0), Some(1000));
        assert_eq!(quantile(&sorted, 0.0), Some(1));
    }

    #[test]
    fn small_samples() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7], 0.01), Some(7));
        assert_eq!(quantile(&[-3, 9], 0.5), Some(-3));
        assert_eq!(quantile(&[-3, 9], 0.51), Some(9));
    }
}
