//! What the manager does not let one see or time: who shares memory, and what happens between two
//! locks.

use super::super::policy::Scale;
use super::*;
use std::num::NonZeroU64;

fn at(now: u64) -> Terms {
    Terms { now, scale: Scale::ONE }
}

/// Connections 0 to `n` in the seats of these numbers, silent since 1 and idle at 11.
fn watching(n: u32) -> (Roster<u32>, Vec<Seat>) {
    let mut roster = Roster::new(Instant::now(), TickScale::new(NonZeroU64::MIN));
    let policy = IdlePolicy::new().all(Duration::from_nanos(10));
    let enter = |n| roster.enter(n, policy.clone(), at(1), || Arc::new(Nowhere)).unwrap();
    let seats = (0..n).map(enter).collect();
    (roster, seats)
}

fn pulse_of(seat: &Seat) -> &Pulse {
    seat.block.pulse(seat.number)
}

#[test]
fn neighbours_share_a_block() {
    let (roster, seats) = watching(BLOCK as u32 + 1);
    let shares_the_first = |seat: &Seat| Arc::ptr_eq(&seat.block, &seats[0].block);
    assert_eq!(seats.iter().filter(|seat| shares_the_first(seat)).count(), BLOCK);
    assert_eq!(roster.blocks.len(), 2);
}

#[test]
fn of_the_equally_silent_the_first_seats_are_named_and_no_more_than_asked_for() {
    let (mut roster, _seats) = watching(5);
    assert_eq!(roster.silent_longest(2).into_sorted_vec(), [(1, 0), (1, 1)]);
}

#[test]
fn who_is_active_or_paused_since_being_named_is_not_shed() {
    let (mut roster, seats) = watching(3);
    pulse_of(&seats[0]).touch(2);
    pulse_of(&seats[1]).pause();
    assert_eq!([0, 1, 2].map(|number| roster.shed(number, 1)), [None, None, Some(2)]);
}

#[test]
fn a_report_is_forgotten_after_activity() {
    let (mut roster, seats) = watching(1);
    let idle = roster.take_idle(at(11), false);
    assert!(roster.put_back(idle, at(11)).again.is_empty());
    assert_eq!(roster.reported.len(), 1);
    pulse_of(&seats[0]).touch(15);
    assert!(roster.take_idle(at(21), false).is_empty());
    assert!(roster.reported.is_empty());
}
