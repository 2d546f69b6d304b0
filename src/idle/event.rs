//! A report of an idle connection, and the callback's answer.

use super::activity::ActivityBlock;
use super::kind::IdleKind;
use crate::base::sync::Arc;
use std::fmt;
use std::time::Duration;

/// A connection has been silent for its duration.
///
/// # Examples
///
/// Warns at the first report, and closes at the second:
///
/// ```
/// # use wheelwork::idle::{Answer, IdleEvent, IdleKind};
/// fn on_idle(connection: &mut u64, event: IdleEvent) -> Answer {
///     match event.kind {
///         IdleKind::TimerStopped => Answer::StopWatching, // the program ends
///         _ if event.first => {
///             println!("ping {connection}, silent for {:?}", event.silent_for);
///             Answer::KeepWatching
///         }
///         _ => {
///             println!("close {connection}");
///             Answer::StopWatching
///         }
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct IdleEvent {
    /// The kind of silence.
    pub kind: IdleKind,
    /// Whether this is the first report of this kind since the last activity of this kind that was recorded. False
    /// after an [`Answer::Progressed`] that ended this silence, even if that answered a report of another kind.
    pub first: bool,
    /// How long this silence has lasted. For [`IdleKind::Age`], how old the connection is.
    pub silent_for: Duration,
}

/// The callback's answer to a report: whether to keep watching the connection.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
///
/// # let clock = ManualClock::new();
/// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let idle = IdleTimeouts::new(&timer, |pings: &mut u32, _| {
///     if *pings == 2 {
///         return Answer::StopWatching; // no reply to two pings: close the connection
///     }
///     *pings += 1; // have the connection's task send a ping
///     Answer::KeepWatching
/// });
/// let minute = Duration::from_secs(60);
/// let watch = idle.watch(0, &IdlePolicy::new().reader(minute))?;
/// clock.advance(minute);
/// clock.advance(minute);
/// assert_eq!(idle.watched(), 1);
/// clock.advance(minute);
/// assert_eq!(idle.watched(), 0);
/// # drop(watch);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// Report the connection again when it has been silent for its duration once more.
    KeepWatching,
    /// The connection is not idle: it has made progress that nobody has recorded. Its time runs anew, and the report is
    /// not [counted](super::IdleTimeouts::reported). Age knows no progress: the connection then only stays watched.
    /// At the end of the timer, no answer has an effect.
    ///
    /// # Examples
    ///
    /// The peer takes bytes that lie in the socket's buffer, while the write waits. See [`Outgoing`](super::Outgoing).
    ///
    /// ```
    /// use std::net::{Shutdown, TcpStream};
    /// use std::sync::Arc;
    /// use wheelwork::idle::{Answer, IdleEvent, Outgoing};
    ///
    /// struct Connection {
    ///     stream: Arc<TcpStream>,
    ///     /// What the peer had not taken at the last look.
    ///     untaken: u64,
    /// }
    ///
    /// fn on_idle(connection: &mut Connection, event: IdleEvent) -> Answer {
    ///     if event.first {
    ///         connection.untaken = 0; // the thread has written since the last look
    ///     }
    ///     let untaken = connection.stream.untaken().unwrap_or(0);
    ///     if std::mem::replace(&mut connection.untaken, untaken) != untaken {
    ///         return Answer::Progressed;
    ///     }
    ///     let _ = connection.stream.shutdown(Shutdown::Both); // fails only if the peer has gone
    ///     Answer::StopWatching
    /// }
    /// ```
    Progressed,
    /// Stop watching, and drop the value that was given to `watch`. The [`Watch`](super::Watch) handle
    /// stays valid but has no further effect.
    StopWatching,
}

/// One reported connection of a batch. See [`IdleTimeouts::batched`](super::IdleTimeouts::batched).
///
/// # Examples
///
/// Pings the connections that became idle now, and closes the others:
///
/// ```
/// # use wheelwork::idle::{Answer, Idle, IdleKind};
/// fn on_idle(batch: &mut [Idle<u64>]) {
///     let mut to_close = Vec::new();
///     for idle in batch.iter_mut().filter(|idle| idle.is_still_silent()) {
///         if idle.event().first && idle.event().kind != IdleKind::TimerStopped {
///             println!("ping {}", idle.connection);
///             continue; // it stays watched
///         }
///         to_close.push(idle.connection);
///         idle.answer(Answer::StopWatching);
///     }
///     println!("close {to_close:?}");
/// }
/// ```
pub struct Idle<T> {
    /// The value that was given to `watch`.
    pub connection: T,
    event: IdleEvent,
    /// The answer of the callback; `None` if it was not called, because the connection was active before.
    pub(super) answer: Option<Answer>,
    pub(super) seat: Seat,
    /// The last activity before the report.
    pub(crate) since: u64,
    /// The next report is due one duration after this. It is the time of this report, unless the callback changes it.
    pub(crate) next_from: u64,
}

/// A connection's place in a shard.
pub(super) struct Seat {
    pub(super) block: Arc<ActivityBlock>,
    pub(super) number: u32,
}

impl<T> Idle<T> {
    pub(super) fn new(connection: T, event: IdleEvent, seat: Seat, since: u64, now: u64) -> Self {
        // Until the callback answers. It may panic, or not answer.
        let answer = Some(Answer::KeepWatching);
        Self { connection, event, answer, seat, since, next_from: now }
    }

    /// The kind of silence, and its length.
    pub fn event(&self) -> IdleEvent {
        self.event
    }

    /// Whether the connection is still silent and its handle still exists. In a long batch this may
    /// have changed since the batch was put together.
    pub fn is_still_silent(&self) -> bool {
        let Seat { block, number } = &self.seat;
        match self.event.kind {
            // These are reported for active and paused connections too.
            IdleKind::Age | IdleKind::TimerStopped => !block.activity(*number).is_abandoned(),
            kind => block.reading(*number).is_silent_since(kind, self.since),
        }
    }

    /// The last activity, which may have come after the report began.
    pub(crate) fn last_activity(&self) -> u64 {
        self.seat.block.reading(self.seat.number).last()
    }

    /// Sets the answer. Without one, the connection stays watched.
    pub fn answer(&mut self, answer: Answer) {
        self.answer = Some(match (answer, self.event.kind) {
            (Answer::Progressed, IdleKind::Age | IdleKind::TimerStopped) => Answer::KeepWatching,
            (Answer::Progressed, kind) => self.progress(kind),
            (answer, _) => answer,
        });
    }

    /// The activity stands just before the time from which the next report counts, so that one is not the first.
    fn progress(&mut self, kind: IdleKind) -> Answer {
        let Seat { block, number } = &self.seat;
        let now = block.now();
        block.activity(*number).progress(kind, now.saturating_sub(1));
        self.next_from = now;
        Answer::Progressed
    }
}

impl<T: fmt::Debug> fmt::Debug for Idle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("connection", &self.connection)
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}
