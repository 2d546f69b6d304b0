//! `LocalTimer`: sleeps, limits and intervals of one thread, driven by the loop of that thread.
//!
//! Rules:
//!
//! 1. **The clock decides.** A sleep is ready if the clock has reached its deadline when it is polled. A turn
//!    only wakes.
//! 2. **No code of others runs under a borrow.** Wakers are cloned, woken and dropped, and the clock is read,
//!    while the wheel is not borrowed. So a waker may poll at once, and use the timer.
//! 3. **A turn ends.** A task that is woken in a turn sleeps beyond the turn's tick: a deadline is after
//!    the current time then, so its tick begins after that too.

// - `sleep`: a future that is ready at an instant.
// - `timeout`: a future with a limit.
// - `interval`: ticks at a period.

mod interval;
mod sleep;
mod timeout;

pub use interval::LocalInterval;
pub use sleep::LocalSleep;
pub use timeout::{Elapsed, LocalTimeout};

use super::hierarchical::Hierarchical;
use super::key::Key;
use super::ticks::{Ticks, ZeroDurationError};
use super::timed::TimedWheel;
use super::values::Wheel;
use crate::time::Clock;
use crate::time::tick::{instant_after, nanos};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// The length of a tick, if the caller sets none.
const TICK: Duration = Duration::from_millis(1);

/// The number of buckets in a level. Three levels reach four minutes.
const BUCKETS: usize = 64;

/// Sleeps, limits and intervals of one thread, for thread-per-core runtimes, event loops and simulations.
///
/// It has no thread, no lock and no atomic. The owner of the loop drives it: it asks [`next_deadline`] how long the
/// loop may park, and calls [`turn`] when the loop wakes up. Its futures are `!Send`, and clones share one timer.
///
/// - **Never early**, by the clock. A task is woken by the first turn in or after the tick that follows its
///   deadline.
/// - A future is ready if the clock has reached its deadline when it is polled, woken or not. With a delay of
///   zero it is ready at its first poll.
/// - Each call is O(1). A sleep takes 40 bytes, and one that was polled takes 48 in the timer, too. A reset to a later
///   time writes one number.
/// - A dropped future takes its waker out of the timer.
/// - The latest waker is woken.
///
/// [`next_deadline`]: Self::next_deadline
/// [`turn`]: Self::turn
///
/// # Examples
///
/// A loop that runs one future. `examples/local_loop.rs` is a server on mio, with many.
///
/// ```
/// use std::pin::pin;
/// use std::sync::Arc;
/// use std::task::{Context, Poll, Wake, Waker};
/// use std::time::{Duration, Instant};
/// use wheelwork::wheel::LocalTimer;
///
/// struct Unpark(std::thread::Thread);
///
/// impl Wake for Unpark {
///     fn wake(self: Arc<Self>) {
///         self.0.unpark();
///     }
/// }
///
/// fn block_on<F: Future>(timer: &LocalTimer, future: F) -> F::Output {
///     let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
///     let mut future = pin!(future);
///     loop {
///         if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
///             return output;
///         }
///         match timer.time_to_park() {
///             Some(limit) => std::thread::park_timeout(limit),
///             None => std::thread::park(),
///         }
///         timer.turn();
///     }
/// }
///
/// let timer = LocalTimer::new();
/// let (begin, delay) = (Instant::now(), Duration::from_millis(5));
/// block_on(&timer, timer.sleep(delay));
/// assert!(begin.elapsed() >= delay);
/// let never = std::future::pending::<()>();
/// assert!(block_on(&timer, timer.timeout(delay, never)).is_err());
/// ```
///
/// It cannot leave its thread, and neither can its futures:
///
/// ```compile_fail,E0277
/// let timer = wheelwork::wheel::LocalTimer::new();
/// std::thread::spawn(move || drop(timer));
/// ```
#[derive(Clone)]
pub struct LocalTimer(Rc<Shared>);

