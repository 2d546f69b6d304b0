//! `LocalSleep`: a future that is ready at an instant.

use super::LocalTimer;
use crate::wheel::Key;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A future that is ready at an instant. Created by [`LocalTimer::sleep`] and
/// [`sleep_until`](LocalTimer::sleep_until).
///
/// # Examples
///
/// An idle limit that each message pushes back:
///
/// ```
/// use std::task::{Context, Poll};
/// use std::time::Duration;
/// use std::{future::Future, pin::Pin};
/// use wheelwork::wheel::{LocalSleep, LocalTimer};
///
/// struct Connection {
///     idle: LocalSleep,
/// }
///
/// impl Connection {
///     fn received(&mut self) {
///         self.idle.reset_after(Duration::from_secs(30));
///     }
///
///     fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
///         Pin::new(&mut self.idle).poll(cx)
///     }
/// }
/// # let timer = LocalTimer::new();
/// # let mut connection = Connection { idle: timer.sleep(Duration::from_secs(30)) };
/// # connection.received();
/// # assert!(connection.poll_idle(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct LocalSleep {
    timer: LocalTimer,
    deadline: Instant,
    /// Of the waker in the timer. It finds nothing after the wake-up.
    key: Option<Key>,
}

impl LocalSleep {
    pub(super) fn new(timer: &LocalTimer, deadline: Instant) -> Self {
        Self { timer: timer.clone(), deadline, key: None }
    }

    /// The instant at which it is ready.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the clock has reached the deadline.
    pub fn is_elapsed(&self) -> bool {
        self.timer.now() >= self.deadline
    }

    /// Moves the deadline. A task that waits is woken at the new one, and need not poll again. If the new one
    /// has passed, the task is woken immediately, or with the next tick. A sleep that was ready can be used
    /// again.
    pub fn reset(&mut self, deadline: Instant) {
        self.deadline = deadline;
        if let Some(key) = self.key {
            self.timer.reset(key, deadline);
        }
    }

    /// Moves the deadline to `delay` from now.
    pub fn reset_after(&mut self, delay: Duration) {
        self.reset(self.timer.after(delay));
    }

    pub(super) fn timer(&self) -> &LocalTimer {
        &self.timer
    }

    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_elapsed() {
            self.deregister();
            return Poll::Ready(());
        }
        if !self.key.is_some_and(|key| self.timer.holds(key, cx.waker())) {
            self.deregister();
            self.key = Some(self.timer.register(self.deadline, cx.waker().clone()));
        }
        Poll::Pending
    }

    fn deregister(&mut self) {
        if let Some(key) = self.key.take() {
            self.timer.deregister(key);
        }
    }
}

impl Future for LocalSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_ready(cx)
    }
}

impl Drop for LocalSleep {
    fn drop(&mut self) {
        self.deregister();
    }
}

impl fmt::Debug for LocalSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSleep").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
