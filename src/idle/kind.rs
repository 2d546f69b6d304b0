//! The kinds of silence.

/// What a connection has lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdleKind {
    /// Nothing was read.
    Reader,
    /// Nothing was written.
    Writer,
    /// Nothing was read or written.
    All,
    /// Its timer: that has been stopped, and the connection is no longer watched. Each connection
    /// that was watched then is reported once, and the answer does not matter. A limit of pending
    /// timeouts is no cause. One thread's 2^28 are, if the manager's own timeout has to be replaced
    /// there because an executor has dropped its job.
    TimerStopped,
}

impl IdleKind {
    /// The kinds that have a duration; as numbers, they are 0, 1 and 2.
    pub(super) const SILENCES: [Self; 3] = [Self::Reader, Self::Writer, Self::All];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
            Self::All => "all",
            Self::TimerStopped => "timer_stopped",
        }
    }
}