struct Shared {
    wheel: RefCell<TimedWheel<Waker, Hierarchical>>,
    /// `None` is the system's clock.
    clock: Option<Box<dyn Clock>>,
    /// The last one that waits for an earlier deadline.
    driver: Cell<Weak<Driver>>,
}

/// The waker that waits for an earlier deadline than this one. Its future owns it, and so drops the waker.
struct Driver {
    deadline: Option<Instant>,
    waker: Cell<Option<Waker>>,
}

impl LocalTimer {
    /// A timer on the system's clock, with a tick of 1 ms.
    ///
    /// # Panics
    ///
    /// On WebAssembly without threads (`wasm32-unknown-unknown`), which has no clock.
    pub fn new() -> Self {
        Self::build(Instant::now(), None, TICK).expect("a tick of 1 ms")
    }

    /// A timer on the system's clock, with a tick of this length. Wake-ups are late by up to a tick, and
    /// those of one tick come together.
    ///
    /// # Errors
    ///
    /// If the tick is zero.
    ///
    /// # Panics
    ///
    /// On WebAssembly without threads (`wasm32-unknown-unknown`), which has no clock.
    pub fn with_tick(tick: Duration) -> Result<Self, ZeroDurationError> {
        Self::build(Instant::now(), None, tick)
    }

    /// A timer on your own clock: a [`ManualClock`](crate::ManualClock) in a simulation, or one that
    /// caches the time of a turn. It never calls [`attach`](Clock::attach).
    ///
    /// # Errors
    ///
    /// If the tick is zero.
    ///
    /// # Examples
    ///
    /// A simulation jumps from one deadline to the next:
    ///
    /// ```
    /// # use std::pin::pin;
    /// # use std::task::{Context, Waker};
    /// use std::time::Duration;
    /// use wheelwork::{ManualClock, wheel::LocalTimer};
    ///
    /// let (clock, day) = (ManualClock::new(), Duration::from_secs(86_400));
    /// let timer = LocalTimer::with_clock(Duration::from_millis(1), clock.clone())?;
    /// let mut year = pin!(timer.sleep(365 * day));
    /// let mut cx = Context::from_waker(Waker::noop()); // of your executor
    /// while year.as_mut().poll(&mut cx).is_pending() {
    ///     let Some(next) = timer.time_to_park() else { break }; // nothing happens any more
    ///     clock.advance(next);
    ///     timer.turn();
    /// }
    /// # Ok::<(), wheelwork::wheel::ZeroDurationError>(())
    /// ```
    pub fn with_clock(tick: Duration, clock: impl Clock) -> Result<Self, ZeroDurationError> {
        Self::build(clock.now(), Some(Box::new(clock)), tick)
    }

    fn build(
        start: Instant,
        clock: Option<Box<dyn Clock>>,
        tick: Duration,
    ) -> Result<Self, ZeroDurationError> {
        let wheel = Wheel::hierarchical(BUCKETS).expect("memory for 64 buckets");
        let wheel = RefCell::new(TimedWheel::new(wheel, Ticks::new(tick, start)?));
        Ok(Self(Rc::new(Shared { wheel, clock, driver: Cell::default() })))
    }

    /// A future that is ready `delay` from now. [`Duration::ZERO`] means ready at the first poll, and
    /// [`Duration::MAX`] means never.
    ///
    /// # Cancellation
    ///
    /// A drop of the future takes its waker out of the timer.
    pub fn sleep(&self, delay: Duration) -> LocalSleep {
        LocalSleep::new(self, self.after(delay))
    }

    /// A future that is ready at an instant.
    pub fn sleep_until(&self, deadline: Instant) -> LocalSleep {
        LocalSleep::new(self, deadline)
    }

