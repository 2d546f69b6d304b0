//! Loom models of a shard: every pair of operations that can race, and conservation afterwards.

use super::{Cancel, Claim, Phase, Shard};
use crate::base::sync::Arc;
use loom::thread;

fn file(shard: &Shard<u32>, deadline: u64) -> Option<u32> {
    let admitted = shard.lock().admit(7, |payload| payload, deadline, false);
    admitted.ok().map(|(index, _)| index)
}

/// Takes the queue and claims its records at time `now`, as the worker does. Returns the number of
/// runs.
fn expire(shard: &Shard<u32>, now: u64) -> usize {
    let mut queued = Vec::new();
    shard.lock().take(usize::MAX, &mut queued);
    let mut ran = 0;
    for record in queued.iter().filter(|record| !record.is_dead()) {
        let mut state = shard.lock();
        if let Claim::Due(_) = state.claim(record.index, record.version, now) {
            ran += 1;
            state.finish(record.index);
            state.unpin(record.index);
        }
    }
    ran
}

fn cancel(shard: &Shard<u32>, index: u32) -> usize {
    usize::from(matches!(shard.lock().cancel(index), Cancel::Won(..)))
}

fn close(shard: &Shard<u32>) -> usize {
    let mut returned = 0;
    let mut state = shard.lock();
    state.close();
    state.empty_into(Phase::Returned, |_, _, _| returned += 1);
    returned
}

/// Two cancels, the transfer and the expiry race: the timeout has one end.
#[test]
fn cancel_against_transfer_and_expiry() {
    crate::base::sync::check(|| {
        let shard = Arc::new(Shard::new(0, 1));
        let index = file(&shard, 5).unwrap();
        let cancels = [(); 2].map(|()| {
            let shard = shard.clone();
            thread::spawn(move || cancel(&shard, index))
        });
        let ran = expire(&shard, 9);
        let cancelled: usize = cancels.map(|c| c.join().unwrap()).iter().sum();
        assert_eq!(ran + cancelled, 1);
        assert_eq!(shard.lock().live(), 0);
    });
}

/// Admission against close: a timeout is refused or returned.
#[test]
fn admission_against_close() {
    crate::base::sync::check(|| {
        let shard = Arc::new(Shard::new(0, 1));
        let producers = [(); 2].map(|()| {
            let shard = shard.clone();
            thread::spawn(move || usize::from(file(&shard, 5).is_some()))
        });
        let returned = close(&shard);
        let admitted: usize = producers.map(|p| p.join().unwrap()).iter().sum();
        assert_eq!(returned, admitted);
        assert_eq!(shard.lock().live(), 0);
    });
}

/// A reschedule against the expiry, with a close after both: the timeout runs, or it is moved and
/// returned.
#[test]
fn reschedule_against_expiry() {
    crate::base::sync::check(|| {
        let shard = Arc::new(Shard::new(0, 1));
        let index = file(&shard, 5).unwrap();
        let other = shard.clone();
        let mover = thread::spawn(move || other.lock().reschedule(index, 50).is_ok());
        let ran = expire(&shard, 9);
        let moved = mover.join().unwrap();
        assert_eq!(ran, usize::from(!moved));
        assert_eq!(ran + close(&shard), 1);
    });
}

/// A timeout is pulled forward while its old record is transferred and comes up. It runs once, by
/// the old record or the new one. If its new deadline is after the present, it is returned.
#[test]
fn pulling_forward_against_transfer_and_expiry() {
    for deadline in [3, 30] {
        crate::base::sync::check(move || {
            let shard = Arc::new(Shard::new(0, 1));
            let index = file(&shard, 50).unwrap();
            let other = shard.clone();
            let mover = thread::spawn(move || other.lock().reschedule(index, deadline).is_ok());
            let early = expire(&shard, 9);
            assert!(mover.join().unwrap(), "nothing had ended it");
            let ran = early + expire(&shard, 9);
            assert_eq!(ran, usize::from(deadline <= 9));
            assert_eq!(ran + close(&shard), 1);
        });
    }
}

