//! `Signal`: brings the report of a silence to the tasks that wait for a stream.
//!
//! The poll of a stream that is not ready calls [`Listener::wait`]. The manager's callback calls
//! [`Signal::report`], on another thread. Rules:
//!
//! 1. **Register, then look.** Under one hold of the lock, `wait` finds its waker registered and reads the
//!    silences. Under one hold of the lock, `report` stores the silence and takes the wakers. So if `wait`
//!    comes first, `report` takes its waker; otherwise `wait` reads the silence.
//! 2. **The latest waker wins.** There is one place for the reader's waker and one for the writer's. After
//!    a split, two tasks poll a stream.
//! 3. **No waker is cloned, woken or dropped under the lock.**
//! 4. **The last activity decides.** A stored silence has a start. If the stream was active after it, the
//!    silence is over, and a poll ignores it. So a touch need not clear anything.
//! 5. **The end of a pause wakes, if the age was reported.** A poll reads the pauses under no lock, after rule 1. The
//!    end of a pause takes its pause back, and then takes the wakers under the lock. So if `wait` comes first, its
//!    waker is woken; otherwise its poll sees that the pause has ended.
//! 6. **Most polls take no lock.** Until the first report, a registered waker stays in its place. So a poll
//!    with this waker changes nothing. If the poll misses a report that is under way, the report wakes this
//!    waker. A task that was woken sees the report, because the wake-up comes after it.

use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::{Arc, AtomicBool, Mutex, MutexGuard, Ordering};
use crate::base::waker::Identity;
use crate::idle::kind::IdleKind;
use std::task::Waker;
use std::time::Duration;

/// The half of a stream that a task polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Reader,
    Writer,
}

/// A silence that was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    /// The last activity before the report, in nanoseconds since the timer's origin.
    pub(super) since: u64,
    pub(super) silent_for: Duration,
    /// Whether it is the first report of this silence.
    pub(super) first: bool,
}

/// The latest reported silence of each kind.
pub(super) type Silences = [Option<Silence>; IdleKind::LIMITED.len()];

pub(super) struct Signal {
    /// Whether a silence was ever reported. Relaxed: rule 6.
    has_reported: AtomicBool,
    board: Mutex<Board>,
}

/// What a task and a report tell each other.
struct Board {
    /// The wakers of the reader and of the writer.
    wakers: [Option<Waker>; 2],
    /// `None` until the first report. Most streams have none.
    silences: Option<Box<Silences>>,
}

impl Board {
    fn silences(&self) -> Silences {
        self.silences.as_deref().copied().unwrap_or_default()
    }
}

impl Signal {
    pub(super) fn new() -> Self {
        let board = Board { wakers: [None, None], silences: None };
        Self { has_reported: AtomicBool::new(false), board: Mutex::new(board) }
    }

    /// Registers the waker of a half, and returns the silences that were reported before.
    fn wait(&self, half: Half, waker: &Waker) -> Silences {
        let board = self.board.lock();
        if board.wakers[half as usize].as_ref().is_some_and(|previous| previous.will_wake(waker)) {
            return board.silences();
        }
        drop(board);
        let waker = waker.clone();
        let mut board = self.board.lock();
        let previous = board.wakers[half as usize].replace(waker);
        let silences = board.silences();
        drop(board);
        dismiss([previous, None]);
        silences
    }

    /// Stores a silence, of a kind that has a duration, and wakes both halves. Returns the number of wakers that panicked.
    pub(super) fn report(&self, kind: IdleKind, silence: Silence) -> u64 {
        let mut board = self.board.lock();
        self.has_reported.store(true, Ordering::Relaxed);
        board.silences.get_or_insert_default()[kind as usize] = Some(silence);
        Self::wake(board)
    }

    /// Wakes both halves at the end of a pause, if the age was reported: the pause may have kept it from ending the
    /// stream, and with no grace, no other report follows.
    pub(super) fn wake_if_old(&self) {
        let board = self.board.lock();
        if board.silences()[IdleKind::Age as usize].is_some() {
            let _panics = Self::wake(board);
        }
    }

    /// Takes the wakers, and wakes them without the lock. Returns the number of those that panicked.
    fn wake(mut board: MutexGuard<'_, Board>) -> u64 {
        let wakers = std::mem::take(&mut board.wakers);
        drop(board);
        let wake = |waker: Waker| u64::from(catch_panic::panics(|| waker.wake()));
        wakers.into_iter().flatten().map(wake).sum()
    }

    /// Drops the wakers, because the stream is gone.
    fn close(&self) {
        let wakers = std::mem::take(&mut self.board.lock().wakers);
        dismiss(wakers);
    }
}

/// The stream's side of a signal. Its drop drops the wakers immediately.
pub(super) struct Listener {
    signal: Arc<Signal>,
    /// The wakers that were registered last.
    registered: [Option<Identity>; 2],
}

impl Listener {
    pub(super) fn new(signal: Arc<Signal>) -> Self {
        Self { signal, registered: [None, None] }
    }

    /// Registers the waker of a half. Returns the silences that were reported before, and `None` if
    /// there were none yet.
    #[inline]
    pub(super) fn wait(&mut self, half: Half, waker: &Waker) -> Option<Silences> {
        let registered = &self.registered[half as usize];
        let is_registered = registered.as_ref().is_some_and(|identity| identity.is(waker));
        if is_registered && !self.signal.has_reported.load(Ordering::Relaxed) {
            return None;
        }
        let silences = self.signal.wait(half, waker);
        self.registered[half as usize] = Some(Identity::of(waker));
        Some(silences)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.signal.close();
    }
}

/// Drops wakers, whose drop may panic.
fn dismiss(wakers: [Option<Waker>; 2]) {
    for waker in wakers.into_iter().flatten() {
        if catch_panic::panics(|| drop(waker)) {
            warning!("the drop of a waker panicked");
        }
    }
}
