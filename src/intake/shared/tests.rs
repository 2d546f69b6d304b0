use super::*;
use crate::intake::alarm::CALLS;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

impl<T: Send + Sync> Shared<T> {
    /// What a timer shares whose worker is the calling thread.
    pub(crate) fn of_this_thread(
        limit: Option<usize>,
        buckets: usize,
    ) -> (SharedRef<T>, WorkerTable<T>) {
        let scale = TickScale::new(NonZeroU64::new(8).unwrap());
        let (shared, table) = Self::new(Timebase::starting_now(None), scale, limit, buckets);
        shared.alarm.parker().adopt(&std::thread::current());
        (shared, table)
    }

    /// Whether this thread has called the worker since it last asked. The length of a sleep does not tell that: it may
    /// end early.
    pub(crate) fn was_woken(&self) -> bool {
        CALLS.replace(0) > 0
    }
}

#[test]
fn a_limit_is_never_exceeded() {
    let gate = Shared::<()>::of_this_thread(Some(2), 8).0.gate.clone();
    let begin = || gate.take_permit();
    assert_eq!([begin(), begin(), begin()], [Ok(()), Ok(()), Err(2)]);
    gate.take_permit_beyond();
    gate.release_permits(1);
    assert_eq!(begin(), Err(2), "a timeout that goes on takes a place beyond the limit");
    gate.release_permits(1);
    assert_eq!([begin(), begin()], [Ok(()), Err(2)]);
}

/// The worker finds the request itself, and a wake-up would end its next sleep.
#[test]
fn rule_06_only_another_thread_wakes_the_worker_for_what_is_due() {
    const LONG: Duration = Duration::from_secs(60);
    let shared = of_this_thread();
    shared.tell_due();
    assert!(shared.due_turn.is_made() && !shared.was_woken());
    let other = shared.clone();
    std::thread::spawn(move || other.tell_due()).join().unwrap(); // a scope would use up the wake-up
    let begun = Instant::now();
    shared.alarm.sleep(Some(LONG));
    assert!(begun.elapsed() < LONG);
}

// Requests of a sweep.

impl Shared<()> {
    /// Counts `count` timeouts as scheduled, and as filed in the wheel.
    fn schedule(&self, count: u64) {
        self.counts.by_others.scheduled.add_shared(count);
        self.set_entries(self.entries.load(Ordering::Relaxed) + count as usize);
    }
}

/// Counts `count` cancels in the wheel.
fn cancel(shared: &SharedRef<()>, count: u64) {
    let (timer, counts) = (Link::to(shared), &shared.counts.by_others);
    for _ in 0..count {
        counts.cancelled.add_shared(1);
        counts.died.add_shared(1);
        timer.entry_died(counts.died.get());
    }
}

fn of_this_thread() -> SharedRef<()> {
    Shared::of_this_thread(None, 8).0
}

#[test]
fn rule_04_more_dead_than_live_entries_request_one_sweep() {
    let shared = of_this_thread();
    shared.schedule(10_000);
    cancel(&shared, 7047);
    assert!(!shared.sweep.is_made(), "7,047 are dead and 2,953 live");
    cancel(&shared, DEAD_PER_CHECK);
    assert!(shared.sweep.is_made() && shared.was_woken());
    cancel(&shared, 1929);
    assert!(!shared.was_woken(), "the sweep is already requested");
}

#[test]
fn rule_06_few_dead_entries_request_no_sweep() {
    for (buckets, dead) in [(8, DEAD_ALLOWED as u64), (10_240, 10_240)] {
        let shared = Shared::of_this_thread(None, buckets).0;
        shared.schedule(dead);
        cancel(&shared, dead);
        shared.consider_sweep();
        assert!(!shared.sweep.is_made(), "{dead} in {buckets} buckets");
        shared.schedule(1);
        cancel(&shared, 1);
        shared.consider_sweep();
        assert!(shared.sweep.is_made(), "{dead} and one more in {buckets} buckets");
    }
}

#[test]
fn dead_entries_that_have_left_the_wheel_do_not_count() {
    let shared = of_this_thread();
    shared.schedule(10_240);
    cancel(&shared, 4000);
    shared.set_entries(6240);
    cancel(&shared, 4192);
    shared.consider_sweep();
    assert!(!shared.sweep.is_made(), "4,192 are dead and 2,048 live");
    cancel(&shared, 2048);
    assert!(shared.sweep.is_made());
}

#[test]
fn rule_04_a_sweep_outrun_by_cancels_is_requested_again() {
    let shared = of_this_thread();
    shared.schedule(100_000);
    cancel(&shared, 60_000);
    assert!(shared.sweep.is_made());
    cancel(&shared, 40_000);
    shared.set_entries(40_000);
    shared.consider_sweep();
    assert!(shared.sweep.is_made(), "40,000 dead ones are left");
    shared.set_entries(0);
    shared.consider_sweep();
    assert!(!shared.sweep.is_made());
}

/// A thread that reads the metrics holds the lock. The next check comes after as many dead entries.
#[test]
fn rule_09_a_cancel_never_waits_for_the_lock_of_the_counts() {
    let shared: SharedRef<()> = Shared::of_this_thread(None, 1).0;
    shared.set_entries(2 * DEAD_ALLOWED);
    let (sender, done) = std::sync::mpsc::channel();
    let cancels = || {
        let (shared, sender) = (shared.clone(), sender.clone());
        std::thread::spawn(move || {
            Link::to(&shared).entry_died(DEAD_PER_CHECK);
            sender.send(()).unwrap();
        });
        done.recv_timeout(Duration::from_secs(60))
    };
    let held = shared.counts.threads.lock();
    assert_eq!((cancels(), shared.sweep.is_made()), (Ok(()), false));
    drop(held);
    assert_eq!((cancels(), shared.sweep.is_made()), (Ok(()), true));
}
