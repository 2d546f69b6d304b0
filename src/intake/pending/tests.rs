use super::*;

fn drained(pending: &Pending) -> Vec<usize> {
    let mut drained = Vec::new();
    pending.take_all(|chunk| drained.push(chunk));
    drained
}

/// The worker may raise `announced` between two announcements, if a look has found a later timeout.
#[test]
fn rule_02_a_later_wish_does_not_replace_a_sooner_one() {
    let promise = Promise::new();
    assert!(promise.lower_announced(100));
    promise.want(100);
    promise.set(500);
    assert!(promise.lower_announced(300));
    promise.want(300);
    assert_eq!((promise.take_wanted(), promise.take_wanted()), (100, NEVER));
}

#[test]
fn only_a_sooner_deadline_is_announced() {
    let promise = Promise::new();
    let announced =
        [NEVER, 100, 100, 101, 99, 99].map(|deadline| promise.lower_announced(deadline));
    assert_eq!(announced, [false, true, false, false, true, false]);
}

#[test]
fn rule_02_each_pushed_chunk_comes_out_once() {
    let pending = Pending::new();
    assert!(drained(&pending).is_empty());
    let chunks = [0, 1, 63, 64, 4095, 4096, 5000, 1 << 20];
    chunks.iter().rev().chain(&chunks).for_each(|&chunk| pending.push(chunk));
    assert!(drained(&pending).into_iter().eq(chunks.iter().map(|&chunk| chunk as usize)));
    assert!(drained(&pending).is_empty());
    pending.push(64);
    assert_eq!(drained(&pending), [64]);
}

/// The worker relies on it before it sleeps, and on an end of each drain.
#[test]
fn rule_09_a_drain_takes_all_that_was_there_and_ends() {
    let pending = Pending::new();
    (0..300).for_each(|chunk| pending.push(chunk));
    let mut taken = Vec::new();
    pending.take_all(|chunk| {
        pending.push(7);
        taken.push(chunk);
    });
    assert!(taken.into_iter().eq(0..300));
    assert_eq!(drained(&pending), [7]);
}
