//! Delays without a pattern, the same in every run and for every rival.

use std::time::Duration;

/// Knuth's multiplicative hash, on 64 bits.
fn scatter(i: u64) -> u64 {
    i.wrapping_mul(2_654_435_761)
}

/// From 1 to 60 s: what servers use.
pub fn usual(i: u64) -> Duration {
    Duration::from_millis(1000 + scatter(i) % 59_000)
}

/// The longest of the usual ones: later than whatever was scheduled before with any of them.
pub const PUSHED_BACK: Duration = Duration::from_secs(60);

/// From 5 to 500 ms.
pub fn short(i: u64) -> Duration {
    Duration::from_micros(5_000 + scatter(i) % 495_000)
}

/// The `i`th of `count` that fall evenly between one and two hours from now.
pub fn far(i: u64, count: u64) -> Duration {
    Duration::from_secs(3600) + Duration::from_secs(3600).mul_f64(i as f64 / count as f64)
}

/// Anywhere among those of [`far`].
pub fn among_far(i: u64) -> Duration {
    Duration::from_millis(3_600_000 + scatter(i) % 3_600_000)
}

/// The `i`th of `count` that fall evenly into one second, in an order without a pattern.
pub fn within_second(i: u64, count: u64) -> Duration {
    // A prime that divides no power of ten makes this a permutation.
    Duration::from_nanos(i * 2_654_435_761 % count * (1_000_000_000 / count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_usual_ones_are_as_agreed_with_the_java_driver() {
        assert_eq!(usual(0).as_millis(), 1000);
        assert_eq!(usual(1).as_millis(), 1000 + 2_654_435_761 % 59_000);
        let wrapped = (u128::from(u64::MAX) * 2_654_435_761 % (1 << 64)) as u64;
        assert_eq!(usual(u64::MAX).as_millis(), u128::from(1000 + wrapped % 59_000));
    }

    #[test]
    fn ranges() {
        for i in 0..10_000 {
            assert!((1_000..60_000).contains(&(usual(i).as_millis() as u64)));
            assert!((5_000..500_000).contains(&(short(i).as_micros() as u64)));
            assert!((3600..7200).contains(&far(i, 10_000).as_secs()));
            assert!((3600..7200).contains(&among_far(i).as_secs()));
        }
    }

    #[test]
    fn one_second_is_filled_evenly() {
        let all: HashSet<_> = (0..10_000).map(|i| within_second(i, 10_000)).collect();
        assert_eq!(all.len(), 10_000);
        assert!(all.iter().all(|delay| delay.as_micros() % 100 == 0 && delay.as_secs() == 0));
    }
}
