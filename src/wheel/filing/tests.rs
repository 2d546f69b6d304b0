use super::*;
use crate::wheel::Hashed;
use crate::wheel::is_sweep_worth_it;

fn token(index: u32) -> Token {
    Token { index, version: 0 }
}

/// Tokens under these ticks, numbered from 0.
fn filled(ticks: &[u64]) -> Filing<Hashed> {
    let mut filing = Filing::new(Hashed::new(8).unwrap());
    (0..).zip(ticks).for_each(|(index, &tick)| filing.insert(tick, token(index)));
    filing
}

fn popped(filing: &mut Filing<Hashed>, now: u64) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| filing.pop(now)).map(|due| (due.tick, due.token.index)).collect()
}

#[test]
fn rule_07_a_pass_that_stops_in_a_tick_continues_in_the_order_of_ticks() {
    let mut filing = filled(&[4, 4, 12, 5]);
    assert_eq!(filing.pop(20), Some(Due { tick: 4, token: token(0) }));
    assert_eq!(filing.next_expiry(), Some(4));
    filing.insert(30, token(9));
    assert_eq!(popped(&mut filing, 25), [(4, 1), (5, 3), (12, 2)]);
    assert_eq!((filing.current_tick(), filing.next_expiry()), (26, Some(30)));
}

#[test]
fn a_token_that_is_due_later_comes_in_that_tick() {
    let mut filing = filled(&[4, 4, 6]);
    let mut met = Vec::new();
    while let Some(Due { tick, token }) = filing.pop(7) {
        match (tick, token.index) {
            (4, 0) => filing.insert_in_pass(7, token, 7),
            (4, 1) => filing.insert_in_pass(9, token, 7),
            _ => met.push((tick, token.index)),
        }
    }
    assert_eq!(met, [(6, 2), (7, 0)]);
    assert_eq!(filing.next_expiry(), Some(9));
    assert_eq!(popped(&mut filing, 9), [(9, 1)]);
    assert_eq!(filing.entries, 0);
}

#[test]
fn rule_04_a_sweep_is_worth_it_if_it_can_drop_more_entries_than_are_live_or_allowed() {
    let mut filing = filled(&[100; 28]);
    assert!(!is_sweep_worth_it(filing.entries(), 10, 8), "18 are dead");
    assert!(is_sweep_worth_it(filing.entries(), 9, 8), "19 are dead, 9 live, 8 allowed");
    while !filing.sweep(3, |token| token.index < 9) {}
    assert_eq!(filing.entries, 9);
    assert!(!is_sweep_worth_it(filing.entries(), 1, 8), "8 are dead");
}

#[test]
fn confirming_forgets_the_dead_entries_that_it_meets() {
    let mut filing = filled(&[4, 5, 6]);
    let next = filing.confirm_next(u64::MAX, usize::MAX, |due| match due.tick {
        4 => Standing::Dead,
        5 => Standing::Later(7),
        _ => Standing::Due,
    });
    assert_eq!(next, NextLive::At(Due { tick: 6, token: token(2) }));
    assert_eq!(popped(&mut filing, 10), [(6, 2), (7, 1)]);
    assert_eq!(filing.entries, 0);
}
