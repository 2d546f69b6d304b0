//! The kinds of reports: silences, the age, and the end of the timer.

/// The reason for a report.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// use wheelwork::idle::{Answer, IdleKind, IdlePolicy, IdleTimeouts};
///
/// # let clock = ManualClock::new();
/// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let idle = IdleTimeouts::new(&timer, |_: &mut u64, event| match event.kind {
///     IdleKind::Writer => Answer::KeepWatching, // have the connection's task send a keep-alive
///     _ => Answer::StopWatching,
/// });
/// let second = Duration::from_secs(1);
/// let watch = idle.watch(7, &IdlePolicy::new().writer(5 * second).reader(60 * second))?;
/// clock.advance(5 * second);
/// assert_eq!((idle.reported(IdleKind::Writer), idle.watched()), (1, 1));
/// clock.advance(55 * second);
/// assert_eq!((idle.reported(IdleKind::Reader), idle.watched()), (1, 0));
/// # drop(watch);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdleKind {
    /// Nothing was read.
    Reader,
    /// Nothing was written.
    Writer,
    /// Nothing was read or written.
    Both,
    /// A write waits, and has made no progress. Unlike [`Writer`](Self::Writer), this is never reported while there is
    /// nothing to write.
    WaitingWrite,
    /// The connection has reached its maximum age. This is no silence: traffic and pauses do not matter.
    Age,
    /// The timer was stopped; this is the last report. Each connection that was watched then is
    /// reported once, and the answer has no effect.
    ///
    /// There is one other cause: the timer has run out of slots when the manager needs one (see the
    /// limits on the [crate's page](crate)). The timer's limit of pending timeouts never causes it.
    TimerStopped,
}

impl IdleKind {
    /// The kinds that have a duration. They are the first numbers.
    pub(super) const LIMITED: [Self; 5] =
        [Self::Reader, Self::Writer, Self::Both, Self::WaitingWrite, Self::Age];

    /// Every kind, in the order of its number.
    pub(super) const EVERY: [Self; 6] =
        [Self::Reader, Self::Writer, Self::Both, Self::WaitingWrite, Self::Age, Self::TimerStopped];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
            Self::Both => "both",
            Self::WaitingWrite => "waiting_write",
            Self::Age => "age",
            Self::TimerStopped => "timer_stopped",
        }
    }
}
