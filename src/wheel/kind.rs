//! The wheel that a timer runs on.

/// The structure under a [`HashedWheelTimer`](crate::HashedWheelTimer); see
/// [`Builder::wheel`](crate::Builder::wheel).
///
/// All guarantees of the timer hold with each, but for the precision of [`Linux`](Self::Linux).
/// docs/wheels.md compares them by measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WheelKind {
    /// One ring of `ticks_per_wheel` buckets, with rounds: [`HashedWheel`](super::HashedWheel).
    /// The least memory, and the fastest while delays are not many turns long.
    #[default]
    Hashed,
    /// Levels of `ticks_per_wheel` buckets each, made on demand:
    /// [`HierarchicalWheel`](super::HierarchicalWheel).
    Hierarchical,
    /// One level of 256 buckets and four of 64: [`LinuxClassicWheel`](super::LinuxClassicWheel).
    LinuxClassic,
    /// Nine levels of 64 buckets, and nothing is ever moved: [`LinuxWheel`](super::LinuxWheel).
    /// A timeout of up to 63 ticks is exact, a longer one late by up to 8/63 (12.7 %) of its delay,
    /// besides the tick; never early. One that was rescheduled to later waits out its former delay
    /// first, with the lateness of that. What is due runs in the order of the ticks in which it
    /// expires.
    Linux,
}
