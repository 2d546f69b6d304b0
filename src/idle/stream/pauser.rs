//! `Pauser`: pauses a stream's watch from anywhere, for as long as a guard lives.

use super::signal::Signal;
use crate::base::catch_panic;
use crate::base::sync::Arc;
use crate::idle::policy::IdlePolicy;
use crate::idle::watch::Watch;
use std::fmt;
use std::ops::Deref;

/// Pauses the watch of an [`IdleStream`](super::IdleStream), from
/// [`IdleStreams::wrap_with_pauser`](super::IdleStreams::wrap_with_pauser).
///
/// A server gives the stream to a library that reads and writes it, and keeps the pauser: it pauses the watch
/// while it works on a request, from any thread or task. Clones pause the same stream.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// use wheelwork::idle::{IdlePolicy, IdleStreams};
///
/// # let clock = ManualClock::new();
/// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let socket = std::net::TcpStream::connect(listener.local_addr()?)?;
/// let minute = Duration::from_secs(60);
/// let streams = IdleStreams::new(&timer);
/// let (stream, pauser) = streams.wrap_with_pauser(socket, &IdlePolicy::new().both(minute))?;
/// let answering = pauser.clone().pause(); // moves into the future of the response
/// clock.advance(10 * minute); // the stream is not idle
/// drop(answering);            // the minute begins here
/// # drop(stream);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Pauser(pub(super) Arc<Watch>, pub(super) Arc<Signal>);

impl Pauser {
    /// Pauses the watch until the guard is dropped. Pauses nest. Takes no lock. Has no effect if the stream
    /// was dropped.
    pub fn pause(&self) -> OwnedPauseGuard {
        self.0.begin_pause();
        OwnedPauseGuard(self.clone())
    }
}

impl fmt::Debug for Pauser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pauser").field(&self.0).finish()
    }
}

/// Pauses the watch of a stream until it is dropped. Created by [`Pauser::pause`]. The end counts as a touch. It takes
/// a lock for a short time, and if the stream has reached its maximum age, it wakes the tasks that wait for it.
///
/// # Examples
///
/// ```
/// # use wheelwork::idle::{OwnedPauseGuard, Pauser};
/// /// A response, which keeps its connection from being idle.
/// struct Answer {
///     text: String,
///     _guard: OwnedPauseGuard,
/// }
///
/// fn answer(pauser: &Pauser) -> Answer {
///     Answer { text: "hello".into(), _guard: pauser.pause() }
/// }
/// ```
#[must_use = "dropping the guard ends the pause"]
#[derive(Debug)]
pub struct OwnedPauseGuard(Pauser);

impl Drop for OwnedPauseGuard {
    fn drop(&mut self) {
        self.0.0.end_pause_on_drop();
        self.0.1.wake_if_old();
    }
}

/// The watch of a stream, with or without a pauser.
pub(super) enum StreamWatch {
    Own(Watch),
    Shared(SharedWatch),
}

/// Its drop ends the reports, even while a pauser keeps the watch.
pub(super) struct SharedWatch(pub(super) Arc<Watch>);

impl Deref for StreamWatch {
    type Target = Watch;

    #[inline]
    fn deref(&self) -> &Watch {
        match self {
            Self::Own(watch) => watch,
            Self::Shared(SharedWatch(watch)) => watch,
        }
    }
}

impl Drop for SharedWatch {
    fn drop(&mut self) {
        // If the clock panics, the reports go on. Nobody hears them.
        catch_panic::panics(|| self.0.set_policy(&IdlePolicy::new()));
    }
}
