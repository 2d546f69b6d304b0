//! What is remembered of reports, and which rows are kept.

use super::super::policy::Scale;
use super::*;
use std::num::NonZeroU64;

fn at(now: u64) -> Terms {
    Terms { now, scale: Scale::ONE }
}

/// Connections 0 to `n` in the seats of these numbers, silent since 1 and idle at 11.
fn watching(n: u32) -> (Roster<u32>, Vec<Seat>) {
    let mut roster = Roster::new(Instant::now(), TickScale::new(NonZeroU64::MIN), 0);
    let policy = IdlePolicy::new().all(Duration::from_nanos(10));
    let enter = |n| roster.enter(n, policy.clone(), at(1), || Arc::new(Nowhere)).unwrap();
    let seats = (0..n).map(enter).collect();
    (roster, seats)
}

fn idle(roster: &mut Roster<u32>, now: u64) -> Vec<Idle<u32>> {
    let mut idle = Vec::new();
    roster.take_idle(at(now), &mut Vec::new(), &mut idle);
    idle
}

fn report(roster: &mut Roster<u32>, now: u64) {
    let mut returned = Returned::new();
    let idle = idle(roster, now);
    idle.into_iter().for_each(|idle| roster.put_back(idle, at(now), &mut returned));
    assert!(returned.again.is_empty() && returned.dismissed.is_empty());
}

fn remembered(roster: &Roster<u32>) -> Vec<u32> {
    let reports = |number: &u32| roster.rows[0].as_ref().unwrap().reports.of(*number).is_some();
    (0..BLOCK as u32).filter(reports).collect()
}

fn has_memory(roster: &Roster<u32>) -> bool {
    roster.rows[0].as_ref().is_some_and(|row| row.reports.by_seat.is_some())
}

#[test]
fn a_report_is_forgotten_after_activity() {
    let (mut roster, seats) = watching(2);
    report(&mut roster, 11);
    assert_eq!(remembered(&roster), [0, 1]);
    seats[0].block.pulse(0).touch(15);
    report(&mut roster, 21);
    assert_eq!(remembered(&roster), [1]);
    seats[1].block.pulse(1).touch(25);
    assert!(idle(&mut roster, 31).len() == 1 && remembered(&roster).is_empty());
    assert!(!has_memory(&roster));
}

/// The next one in its seat has not been reported.
#[test]
fn a_report_is_forgotten_with_its_connection() {
    let (mut roster, _seats) = watching(2);
    report(&mut roster, 11);
    roster.leave(0);
    assert_eq!(remembered(&roster), [1]);
    roster.leave(1);
    assert!(!has_memory(&roster));
}

#[test]
fn one_row_that_nobody_uses_is_kept() {
    let (mut roster, _seats) = watching(SEATS as u32);
    let rows = |roster: &Roster<u32>| {
        (0..ROWS).filter(|&at| roster.rows[at].is_some()).collect::<Vec<_>>()
    };
    (BLOCK as u32..SEATS as u32).for_each(|number| assert_eq!(roster.leave(number), Some(number)));
    assert_eq!(rows(&roster), [0, 1]);
    let policy = IdlePolicy::new();
    for number in [64, 65] {
        let seat = roster.enter(9, policy.clone(), at(1), || Arc::new(Nowhere)).unwrap();
        assert_eq!(seat.number, number);
    }
    (1..=65).for_each(|number| assert!(roster.leave(number).is_some()));
    assert_eq!(rows(&roster), [0, 1]);
    roster.leave(0);
    assert_eq!((rows(&roster), roster.used()), (vec![], 0));
}

/// They are reported at the same time as ever.
#[test]
fn who_is_left_of_a_burst_moves_to_another_wheel() {
    let (mut roster, seats) = watching(SEATS as u32);
    let stay = |number: u32| number % 100 == 0;
    seats
        .iter()
        .filter(|seat| !stay(seat.number))
        .for_each(|seat| assert!(roster.leave(seat.number).is_some()));
    assert!(roster.peak <= FEW);
    roster.set_policy(0, IdlePolicy::new().all(Duration::from_nanos(30)), at(5));
    assert!(idle(&mut roster, 10).is_empty());
    let at_11: Vec<u32> = idle(&mut roster, 11).iter().map(|idle| idle.connection).collect();
    assert_eq!(at_11, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
    assert_eq!(idle(&mut roster, 31).len(), 1);
}
