//! Loom models of several parts together: handles, jobs, and an executor that refuses.

use crate::base::sync::{Arc, ArrayQueue};
use crate::executor::{Dispatch, Job, OnRefusal};
use crate::shard::context::Context;
use crate::shard::{Claim, Phase, Shard};
use crate::time::Timebase;
use crate::time::tick::TickScale;
use crate::timeout::{BoxedTask, Held, Hold, Next, Run, Timeout, TimerShard, TimerTask};
use loom::thread;
use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of tasks in a model that have run, and that were told of a cancel.
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

fn shard() -> Arc<TimerShard> {
    let scale = TickScale::new(NonZeroU64::MIN);
    let context = Arc::new(Context::new(Timebase::starting_now(None), scale, None));
    Arc::new(TimerShard { shard: Shard::new(0, 1), context })
}

fn schedule(shard: &Arc<TimerShard>, ends: &Arc<Ends>, repeats: bool) -> (Timeout, u32) {
    let task = Box::new(Held::hold(Counted(ends.clone())));
    let admitted = shard.lock().admit(task, |task| task as BoxedTask, 5, repeats);
    let (index, _) = admitted.map_err(|_| "it is open and empty").unwrap();
    (Timeout::pinned(shard.clone(), index), index)
}

/// Claims the due timeouts in the queue, as the worker does. Returns them as jobs.
fn due(shard: &Arc<TimerShard>) -> Vec<Job> {
    let mut queued = Vec::new();
    shard.lock().take(usize::MAX, &mut queued);
    let mut jobs = Vec::new();
    for record in queued.iter().filter(|record| !record.is_dead()) {
        let claim = shard.lock().claim(record.index, record.version, 9);
        if let Claim::Due(claimed) = claim {
            let timeout = Timeout::pinned(shard.clone(), record.index);
            jobs.push(Job::new(claimed.payload, timeout));
        }
    }
    jobs
}

/// Asserts that each of `count` timeouts has ended once, by its task's count and by the shard's.
fn accounted_for(shard: &TimerShard, ends: &Ends, count: usize) {
    let [run, cancelled] = [&ends.run, &ends.cancelled].map(|n| n.load(Ordering::Relaxed));
    assert_eq!(run + cancelled, count);
    let state = shard.lock();
    let counts = state.counts();
    assert_eq!((counts.expired, counts.cancelled), (run as u64, cancelled as u64), "{counts:?}");
    assert_eq!(state.live(), 0);
}

/// Two jobs for an executor with room for one, while its thread takes one out and the first timeout
/// is cancelled. Each task runs or is told of the cancel, once, and each slot is free in the end.
fn a_refused_job_ends_once(on_refusal: &OnRefusal) {
    let (shard, ends) = (shard(), Arc::new(Ends::default()));
    let (first, a) = schedule(&shard, &ends, true);
    let (second, b) = schedule(&shard, &ends, true);
    let queue = Arc::new(ArrayQueue::new(1));
    let taker = {
        let queue = queue.clone();
        thread::spawn(move || queue.pop().into_iter().for_each(Job::run))
    };
    let canceller = thread::spawn(move || first.cancel());
    let jobs = due(&shard);
    let executor = {
        let queue = queue.clone();
        move |job| queue.push(job)
    };
    let dispatch = Dispatch { executor: Arc::new(executor), on_refusal: on_refusal.clone() };
    // The timer stops after one more offer.
    let offers = Cell::new(0);
    let stopping = || offers.replace(offers.get() + 1) > 0;
    jobs.into_iter().for_each(|job| dispatch.hand(job, &shard.context.metrics, stopping));
    taker.join().unwrap();
    std::iter::from_fn(|| queue.pop()).for_each(Job::run);
    let won = canceller.join().unwrap();
    drop(second);
    accounted_for(&shard, &ends, 2);
    // The cancel fails only if the first run had ended before it: there is no further run to stop.
    assert!(won || ends.run.load(Ordering::Relaxed) == 2);
    let state = shard.lock();
    assert_eq!((state.phase(a), state.phase(b)), (Phase::Free, Phase::Free));
}

#[test]
fn a_refused_job_that_runs_on_the_worker_ends_once() {
    crate::base::sync::check(|| a_refused_job_ends_once(&OnRefusal::RunOnWorker));
}

#[test]
fn a_refused_job_that_is_offered_again_ends_once() {
    crate::base::sync::check(|| a_refused_job_ends_once(&OnRefusal::Wait));
}

