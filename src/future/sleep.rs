//! `Sleep`: a future that is ready at an instant.
//!
//! Rules:
//!
//! 1. **The clock decides.** A sleep is ready if the timer's clock has reached its deadline, or if the
//!    timer is stopped. The worker sets no flag: the sleep reads the clock.
//! 2. **Register, then check again.** A manual clock may pass the deadline before the waker is in the wheel,
//!    and stand still afterwards. So after a registration or a reset on such a clock, the
//!    sleep reads the clock again. On the system's clock it does so only after a reset to an instant,
//!    which may have passed, or by zero.
//! 3. **The latest waker wins.** A new waker replaces the one in the wheel.
//! 4. **A waker is cloned, woken and dropped under no lock.** The drop of a sleep drops its waker
//!    immediately.

use super::resource::Resource;
use crate::base::sync::Arc;
use crate::base::waker::Identity;
use crate::intake::Home;
use crate::intake::shared::Gate;
use crate::timeout::{Admit, Erased, Kind, Next, Run, Timeout, TimerTask, home, schedule};
use crate::timer::HashedWheelTimer;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

impl HashedWheelTimer {
    /// A future that is ready `delay` from now.
    ///
    /// It is never early by the timer's clock. A task that waits for it is woken within a tick after
    /// the deadline. [`Duration::ZERO`] means ready at the first poll, and [`Duration::MAX`] means never.
    ///
    /// The deadline counts from this call. The first poll puts the task's waker into the timer: it
    /// costs what [`new_timeout`](Self::new_timeout) costs, and allocates nothing. The limit of
    /// pending timeouts does not apply to it.
    ///
    /// # Cancellation
    ///
    /// A drop of the future takes its waker out of the timer. In a `select!` within a loop, await `&mut sleep`, so that
    /// the next turn waits for the same deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), wheelwork::BuildError> {
    /// let timer = wheelwork::HashedWheelTimer::builder()
    ///     .tick_duration(Duration::from_millis(1))
    ///     .build()?;
    /// let begin = Instant::now();
    /// timer.sleep(Duration::from_millis(5)).await;
    /// assert!(begin.elapsed() >= Duration::from_millis(5));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("delay", "delay_for"))]
    #[inline]
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn sleep(&self, delay: Duration) -> Sleep {
        Sleep::new(self, self.gate().time.poll_deadline_after(delay))
    }

    /// A future that is ready at an instant. If the instant has passed, the future is ready at its first
    /// poll. An instant before the timer's [start](Self::started_at) counts as the start.
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep::new(self, self.gate().time.nanos_at(deadline))
    }
}

/// A future that is ready at its deadline, or at the end of its timer. Created by
/// [`HashedWheelTimer::sleep`] and [`sleep_until`](HashedWheelTimer::sleep_until).
///
/// Once ready, it stays ready until a reset. The drop of a sleep takes its waker out of the timer and
/// drops it, in O(1).
///
/// A sleep does not keep its timer alive. When the last
/// [`HashedWheelTimer`] is dropped, the sleep becomes ready, and [`was_stopped`](Self::was_stopped) returns true.
///
/// # Examples
///
/// A deadline that each request pushes back:
///
/// ```
/// # use std::time::Duration;
/// # async fn next_request() -> u32 { 1 }
/// # async fn handle(_: u32) {}
/// # async fn serve(timer: wheelwork::HashedWheelTimer) {
/// let mut idle = timer.sleep(Duration::from_secs(30));
/// loop {
///     tokio::select! {
///         request = next_request() => handle(request).await,
///         () = &mut idle => break,
///     }
///     idle.reset_after(Duration::from_secs(30));
/// }
/// # }
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct Sleep {
    home: Arc<Home<Erased>>,
    /// The last waker that was put into the timer, and its timeout. `None` once it was taken out. If the worker has
    /// already claimed the timeout, the worker wakes the waker.
    waiting: Option<(Timeout, Identity)>,
    /// In nanoseconds after the timer's start.
    deadline: u64,
    end: Option<End>,
    resource: Resource,
}

/// A task that wakes its waker when the timeout expires, and when [`Sleep::wake`] or a stop of the timer
/// cancels it. A waker has 16 bytes, so it is stored in its slot.
struct Wake(Waker);

impl TimerTask for Wake {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        self.0.wake();
        Next::done()
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.0.wake();
    }

    const KIND: Kind = Kind::WAKE;
}

/// Why a sleep has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Elapsed,
    Stopped,
}

impl Sleep {
    #[inline]
    #[cfg_attr(feature = "tracing", track_caller)]
    pub(super) fn new(timer: &HashedWheelTimer, deadline: u64) -> Self {
        let resource = Resource::new(|| timer.gate().time.left_until(deadline));
        let home = home(&timer.control().timer);
        Self { home, waiting: None, deadline, end: None, resource }
    }