    /// Limits a future: returns its output if it completes within `limit` from now, and an error if not.
    /// Each poll polls the future before it checks the limit.
    ///
    /// # Cancellation
    ///
    /// A drop of the returned future, also after the limit, drops the limited one. To go on with that, limit a reference
    /// to it, such as `&mut future` of a pinned one.
    pub fn timeout<F: IntoFuture>(
        &self,
        limit: Duration,
        future: F,
    ) -> LocalTimeout<F::IntoFuture> {
        LocalTimeout { future: future.into_future(), limit: self.sleep(limit) }
    }

    /// Limits a future like [`timeout`](Self::timeout), but until an instant.
    pub fn timeout_at<F: IntoFuture>(
        &self,
        deadline: Instant,
        future: F,
    ) -> LocalTimeout<F::IntoFuture> {
        LocalTimeout { future: future.into_future(), limit: self.sleep_until(deadline) }
    }

    /// Ticks at a period. The first is one period from now. Missed ticks are skipped, and the following ones
    /// keep the schedule.
    ///
    /// # Errors
    ///
    /// If the period is zero.
    pub fn interval(&self, period: Duration) -> Result<LocalInterval, ZeroDurationError> {
        if period.is_zero() {
            return Err(ZeroDurationError);
        }
        Ok(LocalInterval { sleep: self.sleep(period), period })
    }

    /// Wakes everything that is due by now, in the order of ticks. Returns the number of wake-ups.
    ///
    /// If a waker panics, the next turn wakes the others.
    pub fn turn(&self) -> usize {
        let (now, mut budget, mut woken) = (self.now(), usize::MAX, 0);
        while self.wake_next(now, &mut budget) {
            woken += 1;
        }
        woken
    }

    /// Wakes like [`turn`](Self::turn), but at most about `limit`, so that a turn takes no more than its share.
    /// Returns true if nothing is due any more. The limit also counts entries of dropped sleeps.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::LocalTimer;
    /// # let timer = LocalTimer::new();
    /// # let poll_sockets = |_: Option<std::time::Duration>| ();
    /// // Until all are woken, the loop does not park: the next deadline has passed.
    /// let _woken = timer.turn_at_most(1000);
    /// poll_sockets(timer.time_to_park());
    /// ```
    pub fn turn_at_most(&self, limit: usize) -> bool {
        let (now, mut budget) = (self.now(), limit);
        while self.wake_next(now, &mut budget) {}
        budget > 0
    }

    /// Wakes the next one that is due. False if there is none, or if the budget is used up.
    fn wake_next(&self, now: Instant, budget: &mut usize) -> bool {
        let next = self.0.wheel.borrow_mut().pop_within(now, budget);
        next.map(|expired| expired.value.wake()).is_some()
    }