/// The version check. The worker holds a record of a timeout that is cancelled meanwhile, and its
/// slot is used again at once. The old record claims nothing; the new record claims the new
/// timeout.
#[test]
fn a_record_of_a_slots_former_user_finds_nothing() {
    crate::base::sync::check(|| {
        let shard = Arc::new(Shard::new(0, 1));
        let old = file(&shard, 5).unwrap();
        let mut in_hand = Vec::new();
        shard.lock().take(usize::MAX, &mut in_hand);
        let other = shard.clone();
        let replacer = thread::spawn(move || {
            let won = cancel(&other, old);
            if won == 0 {
                other.lock().unpin(old); // the handle is dropped
            }
            (won, file(&other, 6).unwrap())
        });
        let mut ran = 0;
        for record in &in_hand {
            let mut state = shard.lock();
            if let Claim::Due(claimed) = state.claim(record.index, record.version, 9) {
                assert_eq!(claimed.deadline, 5, "of the former user, not of the new one");
                ran += 1;
                state.finish(record.index);
                state.unpin(record.index);
            }
        }
        let (won, new) = replacer.join().unwrap();
        assert_eq!(ran + won, 1);
        assert_eq!(shard.lock().phase(new), Phase::Armed);
        assert_eq!(expire(&shard, 9), 1, "the new one, once");
    });
}

/// A slot is not used again while a handle pins it, so an old handle cannot cancel another.
#[test]
fn a_pinned_slot_is_not_used_again() {
    crate::base::sync::check(|| {
        let shard = Arc::new(Shard::new(0, 1));
        let old = file(&shard, 5).unwrap();
        let other = shard.clone();
        let late = thread::spawn(move || {
            let won = cancel(&other, old);
            if won == 0 {
                other.lock().unpin(old); // the handle is dropped
            }
            won
        });
        let ran = expire(&shard, 9);
        let new = file(&shard, 50).unwrap();
        assert_eq!(ran + late.join().unwrap(), 1);
        assert_eq!(shard.lock().phase(new), Phase::Armed, "the new one is untouched");
    });
}

/// Begins a run, as the worker and an executor do. Returns its slot.
fn begin_run(shard: &Shard<u32>, now: u64) -> Option<u32> {
    let mut queued = Vec::new();
    shard.lock().take(usize::MAX, &mut queued);
    let record = queued.iter().find(|record| !record.is_dead())?;
    let claim = shard.lock().claim(record.index, record.version, now);
    matches!(claim, Claim::Due(_)).then_some(record.index)
}

/// Ends a run, as a job does; true if the timeout goes on.
fn go_on(shard: &Shard<u32>, index: u32) -> bool {
    let mut state = shard.lock();
    let record = state.go_on(index, 7, 50);
    let goes_on = record.map(|record| state.queue(record)).is_ok();
    if !goes_on {
        state.finish(index);
    }
    state.unpin(index);
    goes_on
}

/// A cancel against a run after which the timeout would go on. It goes on and is cancelled then, or
/// it does not go on.
#[test]
fn cancel_against_a_run_that_goes_on() {
    crate::base::sync::check(|| {
        let shard = Arc::new(Shard::new(0, 1));
        let index = file(&shard, 5).unwrap();
        let other = shard.clone();
        let canceller = thread::spawn(move || {
            let cancel = other.lock().cancel(index);
            (matches!(cancel, Cancel::Won(..)), matches!(cancel, Cancel::Denied(_)))
        });
        let run = begin_run(&shard, 9);
        let goes_on = run.is_some_and(|index| go_on(&shard, index));
        let (won, denied) = canceller.join().unwrap();
        assert!(!(denied && goes_on), "a cancel that finds it running keeps it from going on");
        let ended = usize::from(run.is_some() && !goes_on);
        assert_eq!(ended + usize::from(won) + close(&shard), 1);
    });
}

/// A close against a run after which the timeout would go on. It goes on and is returned, or it
/// ends.
#[test]
fn close_against_a_run_that_goes_on() {
    crate::base::sync::check(|| {
        let shard = Arc::new(Shard::new(0, 1));
        file(&shard, 5).unwrap();
        let index = begin_run(&shard, 9).unwrap();
        let other = shard.clone();
        let runner = thread::spawn(move || go_on(&other, index));
        let returned = close(&shard);
        assert_eq!(returned, usize::from(runner.join().unwrap()));
        assert_eq!(shard.lock().live(), 0);
    });
}
