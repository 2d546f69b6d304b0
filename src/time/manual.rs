//! A clock for tests that moves only when it is told to.
//!
//! A move can jump, or visit each tick in which something is due. The next due time comes from the slots and not
//! from the wheel, because the wheel also has entries of timeouts that were cancelled or pushed back, and misses those
//! that the worker has not filed yet.

use super::jobs::Jobs;
use super::{Clock, Follower, FollowingTimer, Pace};
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::time::tick::nanos;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A clock for tests: time stands still until the test moves it.
///
/// | to | call |
/// |---|---|
/// | run everything that is due on the way, in its own tick | [`advance`](Self::advance) |
/// | go to what is due next | [`advance_to_next`](Self::advance_to_next) |
/// | move on when a runtime has nothing to do | [`advance_when_idle`](Self::advance_when_idle) |
/// | drive futures, moving on whenever all of them wait | [`run`](Self::run), [`run_with`](Self::run_with) |
/// | jump, as after a stall of the machine | [`advance_in_one_jump`](Self::advance_in_one_jump) |
///
/// Clones share the same time; keep one and give one to the builder. Several timers can run on one
/// clock. A panic of a task, such as a failed `assert`, is caught and does not fail the test: check
/// [`metrics().panicked`](crate::metrics::Metrics::panicked).
/// [Tests with virtual time](crate::guide::virtual_time) has the rest.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
/// use std::{sync::Arc, time::Duration};
/// use wheelwork::{HashedWheelTimer, ManualClock};
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let fired = Arc::new(AtomicUsize::new(0));
/// let seen = fired.clone();
/// timer.new_timeout(move || { seen.fetch_add(1, SeqCst); }, Duration::from_secs(3600))?;
///
/// clock.advance(Duration::from_secs(3599));
/// assert_eq!(fired.load(SeqCst), 0);
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(fired.load(SeqCst), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("mock", "fake clock", "virtual time"))]
#[derive(Clone)]
pub struct ManualClock(Arc<Inner>);

/// How long a thread that may have to run jobs itself waits for those of others.
const GIVE_UP_AFTER: Duration = Duration::from_millis(1);

struct Inner {
    origin: Instant,
    /// Nanoseconds since `origin`. The acquire load in `elapsed_nanos` pairs with the release of each
    /// move: a thread that reads a time also sees everything that happened before the clock was moved to it.
    elapsed: AtomicU64,
    followers: Mutex<Vec<Follower>>,
}

