use super::*;
use crate::executor::Job;
use crate::intake::alarm::Woken;
use crate::intake::{Chunk, Claim, Owner, Runs, WorkerTable};
use crate::time::tick::NEVER;
use crate::timeout::payload::{Link, Shared, SharedRef};
use crate::timeout::schedule::{Admit, schedule};
use crate::timeout::{Next, Run, TimerTask, Unprocessed};
use crate::worker::chunks::Chunks;

const DUE: u64 = 1 << 40;

/// A task that may go on after a run, unlike a closure.
struct Again;

impl TimerTask for Again {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        Next::done()
    }
}

/// A timeout whose worker is the calling thread.
fn timeout() -> (SharedRef, Timeout) {
    let (shared, _, timeout) = timeout_and_table();
    (shared, timeout)
}

fn timeout_and_table() -> (SharedRef, WorkerTable<Chunk<Erased>>, Timeout) {
    let (shared, table) = Shared::of_this_thread(None, 8);
    let timeout = schedule(&Link::to(&shared), Again, DUE, Admit::Once);
    (shared, table, timeout.map_err(|error| error.reason()).expect("the task is admitted"))
}

/// The worker may sleep until the previous deadline. So a sooner deadline must wake it. A later one
/// need not.
#[test]
fn rule_02_pulling_forward_wakes_the_worker_and_pushing_back_does_not() {
    let (shared, table, timeout) = timeout_and_table();
    let mut chunks = Chunks::new(table);
    let mut entries = |in_wheel: bool| {
        let mut entries = 0;
        chunks.take_in(&shared, |_, _| entries += 1);
        let id = timeout.pin().chunk().id as usize;
        let mut next = NEVER;
        if let Some(token) = chunks.token(id) {
            chunks.look(token, |_, _, slot, deadline| {
                if !in_wheel || slot.file().is_none() {
                    next = deadline;
                }
            });
            chunks.promise_look(id, next);
        }
        entries
    };
    entries(false);
    let mut asks = |in_wheel: bool, deadline| {
        entries(in_wheel);
        shared.alarm.arm(DUE - 1);
        timeout.reschedule_to(deadline).unwrap();
        (entries(false) > 0, shared.alarm.disarm() != Woken::No)
    };
    for in_wheel in [false, true] {
        assert_eq!(asks(in_wheel, DUE), (false, false), "the same");
        assert_eq!(asks(in_wheel, DUE * 2), (false, false), "in the wheel: {in_wheel}");
        assert_eq!(asks(in_wheel, DUE), (true, false), "the worker wakes before it");
        assert_eq!(asks(in_wheel, DUE / 2), (true, true), "in the wheel: {in_wheel}");
        assert_eq!(asks(in_wheel, DUE), (false, false));
    }
    assert_eq!(shared.counts.snapshot().rescheduled, 10);
}

#[test]
fn rule_04_dead_table_request_one_sweep() {
    let (shared, table, timeout) = timeout_and_table();
    let mut chunks = Chunks::new(table);
    let mut sooner = |n: u64| {
        timeout.reschedule_to(DUE - 8 * n).unwrap();
        chunks.take_in(&shared, |_, _| ());
        assert!(timeout.slot().file().is_some(), "it was Filed and is New again");
    };
    assert!(timeout.slot().file().is_some());
    shared.set_entries(4097);
    (1..1023).for_each(&mut sooner);
    assert!(!shared.sweep.is_made(), "it is not considered yet");
    (1023..1025).for_each(&mut sooner);
    assert!(!shared.sweep.is_made(), "one is live");
    shared.set_entries(4099);
    (1025..2049).for_each(&mut sooner);
    assert!(shared.sweep.is_made() && shared.was_woken());
    (2049..20_000).for_each(&mut sooner);
    assert!(!shared.was_woken(), "the sweep is already requested");
}

/// A returned timeout that no caller collects counts as cancelled.
#[test]
fn rule_01_an_uncollected_timeout_is_counted_once() {
    let (shared, _table, timeout) = timeout_and_table();
    shared.gate.close();
    shared.empty(Phase::Returned, |emptied| drop(Unprocessed(emptied)));
    let counts = || {
        let metrics = shared.counts.snapshot();
        (metrics.returned, metrics.cancelled, metrics.pending)
    };
    assert_eq!(counts(), (1, 0, 0));
    timeout.cancel_returned();
    timeout.cancel_returned();
    assert_eq!((counts(), timeout.is_cancelled()), ((0, 1, 0), true));
}