/// An executor drops a job while its timeout is cancelled. The task is told of the cancel once.
#[test]
fn a_dropped_job_ends_once() {
    for repeats in [false, true] {
        crate::base::sync::check(move || {
            let (shard, ends) = (shard(), Arc::new(Ends::default()));
            let (timeout, index) = schedule(&shard, &ends, repeats);
            let canceller = thread::spawn(move || timeout.cancel());
            drop(due(&shard));
            canceller.join().unwrap();
            accounted_for(&shard, &ends, 1);
            assert_eq!(ends.run.load(Ordering::Relaxed), 0);
            assert_eq!(shard.lock().phase(index), Phase::Free);
        });
    }
}

/// Two threads use one handle. One of them sees the end, and the slot is used again while the other
/// thread uses the handle. The other thread never affects the new timeout.
fn a_handle_leaves_the_next_timeout_alone(look: fn(&Timeout)) {
    crate::base::sync::check(move || {
        let (shard, ends) = (shard(), Arc::new(Ends::default()));
        let (timeout, _) = schedule(&shard, &ends, false);
        due(&shard).into_iter().for_each(Job::run);
        let timeout = Arc::new(timeout);
        let other = {
            let timeout = timeout.clone();
            thread::spawn(move || look(&timeout))
        };
        assert!(timeout.is_expired());
        let (next, index) = schedule(&shard, &ends, false);
        other.join().unwrap();
        assert!(next.cancel());
        drop(next);
        accounted_for(&shard, &ends, 2);
        assert_eq!(shard.lock().phase(index), Phase::Free);
    });
}

#[test]
fn a_late_look_leaves_the_next_timeout_alone() {
    a_handle_leaves_the_next_timeout_alone(|timeout| assert!(timeout.is_expired()));
}

#[test]
fn a_late_clone_leaves_the_next_timeout_alone() {
    a_handle_leaves_the_next_timeout_alone(|timeout| assert!(timeout.clone().is_expired()));
}

#[test]
fn a_late_cancel_leaves_the_next_timeout_alone() {
    a_handle_leaves_the_next_timeout_alone(|timeout| assert!(!timeout.cancel()));
}

#[test]
fn a_late_reschedule_leaves_the_next_timeout_alone() {
    a_handle_leaves_the_next_timeout_alone(|timeout| {
        assert!(timeout.reschedule_at(timeout.context().time.instant_at(7)).is_err());
    });
}

/// Two threads share one handle while the timeout expires. One cancels it and one reads its state.
/// The timeout has one end, and the handle removes its pin once.
#[test]
fn a_shared_handle_lets_go_once() {
    crate::base::sync::check(|| {
        let (shard, ends) = (shard(), Arc::new(Ends::default()));
        let (timeout, index) = schedule(&shard, &ends, false);
        let timeout = Arc::new(timeout);
        let canceller = {
            let timeout = timeout.clone();
            thread::spawn(move || timeout.cancel())
        };
        let observer = {
            let timeout = timeout.clone();
            thread::spawn(move || (timeout.is_expired(), timeout.is_cancelled()))
        };
        due(&shard).into_iter().for_each(Job::run);
        let won = canceller.join().unwrap();
        let (expired, cancelled) = observer.join().unwrap();
        assert!(!(expired && won) && !(cancelled && !won));
        assert_eq!((timeout.is_cancelled(), timeout.is_expired()), (won, !won));
        drop(timeout);
        accounted_for(&shard, &ends, 1);
        assert_eq!(shard.lock().phase(index), Phase::Free);
    });
}

/// All handles are dropped while the timeout expires. It runs, and its slot is free afterwards.
#[test]
fn dropped_handles_detach_the_timeout() {
    crate::base::sync::check(|| {
        let (shard, ends) = (shard(), Arc::new(Ends::default()));
        let (timeout, index) = schedule(&shard, &ends, false);
        let copies = [timeout.clone(), timeout];
        let droppers = copies.map(|copy| thread::spawn(move || drop(copy)));
        due(&shard).into_iter().for_each(Job::run);
        droppers.into_iter().for_each(|dropper| dropper.join().unwrap());
        assert_eq!(ends.run.load(Ordering::Relaxed), 1);
        accounted_for(&shard, &ends, 1);
        assert_eq!(shard.lock().phase(index), Phase::Free);
    });
}
