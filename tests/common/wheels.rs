//! A file of its own, because the fuzz target uses nothing else of `common`.

use wheelwork::HashedWheelTimer;
use wheelwork::timer::{Builder, WheelKind};

pub const WHEELS: [WheelKind; 3] =
    [WheelKind::Hashed, WheelKind::Hierarchical, WheelKind::LinuxClassic];

/// A builder for this wheel, with `buckets` buckets if its sizes are not fixed. Levels have two at least.
pub fn sized(wheel: WheelKind, buckets: usize) -> Builder {
    let builder = HashedWheelTimer::builder().wheel(wheel);
    match wheel {
        WheelKind::LinuxClassic => builder,
        WheelKind::Hierarchical => builder.ticks_per_wheel(buckets.max(2)),
        _ => builder.ticks_per_wheel(buckets),
    }
}
