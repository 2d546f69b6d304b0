//! Handles as values: what they implement, which are equal, and how a map finds what belongs to a timeout.

use crate::common::{Record, TICK, eventually, manual, ms};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use wheelwork::executor::{Job, OnRefusal, PoolError, ThreadPool};
use wheelwork::future::{DelayQueue, FutureTimeout, Interval, Sleep, Stop, TimeoutError};
use wheelwork::idle::{
    Answer, IdleEvent, IdlePolicy, IdleTimeouts, PauseGuard, ScaleError, Timestamp, Watch,
};
use wheelwork::task::{Next, Run, Task, TimerTask};
use wheelwork::time::{Clock, SystemClock};
use wheelwork::timer::{Builder, WeakTimer, WheelKind};
use wheelwork::watchdog::{Feeder, Watchdog, WatchdogEvent};
use wheelwork::wheel::{
    DelayError, DelayLine, Elapsed, Expired, Hashed, Hierarchical, Key, LevelSizeError, Linux,
    SpeedError, TimedWheel, Wheel, WheelSizeError, ZeroDurationError,
};
use wheelwork::{
    BuildError, CancelOnDrop, HashedWheelTimer, ManualClock, MissedTickBehavior, Period,
    RefusalReason, RescheduleError, ScheduleError, StopError, Timeout, Unprocessed,
};

/// Notes the handle that it sees in its run.
struct SeesItself(Record<Timeout>);

impl TimerTask for SeesItself {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.0.push(run.timeout());
        Next::done()
    }
}

#[test]
fn all_handles_to_one_timeout_are_equal() {
    let (timer, clock) = manual();
    let seen = Record::new();
    let runs = timer.new_timeout(SeesItself(seen.clone()), TICK).unwrap();
    let returned = timer.new_timeout(|| (), ms(1000)).unwrap();
    assert!(runs == runs.clone() && returned == returned.clone() && runs != returned);
    clock.advance_in_one_jump(TICK);
    assert_eq!(seen.take().first(), Some(&runs), "the same after its end");
    let unprocessed = timer.stop().unwrap();
    assert_eq!(unprocessed[0].timeout(), &returned);
    assert_ne!(unprocessed[0].timeout(), &runs);
}

#[test]
#[allow(clippy::mutable_key_type)] // equality and hash never change
fn a_map_finds_what_belongs_to_a_timeout() {
    let timer = HashedWheelTimer::new().unwrap();
    let timeouts: Vec<_> =
        (0..200).map(|_| timer.new_timeout(|| (), ms(60_000)).unwrap()).collect();
    let mut names: HashMap<Timeout, usize> = timeouts.iter().cloned().zip(0..).collect();
    assert_eq!(names.len(), 200);
    let hashes = timeouts.iter().map(|timeout| names.hasher().hash_one(timeout));
    assert_eq!(hashes.collect::<HashSet<_>>().len(), 200, "a search is not one through all");
    for (number, timeout) in timeouts.iter().enumerate() {
        if number % 2 == 0 {
            assert!(timeout.cancel());
        }
        assert_eq!(names.get(timeout), Some(&number));
    }
    let others = thread::spawn({
        let others: Vec<_> = timeouts[100..].to_vec();
        move || others.iter().filter(|timeout| names.remove(timeout).is_some()).count()
    });
    assert_eq!(others.join().unwrap(), 100);
}

/// A slot is used again once its handles are gone. As long as one is left, its timeout is another's.
#[test]
#[allow(clippy::mutable_key_type)] // equality and hash never change
fn timeouts_that_follow_each_other_in_a_slot_differ() {
    let timer = HashedWheelTimer::new().unwrap();
    let mut kept = HashSet::new();
    for number in 0..1000 {
        let timeout = timer.new_timeout(|| (), ms(60_000)).unwrap();
        assert!(timeout.cancel());
        assert!(!kept.contains(&timeout), "timeout {number}");
        if number % 3 == 0 {
            kept.insert(timeout); // its slot is not used again; those of the others are
        }
    }
    assert_eq!(kept.len(), 334);
}

