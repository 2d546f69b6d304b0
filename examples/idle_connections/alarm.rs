//! How the clients' event loop knows when it is time for the next word: each timeout sends a
//! message, and the loop then decides by what it knows itself.

use crate::slots::Key;
use mio::{Registry, Token, Waker};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};
use wheelwork::{CancelOnDrop, HashedWheelTimer, Next, RescheduleError, Run, TimerTask};

/// A wheel of more buckets gains nothing: the rest of a longer delay is counted in rounds.
const MOST_TICKS: u128 = 1 << 14;

/// The task of a timeout.
struct Look {
    key: Key,
    mailbox: Arc<Mailbox>,
}

struct Mailbox {
    sender: Sender<Key>,
    waker: Arc<Waker>,
}

impl TimerTask for Look {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        // Both fail only when the loop has ended, and then there is nobody to tell.
        let _ = self.mailbox.sender.send(self.key);
        let _ = self.mailbox.waker.wake();
        Next::done()
    }
}

/// The one timeout of a connection; gone with it.
#[derive(Default)]
pub(crate) struct Alarm(Option<CancelOnDrop>);

/// A timer whose timeouts end up in one event loop.
pub(crate) struct Alarms {
    timer: HashedWheelTimer,
    mailbox: Arc<Mailbox>,
    due: Receiver<Key>,
}

impl Alarms {
    /// `usual` is the delay that most timeouts have: the wheel is made so large that it fits into
    /// one turn. Each message also wakes the poll of `registry`, with an event for `token`.
    pub(crate) fn new(
        registry: &Registry,
        token: Token,
        tick: Duration,
        usual: Duration,
    ) -> io::Result<Self> {
        let ticks = usual.as_nanos() / tick.as_nanos().max(1) + 1;
        let timer = HashedWheelTimer::builder()
            .tick_duration(tick)
            .ticks_per_wheel(ticks.min(MOST_TICKS) as usize)
            .thread_name("idle-timer")
            .build()
            .map_err(io::Error::other)?;
        let (sender, due) = mpsc::channel();
        let waker = Arc::new(Waker::new(registry, token)?);
        Ok(Self { timer, mailbox: Arc::new(Mailbox { sender, waker }), due })
    }

    /// Moves the alarm of the connection `key` to the instant `at`.
    ///
    /// The usual case moves the pending timeout, which costs about as much as reading the clock.
    /// If that timeout has expired, its message is on the way and a second timeout takes its place.
    pub(crate) fn set(&self, alarm: &mut Alarm, key: Key, at: Instant) -> io::Result<()> {
        let pending = alarm.0.as_ref().and_then(CancelOnDrop::timeout);
        let moved = pending.map(|timeout| timeout.reschedule_at(at));
        match moved {
            Some(Ok(())) => return Ok(()),
            None | Some(Err(RescheduleError::Expired)) => {}
            Some(Err(error)) => return Err(io::Error::other(error)),
        }
        let look = Look { key, mailbox: self.mailbox.clone() };
        let timeout = self.timer.new_timeout_at(look, at).map_err(io::Error::other)?;
        alarm.0 = Some(timeout.cancel_on_drop());
        Ok(())
    }

    /// The next connection to look at.
    pub(crate) fn next_due(&self) -> Option<Key> {
        self.due.try_recv().ok()
    }
}
