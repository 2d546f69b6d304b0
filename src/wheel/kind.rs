//! The wheel that a timer runs on.

/// The structure under a [`HashedWheelTimer`](crate::HashedWheelTimer); see
/// [`Builder::wheel`](crate::Builder::wheel).
///
/// All guarantees of the timer hold with each; docs/wheels.md compares them by measurement. The
/// non-cascading wheel of Linux is not offered, because it is not exact: see
/// [`LinuxWheel`](super::LinuxWheel).
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
}
