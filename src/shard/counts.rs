//! A shard's part of the metrics, kept under its lock.

/// The number of timeouts of a shard that met each event. `scheduled + rearmed` is always
/// `expired + cancelled + returned + live`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) scheduled: u64,
    pub(crate) rearmed: u64,
    pub(crate) rescheduled: u64,
    pub(crate) expired: u64,
    pub(crate) cancelled: u64,
    pub(crate) returned: u64,
    pub(crate) abandoned: u64,
    pub(crate) rejected: u64,
}
