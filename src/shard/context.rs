//! The state that all handles of one timer share with its worker.
//!
//! A record *catches up* if its timeout is to run within the worker's present pass, without waiting
//! for a tick: a missed run of a periodic timeout, for example. Such a record goes past the queue
//! of its shard. The flag `catching_up` tells the worker that a shard may have one.
//!
//! | `catching_up` | a thread with such a record | the worker |
//! |---|---|---|
//! | false | puts the record into its shard, then sets the flag, then calls the worker | may sleep |
//! | true | does the same | clears the flag, then checks every shard |
//!
//! **The worker does not sleep past such a record.** If a thread puts a record into a shard after
//! the worker has checked that shard, it sets the flag after the worker has cleared it. So the
//! worker finds the flag set before it sleeps, or is called.

use crate::base::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::shard::Wake;
use crate::shard::alarm::Alarm;
use crate::shard::metrics::WorkerMetrics;
use crate::time::Timebase;
use crate::time::tick::TickScale;

/// A timer's clock, alarm, metrics and limit.
pub(crate) struct Context {
    pub(crate) time: Timebase,
    pub(crate) scale: TickScale,
    pub(crate) alarm: Alarm,
    pub(crate) metrics: WorkerMetrics,
    pub(crate) quota: Option<Quota>,
    /// A shard may have a record that catches up. The release of the store in `catch_up` pairs with
    /// the acquire of the worker's load and swap.
    catching_up: AtomicBool,
}

impl Context {
    pub(crate) fn new(time: Timebase, scale: TickScale, limit: Option<usize>) -> Self {
        Self {
            time,
            scale,
            alarm: Alarm::new(),
            metrics: WorkerMetrics::new(),
            quota: limit.map(Quota::new),
            catching_up: AtomicBool::new(false),
        }
    }

    /// Wakes the worker, if `wake` asks for it, after an operation on a timeout due at `deadline`.
    #[inline]
    pub(crate) fn wake(&self, wake: Wake, deadline: u64) {
        match wake {
            Wake::No => {}
            Wake::ForDeadline => self.alarm.submitted(deadline),
            Wake::Now => {
                self.alarm.submitted(deadline);
                self.alarm.call();
            }
        }
    }

    /// Tells the worker that a shard has a record that catches up. Call it after `State::catch_up`.
    pub(crate) fn catch_up(&self) {
        self.catching_up.store(true, Ordering::Release);
        if !self.alarm.parker().is_current_thread() {
            self.alarm.call();
        }
    }

    /// Clears the flag for the worker; true if it was set. The worker then checks every shard.
    #[inline]
    pub(crate) fn take_catching_up(&self) -> bool {
        self.is_catching_up() && self.catching_up.swap(false, Ordering::AcqRel)
    }

    #[inline]
    pub(crate) fn is_catching_up(&self) -> bool {
        self.catching_up.load(Ordering::Acquire)
    }

    /// Counts a timeout as pending again that was admitted before.
    pub(crate) fn begins_again(&self) {
        if let Some(quota) = &self.quota {
            quota.acquire_again();
        }
    }

    /// Counts `count` timeouts as no longer pending.
    #[inline]
    pub(crate) fn ended(&self, count: usize) {
        if let Some(quota) = &self.quota {
            quota.release(count);
        }
    }
}

/// The limit of pending timeouts: one exact counter that all threads share. It costs a contended
/// cache line, so a timer without a limit has no counter.
#[repr(align(128))]
pub(crate) struct Quota {
    limit: usize,
    taken: AtomicUsize,
}

impl Quota {
    fn new(limit: usize) -> Self {
        Self { limit, taken: AtomicUsize::new(0) }
    }

    /// Takes one place, or returns the limit. Relaxed, here and below: the counter guards only
    /// itself.
    pub(crate) fn acquire(&self) -> Result<(), usize> {
        let more = |taken| Some(taken + 1).filter(|&n| n <= self.limit);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|_| self.limit)
    }

    /// Takes one place for a timeout that was admitted before. Always granted.
    fn acquire_again(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self, count: usize) {
        self.taken.fetch_sub(count, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::base::sync::Arc;
    use std::num::NonZeroU64;
    use std::time::{Duration, Instant};

    /// Whether `act`, on another thread, wakes this thread as the worker.
    fn wakes_the_worker(act: impl FnOnce(&Context) + Send + 'static) -> bool {
        const LONG: Duration = Duration::from_secs(20);
        let tick = TickScale::new(NonZeroU64::MIN);
        let context = Arc::new(Context::new(Timebase::starting_now(None), tick, None));
        context.alarm.parker().adopt(&std::thread::current());
        let other = context.clone();
        // Not a scoped thread: its end would unpark this thread too.
        std::thread::spawn(move || act(&other)).join().unwrap();
        let begun = Instant::now();
        context.alarm.sleep(Some(LONG));
        begun.elapsed() < LONG
    }

    /// `Wake::Now` wakes the worker even if the alarm is not armed.
    #[test]
    fn attention_wakes_the_worker_whatever_is_due() {
        assert!(wakes_the_worker(|context| context.wake(Wake::Now, crate::time::tick::NEVER)));
    }

    #[test]
    fn a_record_that_catches_up_wakes_the_worker() {
        assert!(wakes_the_worker(Context::catch_up));
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::base::sync::Arc;
    use crate::shard::{Claim, Shard};
    use loom::thread;
    use std::num::NonZeroU64;

    /// Two runs catch up at once while the worker goes to sleep. It takes both records. If one were
    /// lost, it would sleep for ever, and loom would report the deadlock.
    #[test]
    fn runs_that_catch_up_are_not_slept_over() {
        crate::base::sync::check(|| {
            let tick = TickScale::new(NonZeroU64::MIN);
            let context = Arc::new(Context::new(Timebase::starting_now(None), tick, None));
            let shard = Arc::new(Shard::new(0, 1));
            let runs = [(); 2].map(|()| {
                let mut state = shard.lock();
                let (index, _) = state.admit((), |()| (), 5, true).unwrap();
                assert!(matches!(state.claim(index, 0, 9), Claim::Due(_)), "it is due");
                index
            });
            let runners = runs.map(|index| {
                let (context, shard) = (context.clone(), shard.clone());
                thread::spawn(move || {
                    let mut state = shard.lock();
                    let record = state.go_on(index, (), 6).expect("nothing denies it");
                    state.queue(record);
                    state.catch_up(index);
                    drop(state);
                    context.catch_up();
                })
            });
            let mut taken = 0;
            while taken < 2 {
                if context.take_catching_up() {
                    let mut records = Vec::new();
                    shard.lock().take_catching_up(&mut records);
                    taken += records.len();
                } else {
                    context.alarm.sleep(None);
                }
            }
            runners.into_iter().for_each(|runner| runner.join().unwrap());
        });
    }

    /// Two threads compete for the last place: exactly one gets it. All places are free again after
    /// their release.
    #[test]
    fn a_limit_is_never_exceeded() {
        crate::base::sync::check(|| {
            let quota = Arc::new(Quota::new(2));
            assert_eq!(quota.acquire(), Ok(()));
            let others = [(); 2].map(|()| {
                let quota = quota.clone();
                thread::spawn(move || quota.acquire().is_ok())
            });
            let won = others.map(|other| usize::from(other.join().unwrap()));
            assert_eq!(won.iter().sum::<usize>(), 1);
            quota.release(2);
            assert_eq!((quota.acquire(), quota.acquire()), (Ok(()), Ok(())));
        });
    }
}