    /// The instant at which it is ready.
    pub fn deadline(&self) -> Instant {
        self.gate().time.instant_at(self.deadline)
    }

    /// Whether the deadline has passed, by the timer's clock.
    pub fn is_elapsed(&self) -> bool {
        self.end == Some(End::Elapsed) || self.gate().time.has_reached(self.deadline)
    }

    /// Whether it became ready because its timer was stopped, or lost its last handle, before the deadline.
    pub fn was_stopped(&self) -> bool {
        self.end == Some(End::Stopped)
    }

    /// Moves the deadline to an instant. O(1), without an allocation.
    ///
    /// A task that waits for the sleep continues to wait, and need not poll it again. If the new deadline
    /// has passed, this call wakes the task. A sleep that was ready can be awaited again.
    pub fn reset(&mut self, deadline: Instant) {
        self.reset_to(self.gate().time.nanos_at(deadline));
    }

    /// Moves the deadline to `delay` from now, like [`reset`](Self::reset).
    pub fn reset_after(&mut self, delay: Duration) {
        let time = &self.gate().time;
        // If the clock goes on by itself, the worker wakes the task after the delay.
        let may_have_passed = delay.is_zero() || time.may_stand_still();
        self.move_to(time.poll_deadline_after(delay), may_have_passed);
    }

    /// Moves the deadline to a time of the timer's own count.
    #[inline]
    pub(super) fn reset_to(&mut self, deadline: u64) {
        self.move_to(deadline, true);
    }

    #[inline]
    fn move_to(&mut self, deadline: u64, may_have_passed: bool) {
        self.deadline = deadline;
        self.end = None;
        if let Some((timeout, _)) = &self.waiting {
            let has_passed = || may_have_passed && self.gate().time.may_have_reached(deadline);
            // The move fails if the waker is about to be woken.
            if timeout.reschedule_to(deadline).is_err() || has_passed() {
                self.wake();
            }
        }
        // Last, because the clock may panic there.
        self.resource.moved(|| self.gate().time.left_until(deadline));
    }

    /// Wakes the waiting task on this thread, if there is one that was not already woken.
    pub(super) fn wake(&mut self) {
        self.waiting.take().into_iter().for_each(|(timeout, _)| _ = timeout.cancel());
    }

    /// Drops the waker that waits, on this thread and under no lock.
    #[inline]
    fn leave(&mut self) {
        self.waiting.take().into_iter().for_each(|(timeout, _)| timeout.discard());
    }

    /// The state that the sleep shares with its timer.
    #[inline]
    pub(super) fn gate(&self) -> &Gate {
        &self.home.timer.gate
    }

    /// Polls the sleep without a pin.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let resource = std::mem::take(&mut self.resource);
        let polled = resource.poll(|| self.poll_untraced(cx));
        self.resource = resource;
        polled
    }

    fn poll_untraced(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_ended() {
            return Poll::Ready(());
        }
        let waiting = self.waiting.as_ref();
        if waiting.is_some_and(|(timeout, own)| own.is(cx.waker()) && timeout.is_pending()) {
            return Poll::Pending;
        }
        self.wait(cx.waker().clone());
        // If the clock goes on by itself, the worker wakes the task.
        let checks_again = self.gate().time.may_stand_still();
        if checks_again && self.has_ended() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Puts `waker` into the timer, instead of the previous one. If the timer refuses it, wakes it.
    fn wait(&mut self, waker: Waker) {
        self.leave();
        let identity = Identity::of(&waker);
        match schedule(&self.home.timer, Wake(waker), self.deadline, Admit::Once) {
            Ok(timeout) => self.waiting = Some((timeout, identity)),
            // If all slots of the timer are in use, the next poll tries again.
            Err(refused) => refused.into_task().0.wake(),
        }
    }

    /// Checks the clock, then whether the timer is stopped.
    fn has_ended(&mut self) -> bool {
        if self.end.is_none() {
            self.end = if self.gate().time.has_reached(self.deadline) {
                Some(End::Elapsed)
            } else if self.gate().is_closed() {
                Some(End::Stopped)
            } else {
                return false;
            };
            self.leave();
        }
        true
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_ready(cx)
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(feature = "stream")]
impl futures_core::FusedFuture for Sleep {
    fn is_terminated(&self) -> bool {
        self.end.is_some()
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("due_in", &self.gate().time.left_until(self.deadline))
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

const _: () = {
    const fn anywhere<T: Send + Sync + Unpin>() {}
    anywhere::<Sleep>();
};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