/// As the handles of the standard library do.
#[test]
fn handles_print_and_cross_threads() {
    fn sent<T: Debug + Send + 'static>() {}
    fn shared<T: Debug + Send + Sync + 'static>() {}
    fn cloned<T: Clone + Debug + Send + Sync + 'static>() {}

    cloned::<HashedWheelTimer>();
    cloned::<WeakTimer>();
    cloned::<Timeout>();
    cloned::<ManualClock>();
    cloned::<SystemClock>();
    cloned::<Builder>();
    cloned::<ThreadPool>();
    cloned::<OnRefusal>();
    cloned::<Watchdog>();
    // Even for a connection that is not `Sync`: only one thread has it at a time.
    cloned::<IdleTimeouts<Cell<u32>>>();
    shared::<CancelOnDrop>();
    shared::<Watch>();
    shared::<PauseGuard<'static>>();
    shared::<Feeder>();
    shared::<Sleep>();
    shared::<Interval>();
    shared::<FutureTimeout<Sleep>>();
    shared::<DelayQueue<u32>>();
    shared::<Stop>();
    shared::<Wheel<u32, Hashed>>();
    shared::<Wheel<u32, Linux>>();
    shared::<TimedWheel<u32, Hierarchical>>();
    shared::<DelayLine<u32>>();
    sent::<Job>();
    sent::<Unprocessed>();
    sent::<Task>();
}

/// Values can be compared, and kept in a set.
#[test]
fn values_can_be_compared_and_hashed() {
    fn value<T: Clone + Debug + Eq + Hash + Send + Sync + 'static>() {}

    value::<Timeout>();
    value::<Key>();
    value::<Expired<u32>>();
    value::<Period>();
    value::<MissedTickBehavior>();
    value::<WheelKind>();
    value::<IdlePolicy>();
    value::<IdleEvent>();
    value::<Answer>();
    value::<Timestamp>();
    value::<WatchdogEvent>();
    value::<RefusalReason>();
    value::<RescheduleError>();
    value::<StopError>();
    value::<TimeoutError>();
}

#[test]
fn errors_are_boxed_as_they_are() {
    fn error<T: Error + Send + Sync + 'static>() {}

    error::<BuildError>();
    error::<StopError>();
    error::<RescheduleError>();
    error::<RefusalReason>();
    error::<ScheduleError<Cell<u32>>>();
    error::<DelayError<Cell<u32>>>();
    error::<TimeoutError>();
    error::<PoolError>();
    error::<ScaleError>();
    error::<WheelSizeError>();
    error::<LevelSizeError>();
    error::<ZeroDurationError>();
    error::<SpeedError>();
    error::<Elapsed>();
}

/// A clock that is counted.
struct Held(#[expect(dead_code, reason = "counted")] Arc<()>);

impl Clock for Held {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// The handles are cloned and dropped on several threads, before and after the end of their timeout.
#[test]
fn rule_04_any_number_of_handles_to_one_timeout_keeps_the_timer_no_longer_than_they_live() {
    for ends_first in [false, true] {
        let held = Arc::new(());
        let timer = HashedWheelTimer::builder().clock(Held(held.clone())).build().unwrap();
        let timeout = timer.new_timeout(|| (), ms(60_000)).unwrap();
        assert!(!ends_first || timeout.cancel());
        thread::scope(|scope| {
            for _ in 0..4 {
                let clone = timeout.clone();
                scope.spawn(move || {
                    let clones = vec![clone; 50_000];
                    drop(clones);
                });
            }
        });
        let clones = vec![timeout; 200_000];
        assert_eq!(clones[199_999].cancel(), !ends_first);
        drop(timer);
        thread::scope(|scope| {
            let mut clones = clones;
            for _ in 0..4 {
                let some = clones.split_off(clones.len() - 50_000);
                scope.spawn(move || drop(some));
            }
        });
        eventually("nothing keeps the timer", || Arc::strong_count(&held) == 1);
    }
}
