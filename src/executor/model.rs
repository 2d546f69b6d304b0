//! Loom models of several parts together: handles, jobs, and an executor that refuses.

use crate::base::sync::{Arc, ArrayQueue, check, spawn};
use crate::executor::{Dispatch, Job, OnRefusal};
use crate::intake::{Chunk, Claim, Phase, Slot, WorkerTable};
use crate::time::Timebase;
use crate::time::tick::TickScale;
use crate::timeout::{
    Admit, Erased, Link, Next, Run, Shared, SharedRef, Timeout, TimerTask, schedule,
};
use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of tasks in a model that have run, and of those whose cancelled callback has run.
#[derive(Default)]
pub(crate) struct Ends {
    pub(crate) run: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
}

pub(crate) struct Counted(pub(crate) Arc<Ends>);

impl TimerTask for Counted {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        self.0.run.fetch_add(1, Ordering::Relaxed);
        Next::done()
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.0.cancelled.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a timer shares, and what its worker has.
struct Timer {
    shared: SharedRef,
    table: WorkerTable<Chunk<Erased>>,
}

fn timer() -> Timer {
    let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
    let (shared, mut table) = Shared::new(time, scale, None, 1);
    table.know(0);
    Timer { shared, table }
}

fn scheduled(timer: &Timer, ends: &Arc<Ends>, repeats: bool) -> Timeout {
    let admit = if repeats { Admit::Series } else { Admit::Once };
    let scheduled = schedule(&Link::to(&timer.shared), Counted(ends.clone()), 8, admit);
    scheduled.map_err(|error| error.reason()).expect("it is open and empty")
}

/// A slot of the first chunk. The models need no other.
fn with_slot<R>(timer: &Timer, offset: usize, f: impl FnOnce(&Slot<Erased>) -> R) -> R {
    f(timer.table.get(0).expect("it is made with the first timeout").slot(offset))
}

/// Claims the timeouts that are due, as the worker does. Returns them as jobs.
fn due(timer: &Timer) -> Vec<Job> {
    let chunk = timer.table.get(0).expect("it is made with the first timeout");
    let mut jobs = Vec::new();
    for offset in 0..2 {
        let slot = chunk.slot(offset);
        let Some((_, version)) = slot.file() else { continue };
        if let Claim::Due((claimed, runner)) = chunk.claim(offset, version, 16) {
            timer.shared.counts.by_worker.expired.add(1);
            jobs.push(Job::new(claimed.payload, runner));
        }
    }
    jobs
}

/// Asserts that each of `count` timeouts has ended once, by its task's count and by the timer's, and
/// that all slots are Free again.
fn accounted_for(timer: &Timer, ends: &Ends, count: usize) {
    let [run, cancelled] = [&ends.run, &ends.cancelled].map(|n| n.load(Ordering::Relaxed));
    assert_eq!(run + cancelled, count);
    let counts = timer.shared.counts.snapshot();
    assert_eq!((counts.expired, counts.cancelled), (run as u64, cancelled as u64), "{counts:?}");
    assert_eq!(counts.pending, 0);
    (0..2)
        .for_each(|offset| with_slot(timer, offset, |slot| assert_eq!(slot.phase(), Phase::Free)));
}

/// An executor with room for one job is offered two, while its thread takes one out and the first timeout
/// is cancelled. Each task runs once, or its cancelled callback runs once. Each slot is free in the end.
fn a_refused_job_ends_once(on_refusal: &OnRefusal) {
    let (timer, ends) = (timer(), Arc::new(Ends::default()));
    let (first, second) = (scheduled(&timer, &ends, true), scheduled(&timer, &ends, true));
    let queue = Arc::new(ArrayQueue::new(1));
    let taker = {
        let queue = queue.clone();
        spawn(move || queue.pop().into_iter().for_each(Job::run))
    };
    let canceller = spawn(move || first.cancel());
    let jobs = due(&timer);
    let executor = {
        let queue = queue.clone();
        move |job| queue.push(job)
    };
    let dispatch = Dispatch { executor: Arc::new(executor), on_refusal: on_refusal.clone() };
    // The timer stops after one more offer.
    let offers = Cell::new(0);
    let stopping = || offers.replace(offers.get() + 1) > 0;
    jobs.into_iter().for_each(|job| dispatch.hand(job, &timer.shared.counts.worker, stopping));
    taker.join().unwrap();
    std::iter::from_fn(|| queue.pop()).for_each(Job::run);
    let won = canceller.join().unwrap();
    drop(second);
    accounted_for(&timer, &ends, 2);
    // The cancel fails only if the first run had ended before it: there is no further run to stop.
    assert!(won || ends.run.load(Ordering::Relaxed) == 2);
}

#[test]
fn rule_01_a_refused_job_that_runs_on_the_worker_ends_once() {
    check(|| a_refused_job_ends_once(&OnRefusal::RunOnWorker));
}

#[test]
fn rule_01_a_refused_job_that_is_offered_again_ends_once() {
    check(|| a_refused_job_ends_once(&OnRefusal::Wait));
}

/// An executor drops a job while its timeout is cancelled. The task's cancelled callback runs once.
#[test]
fn rule_01_a_dropped_job_ends_once() {
    for repeats in [false, true] {
        check(move || {
            let (timer, ends) = (timer(), Arc::new(Ends::default()));
            let timeout = scheduled(&timer, &ends, repeats);
            let canceller = spawn(move || timeout.cancel());
            drop(due(&timer));
            canceller.join().unwrap();
            accounted_for(&timer, &ends, 1);
            assert_eq!(ends.run.load(Ordering::Relaxed), 0);
        });
    }
}

/// Two threads share a handle. One of them sees the end, drops the handle and schedules again, while the
/// other uses the handle. The new timeout gets the same slot only if the other thread has dropped the
/// handle too. So the other thread never affects the new timeout.
fn a_late_use_does_not_affect_the_next_timeout(act: fn(&Timeout)) {
    check(move || {
        let (timer, ends) = (timer(), Arc::new(Ends::default()));
        let timeout = scheduled(&timer, &ends, false);
        due(&timer).into_iter().for_each(Job::run);
        let timeout = Arc::new(timeout);
        let other = {
            let timeout = timeout.clone();
            spawn(move || act(&timeout))
        };
        assert!(timeout.is_expired());
        drop(timeout);
        let next = scheduled(&timer, &ends, false);
        other.join().unwrap();
        assert!(next.cancel());
        drop(next);
        accounted_for(&timer, &ends, 2);
    });
}

#[test]
fn rule_01_a_late_query_does_not_affect_the_next_timeout() {
    a_late_use_does_not_affect_the_next_timeout(|timeout| assert!(timeout.is_expired()));
}

#[test]
fn rule_01_a_late_clone_does_not_affect_the_next_timeout() {
    a_late_use_does_not_affect_the_next_timeout(|timeout| assert!(timeout.clone().is_expired()));
}

#[test]
fn rule_01_a_late_cancel_does_not_affect_the_next_timeout() {
    a_late_use_does_not_affect_the_next_timeout(|timeout| assert!(!timeout.cancel()));
}

#[test]
fn rule_01_a_late_reschedule_does_not_affect_the_next_timeout() {
    a_late_use_does_not_affect_the_next_timeout(|timeout| {
        assert!(timeout.reschedule_at(timeout.gate().time.instant_at(16)).is_err());
    });
}

/// Two threads share one handle while the timeout expires. One cancels it and one reads its state.
/// The timeout has one end, and the handle removes its pin once.
#[test]
fn a_shared_handle_unpins_once() {
    check(|| {
        let (timer, ends) = (timer(), Arc::new(Ends::default()));
        let timeout = scheduled(&timer, &ends, false);
        let timeout = Arc::new(timeout);
        let canceller = {
            let timeout = timeout.clone();
            spawn(move || timeout.cancel())
        };
        let observer = {
            let timeout = timeout.clone();
            spawn(move || (timeout.is_expired(), timeout.is_cancelled()))
        };
        due(&timer).into_iter().for_each(Job::run);
        let won = canceller.join().unwrap();
        let (expired, cancelled) = observer.join().unwrap();
        assert!(!(expired && won) && !(cancelled && !won));
        assert_eq!((timeout.is_cancelled(), timeout.is_expired()), (won, !won));
        drop(timeout);
        accounted_for(&timer, &ends, 1);
    });
}

/// All handles are dropped while the timeout expires. It runs, and its slot is free afterwards.
#[test]
fn dropped_handles_detach_the_timeout() {
    check(|| {
        let (timer, ends) = (timer(), Arc::new(Ends::default()));
        let timeout = scheduled(&timer, &ends, false);
        let copies = [timeout.clone(), timeout];
        let droppers = copies.map(|copy| spawn(move || drop(copy)));
        due(&timer).into_iter().for_each(Job::run);
        droppers.into_iter().for_each(|dropper| dropper.join().unwrap());
        assert_eq!(ends.run.load(Ordering::Relaxed), 1);
        accounted_for(&timer, &ends, 1);
    });
}
