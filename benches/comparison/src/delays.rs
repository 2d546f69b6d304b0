//! Delays without a pattern, the same in every run and for every rival (also in `netty/Driver.java`).

use std::time::Duration;

/// Later than anything that is due while it is measured.
pub const HOUR: Duration = Duration::from_secs(3600);
/// The longest of the usual ones: later than whatever was scheduled before with any of them.
pub const PUSHED_BACK: Duration = Duration::from_secs(60);

/// Knuth's multiplicative hash, on 64 bits.
pub fn scatter(i: u64, range: u64) -> u64 {
    i.wrapping_mul(2_654_435_761) % range
}

/// From 1 to 60 s: what servers use.
pub fn usual(i: u64) -> Duration {
    Duration::from_millis(1000 + scatter(i, 59_000))
}

/// From 5 to 500 ms.
pub fn short(i: u64) -> Duration {
    Duration::from_micros(5_000 + scatter(i, 495_000))
}

/// From ten minutes to one hour.
pub fn remote(i: u64) -> Duration {
    HOUR / 6 + Duration::from_millis(scatter(i, 3_000_000))
}

/// The `i`th of `count` that fall evenly between one and two hours from now.
pub fn far(i: u64, count: u64) -> Duration {
    HOUR + HOUR.mul_f64(i as f64 / count as f64)
}

/// Anywhere among those of [`far`].
pub fn among_far(i: u64) -> Duration {
    HOUR + Duration::from_millis(scatter(i, 3_600_000))
}

/// The `i`th of `count` that fall evenly into a span. The factor of [`scatter`] is a prime that divides
/// no power of ten, so no two of a round count coincide.
pub fn within(span: Duration, i: u64, count: u64) -> Duration {
    span / count as u32 * scatter(i, count) as u32
}