impl ManualClock {
    /// A clock that shows the current instant.
    ///
    /// # Panics
    ///
    /// On WebAssembly without threads (`wasm32-unknown-unknown`), which has no clock.
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            origin: Instant::now(),
            elapsed: AtomicU64::new(0),
            followers: Mutex::new(Vec::new()),
        }))
    }

    /// Moves the time ahead by `by`, and visits on the way each tick in which something is due. At each visit it
    /// waits until everything that is due is done, and everything that this has caused. Then it looks for the next tick
    /// to visit. So a chain of timeouts runs as it does in real time: each task sees the time at which it is due,
    /// and delays that it schedules count from there.
    ///
    /// A timeout is due once the tick of its deadline has begun. With the default tick of 100 ms, a delay of 10 ms runs
    /// after a move by 100 ms, and not after 10 ms. So move the time by whole ticks, or build the timer with a short
    /// tick. The time saturates after 584 years.
    ///
    /// What a visit waits for:
    ///
    /// - Each due task has run, on the worker or on an executor: its job has ended, or was dropped. A series
    ///   is scheduled again by then.
    /// - Each due waker was called, and each due check of the idle manager has reported.
    /// - What these have scheduled or moved counts for the next visits. A delay of zero is due in the next
    ///   tick, which is visited too. So is a timeout that another thread schedules for a tick that is over.
    ///
    /// It does not wait for other threads: for a runtime to poll the tasks that were woken, for a thread that
    /// receives a message from a task, or for work that a task hands on. [`run`](Self::run) drives futures.
    ///
    /// In a task or its [`cancelled`](crate::task::TimerTask::cancelled) callback, on a worker or on an executor, it
    /// moves the time in one jump, as [`advance_in_one_jump`](Self::advance_in_one_jump) does there. If several threads
    /// move one clock, each move counts, and a task may see a later time than that of its tick.
    ///
    /// O(slots) for each visit: it reads every slot of each timer to find the next one. Time in which nothing
    /// is due costs nothing.
    ///
    /// # Blocking
    ///
    /// It waits for the executor's jobs. If this thread is the one that runs them, for example from a channel
    /// or in a runtime that polls on one thread, it waits for ever (after 5 s it logs a warning). Use
    /// [`advance_in_one_jump`](Self::advance_in_one_jump) there, or no executor.
    ///
    /// # Examples
    ///
    /// A connection is idle after 30 s, and closed 10 s later:
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use wheelwork::{HashedWheelTimer, ManualClock};
    ///
    /// let clock = ManualClock::new();
    /// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let (sender, closed) = mpsc::channel();
    /// let (drain, now) = (timer.clone(), clock.clone());
    /// let idle = move || {
    ///     let close = move || sender.send(now.elapsed()).unwrap();
    ///     drain.new_timeout(close, Duration::from_secs(10)).unwrap();
    /// };
    /// timer.new_timeout(idle, Duration::from_secs(30))?;
    ///
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(closed.try_recv()?, Duration::from_secs(40));
    /// assert_eq!(clock.elapsed(), Duration::from_secs(60));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&self, by: Duration) {
        let mut left = nanos(by);
        while self.run_all_due() {
            let now = self.elapsed_nanos();
            if left == 0 || now == LAST {
                return;
            }
            let step = self.next_due().map_or(left, |next| left.min(next.saturating_sub(now)));
            if self.move_on(now, now.saturating_add(step).min(LAST)) {
                left -= step;
            }
        }
        self.advance_in_one_jump(Duration::from_nanos(left));
    }

    /// Moves the time ahead in one jump, as after a stall of the machine. Returns when every timer on this clock has
    /// handed all due timeouts to its executor, in the order of ticks. It does not wait for the executor's jobs.
    ///
    /// With the inline executor, the tasks have all run by then. A task that runs during the jump sees the time at the
    /// jump's end, and delays that it schedules count from there. A jump of zero makes each worker do one more pass, in
    /// which it expires everything that is due by now. Timeouts that are not due may
    /// [wait outside the wheel](crate::HashedWheelTimer::queue_depth). In a task on the worker of any timer, and for
    /// timers of the parent of a forked process, it moves the time and does not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock, MissedTickBehavior, Period};
    /// let clock = ManualClock::new();
    /// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// timer.new_periodic(|| (), Period::fixed_rate_with(second, MissedTickBehavior::Skip))?;
    /// clock.advance(5 * second);
    /// assert_eq!(timer.metrics().expired, 5);
    /// clock.advance_in_one_jump(5 * second); // four runs are missed
    /// assert_eq!(timer.metrics().expired, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_in_one_jump(&self, by: Duration) {
        let by = nanos(by);
        let moved = self.0.elapsed.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            Some(now.saturating_add(by).min(LAST))
        });
        debug_assert!(moved.is_ok(), "the closure always returns a value");
        catch_up(&self.timers());
    }

    /// Moves the time to the start of the next tick in which something is due, and waits as
    /// [`advance`](Self::advance) does. Returns the new time. Returns `None`, and does not move the
    /// time, if nothing is pending, or if all of it waits for ever.
    ///
    /// A check of an [idle manager](crate::idle) counts as due, even if no connection is silent then. In a
    /// task, it moves the time in one jump. It then returns `None` if something is due already.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// let clock = ManualClock::new();
    /// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let hour = Duration::from_secs(3600);
    /// timer.new_timeout(|| println!("an hour later"), hour)?;
    /// assert_eq!(clock.advance_to_next(), Some(timer.started_at() + hour));
    /// assert_eq!(clock.advance_to_next(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A runtime moves the clock with [`advance_when_idle`](Self::advance_when_idle), which waits less.
    pub fn advance_to_next(&self) -> Option<Instant> {
        loop {
            let waits = self.run_all_due();
            let (now, next) = (self.elapsed_nanos(), self.next_due()?);
            if next > LAST || next <= now && !waits {
                return None;
            }
            if next > now && self.move_on(now, next) {
                if !self.run_all_due() {
                    catch_up(&self.timers());
                }
                return Some(self.at(next));
            }
        }
    }

    /// Moves the time to the start of the next tick in which something is due. For a runtime, which calls it
    /// when none of its tasks is ready: see [tests on virtual time](crate::guide::virtual_time#on-tokio).
    ///
    /// Unlike [`advance_to_next`](Self::advance_to_next), it waits for the jobs of executors for a millisecond
    /// only, and returns before those that it causes have run. So the runtime may run them itself. While jobs
    /// have not ended, or if there were missed runs to hand over, the time stands still: the next call moves
    /// it.
    ///
    /// Returns false if nothing is pending, if all of it waits for ever, or in a task of a timer.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// let clock = ManualClock::new();
    /// let idle = clock.clone();
    /// let runtime = tokio::runtime::Builder::new_current_thread()
    ///     .on_thread_park(move || {
    ///         if idle.advance_when_idle() {
    ///             tokio::spawn(async {}); // look again, since perhaps no task was woken
    ///         }
    ///     })
    ///     .build()?;
    /// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let hour = Duration::from_secs(3600);
    /// runtime.block_on(async { tokio::spawn(timer.sleep(hour)).await })?;
    /// assert_eq!(clock.elapsed(), hour);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_when_idle(&self) -> bool {
        if !Jobs::is_in_one() && !self.wait_for_jobs() {
            return true; // perhaps this thread has to run them
        }
        self.advance_if(|| true)
    }

    /// Moves the time to what is due next, if nothing was handed over at the current time, and if `may_move`
    /// still holds then. False if nothing is pending.
    pub(crate) fn advance_if(&self, may_move: impl Fn() -> bool) -> bool {
        let timers = self.timers();
        let begun = || timers.iter().map(|timer| timer.jobs().begun()).sum::<u64>();
        let begun_before = begun();
        if !may_wait(&timers) {
            return false;
        }
        // A job that runs now may leave a missed run of its series, which the worker would not have handed over.
        if timers.iter().any(|timer| timer.jobs().are_running()) {
            return true;
        }
        catch_up(&timers);
        if begun() != begun_before || !may_move() {
            return true;
        }
        let (now, next) = (self.elapsed_nanos(), self.next_due());
        let Some(next) = next.filter(|&next| next <= LAST) else { return false };
        if next > now && self.move_on(now, next) {
            catch_up(&self.timers());
        }
        true
    }

    /// Waits a moment until the jobs of all timers have ended. False if some have not.
    pub(crate) fn wait_for_jobs(&self) -> bool {
        let limit = Instant::now().checked_add(GIVE_UP_AFTER);
        self.timers().iter().all(|timer| timer.jobs().wait_until(limit).is_some())
    }

    /// Whether this thread may wait for the timers.
    pub(crate) fn may_wait(&self) -> bool {
        may_wait(&self.timers())
    }

    /// Waits until each timer has done what is due by now, and until the executors' jobs have ended. False
    /// if it must not wait.
    fn run_all_due(&self) -> bool {
        let timers = self.timers();
        while may_wait(&timers) {
            // A job may leave a missed run of its series, which is due by now. It has announced this before its end, so
            // a pass that begins afterwards runs it. If no job has begun by the end of the pass, none was left.
            let ended: u64 = timers.iter().map(|timer| timer.jobs().wait()).sum();
            catch_up(&timers);
            if timers.iter().map(|timer| timer.jobs().begun()).sum::<u64>() == ended {
                return true;
            }
        }
        false
    }

    /// The start of the next tick in which a timer has something due.
    fn next_due(&self) -> Option<u64> {
        let due = self.timers().iter().filter_map(|timer| timer.next_due()).min();
        due.map(|due| nanos(due.saturating_duration_since(self.0.origin)))
    }

    /// Moves the time, unless another thread has done so.
    fn move_on(&self, from: u64, to: u64) -> bool {
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        self.0.elapsed.compare_exchange(from, to, done, failed).is_ok()
    }

    /// How far the time has been moved since this clock was created.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_nanos())
    }

    fn elapsed_nanos(&self) -> u64 {
        self.0.elapsed.load(Ordering::Acquire)
    }

    fn at(&self, elapsed: u64) -> Instant {
        self.0.origin.checked_add(Duration::from_nanos(elapsed)).unwrap_or(self.0.origin)
    }

    /// The living timers on this clock.
    fn timers(&self) -> Vec<Arc<dyn FollowingTimer>> {
        let mut followers = self.0.followers.lock();
        followers.retain(Follower::is_alive);
        followers.iter().filter_map(Follower::timer).collect()
    }
}

/// False on a worker, in a job, and for a timer of the parent of a forked process, whose jobs never end here.
fn may_wait(timers: &[Arc<dyn FollowingTimer>]) -> bool {
    !Jobs::is_in_one() && timers.iter().all(|timer| timer.may_wait())
}

/// Waits until the timers have done what is due by now, apart from those for which this thread must not wait. It wakes
/// all workers before it waits for the first.
fn catch_up(timers: &[Arc<dyn FollowingTimer>]) {
    let asked: Vec<_> = timers.iter().map(|timer| timer.request_catch_up()).collect();
    timers.iter().zip(asked).for_each(|(timer, request)| timer.wait(request));
}

/// The last time of the clock. One nanosecond more would mean never.
const LAST: u64 = u64::MAX - 1;

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.at(self.elapsed_nanos())
    }

    fn attach(&self, follower: Follower) -> Pace {
        let mut followers = self.0.followers.lock();
        followers.retain(Follower::is_alive);
        followers.push(follower);
        Pace::OnCall
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("elapsed", &self.elapsed()).finish()
    }
}