#[test]
fn rule_01_a_running_timeout_is_withdrawn_or_abandoned_once() {
    for goes_on in [false, true] {
        let (shared, timeout) = timeout();
        let (_, mut version) = timeout.slot().file().unwrap();
        let claim = |version| {
            let claim = timeout.pin().claim(version, DUE);
            let Claim::Due((claimed, runner)) = claim else { panic!("it is due") };
            shared.counts.by_worker.expired.add(1);
            (claimed.payload, runner)
        };
        let (mut task, mut runner) = claim(version);
        if goes_on {
            version = runner.go_on(task, DUE, Phase::Filed).ok().expect("it may");
            assert!(runner.go_on(Erased::new(Again), DUE, Phase::Filed).is_err(), "not its run");
            shared.counts.by_worker.rearmed.add(1);
            (task, runner) = claim(version);
        }
        assert_eq!(timeout.cancel(), goes_on);
        let job = Job::new(task, runner);
        if goes_on {
            job.run()
        } else {
            drop(job)
        } // only a cancel that returned true withdraws it
        assert!(timeout.is_cancelled());
        let metrics = shared.counts.snapshot();
        assert_eq!((metrics.cancelled, metrics.pending), (1, 0));
        assert_eq!(metrics.abandoned, u64::from(!goes_on));
    }
}

/// A worker that unwinds loses its runner.
#[test]
fn rule_01_a_timeout_whose_runner_is_lost_is_cancelled() {
    for keeps_handle in [true, false] {
        let (_shared, timeout) = timeout();
        let (_, version) = timeout.slot().file().unwrap();
        let chunk = timeout.pin().chunk().counted().expect("it is pinned");
        let Claim::Due(claim) = timeout.pin().claim(version, DUE) else { panic!("it is due") };
        let kept = Some(timeout).filter(|_| keeps_handle);
        drop(claim);
        let phase = chunk.slot(0).phase();
        assert_eq!(phase, if keeps_handle { Phase::Cancelled } else { Phase::Free });
        drop(kept);
        assert_eq!(chunk.slot(0).phase(), Phase::Free);
    }
}

/// A cancel has no effect on the run of a task that runs once, so it leaves the phase to the runner.
#[test]
fn rule_01_a_cancel_leaves_a_single_run_alone() {
    let shared = Shared::of_this_thread(None, 8).0;
    let timeout = schedule(&Link::to(&shared), || (), DUE, Admit::Once);
    let timeout = timeout.map_err(|error| error.reason()).expect("the task is admitted");
    let slot = timeout.slot();
    let (_, version) = slot.file().unwrap();
    let claim = timeout.pin().claim(version, DUE);
    let Claim::Due((_, mut runner)) = claim else { panic!("it is due") };
    shared.counts.by_worker.expired.add(1);
    assert!(!timeout.cancel());
    assert_eq!((slot.phase(), runner.withdraw()), (Phase::Running, false));
    runner.finish();
    assert!(timeout.is_expired() && !timeout.is_cancelled() && !timeout.cancel());
    assert_eq!(shared.counts.snapshot().cancelled, 0);
}

/// A cancel on another thread writes to a tally that this thread may write. No count is lost.
#[test]
fn rule_01_cancels_are_counted_on_any_thread() {
    let (shared, first) = timeout();
    let mut owner: Owner<Erased> = Owner::enter(&shared).expect("there is room");
    let more: Vec<Timeout> = (0..99)
        .map(|_| {
            Timeout::from(
                owner.arm(|| Erased::new(|| ()), DUE, Runs::MayGoOn).expect("there is room"),
            )
        })
        .collect();
    assert!(first.cancel() && more[..50].iter().all(Timeout::cancel));
    let cancels = move || more[50..].iter().all(Timeout::cancel);
    assert!(std::thread::spawn(cancels).join().unwrap());
    let metrics = shared.counts.snapshot();
    assert_eq!((metrics.scheduled, metrics.cancelled), (100, 100));
    assert_eq!(metrics.pending, 0);
}