    /// The instant of the next turn: the loop may park until then. `None` if nobody waits, or if all wait for
    /// ever: the loop may park until something else wakes it. It may be too early if a sleep was dropped or reset, but
    /// it is never too late.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.0.wheel.borrow().next_deadline()
    }

    /// The time until [`next_deadline`](Self::next_deadline), zero if it has come: the limit for the loop's
    /// `poll`. `None`, as there, if nobody waits, or if all wait for ever.
    pub fn time_to_park(&self) -> Option<Duration> {
        self.next_deadline().map(|next| next.saturating_duration_since(self.now()))
    }

    /// Waits until the next deadline is earlier than it is at this call.
    ///
    /// Your own loop asks [`next_deadline`](Self::next_deadline) each time before it parks, and does not
    /// need this. In a runtime whose loop you do not own, a task drives the timer. It must learn that another
    /// task sleeps for a shorter time than all before. Only one task may wait for it; a second one takes its
    /// place.
    ///
    /// # Examples
    ///
    /// The task that drives the timer in a runtime, with a sleep of that runtime:
    ///
    /// ```
    /// # use std::{future::{Future, poll_fn}, pin::{Pin, pin}, task::Poll, time::Instant};
    /// use wheelwork::wheel::LocalTimer;
    ///
    /// # /// Completes when one of them does.
    /// # async fn either(a: impl Future<Output = ()>, b: impl Future<Output = ()>) {
    /// #     let (mut a, mut b) = (pin!(a), pin!(b));
    /// #     poll_fn(|cx| match a.as_mut().poll(cx) {
    /// #         Poll::Pending => b.as_mut().poll(cx),
    /// #         ready => ready,
    /// #     }).await
    /// # }
    /// async fn drive<S: Future<Output = ()>>(
    ///     timer: LocalTimer,
    ///     runtime_sleep_until: impl Fn(Instant) -> S,
    /// ) {
    ///     loop {
    ///         timer.turn();
    ///         match timer.next_deadline() {
    ///             Some(next) => either(runtime_sleep_until(next), timer.earlier()).await,
    ///             None => timer.earlier().await,
    ///         }
    ///     }
    /// }
    /// ```
    pub fn earlier(&self) -> impl Future<Output = ()> + use<> {
        let (timer, deadline) = (self.clone(), self.next_deadline());
        let driver = Rc::new(Driver { deadline, waker: Cell::default() });
        poll_fn(move |cx| {
            if is_before(timer.next_deadline(), deadline) {
                return Poll::Ready(());
            }
            driver.waker.set(Some(cx.waker().clone()));
            timer.0.driver.set(Rc::downgrade(&driver));
            Poll::Pending
        })
    }

    /// The current time by the timer's clock.
    pub fn now(&self) -> Instant {
        self.0.clock.as_ref().map_or_else(Instant::now, |clock| clock.now())
    }

    /// The number of sleeps, limits and intervals that wait.
    pub fn waiting(&self) -> usize {
        self.0.wheel.borrow().wheel().len()
    }

    fn after(&self, delay: Duration) -> Instant {
        instant_after(self.now(), nanos(delay))
    }

    /// Whether `waker` waits under `key`.
    fn holds(&self, key: Key, waker: &Waker) -> bool {
        let wheel = self.0.wheel.borrow();
        wheel.wheel().get(key).is_some_and(|waiting| waiting.will_wake(waker))
    }

    /// Lets `waker` be woken at `deadline`.
    fn register(&self, deadline: Instant, waker: Waker) -> Key {
        let key = self.0.wheel.borrow_mut().insert_at(deadline, waker);
        self.tell_driver();
        key
    }

    /// Moves the waker of `key`. Wakes it if a turn has passed that deadline. Nothing happens if it was
    /// woken.
    fn reset(&self, key: Key, deadline: Instant) {
        let mut wheel = self.0.wheel.borrow_mut();
        if wheel.ticks().not_before(deadline) < wheel.wheel().current_tick() {
            let passed = wheel.wheel_mut().remove(key);
            drop(wheel);
            passed.into_iter().for_each(Waker::wake);
        } else {
            wheel.reschedule_at(key, deadline);
            drop(wheel);
            self.tell_driver();
        }
    }

    fn deregister(&self, key: Key) {
        let removed = self.0.wheel.borrow_mut().wheel_mut().remove(key);
        drop(removed); // after the borrow
    }

    /// Wakes the task that waits for an earlier deadline, if the next one is earlier.
    fn tell_driver(&self) {
        let waiting = self.0.driver.take();
        let Some(driver) = waiting.upgrade() else { return };
        if is_before(self.next_deadline(), driver.deadline) {
            driver.waker.take().into_iter().for_each(Waker::wake);
        } else {
            self.0.driver.set(waiting);
        }
    }
}

/// Whether `next` is before `deadline`. `None` is never.
fn is_before(next: Option<Instant>, deadline: Option<Instant>) -> bool {
    next.is_some_and(|next| deadline.is_none_or(|deadline| next < deadline))
}

impl Default for LocalTimer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalTimer")
            .field("waiting", &self.waiting())
            .field("next_deadline", &self.next_deadline())
            .finish_non_exhaustive()
    }
}
