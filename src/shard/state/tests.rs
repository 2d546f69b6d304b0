//! A shard's decisions on one thread, one after the other. The races are in `shard/model.rs`.

use super::*;
use crate::shard::dead::DEAD_ALLOWED;

fn state() -> State<()> {
    State::new(1 << 20, 1)
}

fn admit(state: &mut State<()>, deadline: u64) -> u32 {
    state.admit((), |()| (), deadline, false).unwrap().0
}

fn cancel_all(state: &mut State<()>, indices: &[u32]) {
    indices.iter().for_each(|&index| assert!(matches!(state.cancel(index), Cancel::Won(..))));
}

/// Takes the whole queue, as the worker does. Returns the last record.
fn take(state: &mut State<()>) -> Record {
    let mut taken = Vec::new();
    state.take(usize::MAX, &mut taken);
    *taken.last().unwrap()
}

#[test]
fn a_sweep_that_cancels_outrun_is_asked_for_again() {
    let mut state = state();
    let all: Vec<u32> = (0..100_000).map(|n| admit(&mut state, n)).collect();
    take(&mut state);
    let (first, rest) = all.split_at(60_000);
    cancel_all(&mut state, first);
    assert!(state.sweep_wanted());
    state.begin_sweep();
    cancel_all(&mut state, rest);
    assert!(state.end_sweep() && state.sweep_wanted(), "40,000 dead ones are left");
    state.begin_sweep();
    assert!(!state.end_sweep() && !state.sweep_wanted());
}

#[test]
fn dead_entries_that_a_sweep_dropped_do_not_count() {
    let mut state = state();
    let all: Vec<u32> = (0..10_000).map(|n| admit(&mut state, n)).collect();
    let mut records = Vec::new();
    state.take(usize::MAX, &mut records);
    cancel_all(&mut state, &all[..4000]);
    assert!(!records[..4000].iter().any(|record| state.stands(record.index, record.version)));
    cancel_all(&mut state, &all[4000..8000]);
    assert!(!state.sweep_wanted(), "4,000 are dead, and 2,000 alive");
}

/// Lets a slot's version wrap, so that a dead record matches the slot's next timeout, whose own
/// record is still in the queue. Then runs that timeout by the dead record.
fn run_by_a_wrapped_version(state: &mut State<()>) {
    let mut dead = None;
    for _ in 0..4096 {
        let index = admit(state, 9);
        let record = take(state);
        dead.get_or_insert(record);
        assert!(matches!(state.cancel(index), Cancel::Won(..)));
    }
    let Record { index, version, .. } = dead.unwrap();
    let next = admit(state, 5);
    state.unpin(next);
    assert!(matches!(state.claim(index, version, 9), Claim::Due(_)), "another slot");
    state.finish(index);
    state.unpin(index);
}

#[test]
fn a_version_that_wraps_spoils_no_free_slot() {
    let mut state = state();
    let kept = admit(&mut state, 1);
    run_by_a_wrapped_version(&mut state);
    assert_eq!(state.queued(), 0, "the record of the one that ran is gone with it");
    let more: Vec<u32> = (0..3000).map(|_| admit(&mut state, 9)).collect();
    cancel_all(&mut state, &more[..2999]); // the queue compacts
    for _ in 0..3000 {
        assert_ne!(admit(&mut state, 9), kept, "a slot in use");
    }
}

#[test]
fn what_finds_no_slot_comes_back_and_is_counted() {
    let mut state = State::new(1, 1);
    assert!(state.admit(7, |payload| payload, 5, false).is_ok());
    let refused = state.admit(8, |payload| payload, 5, false);
    assert_eq!(refused.map(drop), Err((Refusal::Full, 8)));
    assert_eq!((state.counts().rejected, state.live()), (1, 1));
}

#[test]
fn the_last_pin_of_an_ended_one_frees_its_slot() {
    let mut state = state();
    let index = admit(&mut state, 5);
    state.pin(index);
    cancel_all(&mut state, &[index]); // removes one pin
    assert_ne!(admit(&mut state, 5), index);
    state.unpin(index);
    assert_eq!(admit(&mut state, 5), index);
}

/// A returned timeout that nobody collects counts as cancelled.
#[test]
fn what_is_not_collected_is_counted_once() {
    let mut state = state();
    let index = admit(&mut state, 5);
    state.close();
    state.empty_into(Phase::Returned, |_, _, ()| ());
    state.unreturn(index);
    let Counts { returned, cancelled, .. } = state.counts();
    assert_eq!((returned, cancelled, state.phase(index)), (0, 1, Phase::Cancelled));
}

#[test]
fn what_is_emptied_is_counted_by_its_end() {
    for end in [Phase::Cancelled, Phase::Returned] {
        let mut state = state();
        (0..5).for_each(|n| _ = admit(&mut state, n));
        state.close();
        state.empty_into(end, |_, _, ()| ());
        let Counts { returned, cancelled, .. } = state.counts();
        let expected = if end == Phase::Returned { (5, 0) } else { (0, 5) };
        assert_eq!(((returned, cancelled), state.live()), (expected, 0));
    }
}

/// The worker may sleep until the former deadline. So a sooner deadline must wake it, and a later
/// one need not. Once the dead records outnumber the live timeouts, the worker must sweep.
#[test]
fn pulling_forward_asks_for_a_sooner_wake_up() {
    let mut state = State::new(2, 1);
    let (index, _) = state.admit((), |()| (), 1 << 40, false).unwrap();
    state.take(usize::MAX, &mut Vec::new());
    assert_eq!(state.reschedule(index, 1 << 40), Ok(Wake::No), "the same");
    assert_eq!(state.reschedule(index, 1 << 41), Ok(Wake::No));
    let mut deadline = 1 << 40;
    let mut sooner = || {
        deadline -= 1;
        let wake = state.reschedule(index, deadline);
        state.take(usize::MAX, &mut Vec::new());
        wake
    };
    for _ in 0..=DEAD_ALLOWED {
        assert_eq!(sooner(), Ok(Wake::ForDeadline));
    }
    assert_eq!(sooner(), Ok(Wake::Now));
    assert_eq!(sooner(), Ok(Wake::ForDeadline), "it has been asked");
}

/// Each queue that grows long wakes the worker once; a later one does so again.
#[test]
fn every_long_queue_asks_for_attention_once() {
    let mut state = State::<()>::new(4 * LONG_QUEUE, 1);
    for _ in 0..2 {
        let mut admit = || state.admit((), |()| (), 5, false).map(|(_, wake)| wake).ok();
        let asks: Vec<_> = (0..LONG_QUEUE + 2).filter_map(|_| admit()).collect();
        let attention = asks.iter().filter(|&&wake| wake == Wake::Now).count();
        assert_eq!((asks.len(), attention), (LONG_QUEUE + 2, 1));
        assert_eq!(asks[LONG_QUEUE - 1], Wake::Now);
        state.take(usize::MAX, &mut Vec::new());
    }
}
