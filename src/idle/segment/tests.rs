//! The remembered reports, and which rows are kept.

use super::super::policy::Scale;
use super::*;
use std::num::NonZeroU64;

/// A tick, in nanoseconds. Shorter ones share a start.
const TICK: u64 = 8;

fn at(tick: u64) -> CheckTime {
    CheckTime { now: tick * TICK, scale: Scale::ONE }
}

fn ticks(n: u64) -> Duration {
    Duration::from_nanos(n * TICK)
}

/// Connections 0 to `n` in the seats of these numbers, silent since tick 1 and idle at tick 11.
fn watching(n: u32) -> (Segment<u32>, Vec<Seat>) {
    let mut segment =
        Segment::new(Instant::now(), TickScale::new(NonZeroU64::new(TICK).unwrap()), 0);
    let policy = IdlePolicy::new().all(ticks(10));
    let enter = |n| segment.enter(n, policy.clone(), at(1), || Arc::new(NoWatcher)).unwrap();
    let seats = (0..n).map(enter).collect();
    (segment, seats)
}

fn idle(segment: &mut Segment<u32>, now: u64) -> Vec<Idle<u32>> {
    let mut idle = Vec::new();
    segment.take_idle(at(now), &mut Vec::new(), &mut idle);
    idle
}

fn report(segment: &mut Segment<u32>, now: u64) {
    let mut returned = Returned::new();
    let idle = idle(segment, now);
    idle.into_iter().for_each(|idle| segment.put_back(idle, at(now), &mut returned));
    assert!(returned.again.is_empty() && returned.dismissed.is_empty());
}

fn remembered(segment: &Segment<u32>) -> Vec<u32> {
    let reports = |number: &u32| segment.rows[0].as_ref().unwrap().reports.of(*number).is_some();
    (0..BLOCK as u32).filter(reports).collect()
}

fn has_memory(segment: &Segment<u32>) -> bool {
    segment.rows[0].as_ref().is_some_and(|row| row.reports.by_seat.is_some())
}

#[test]
fn a_report_is_forgotten_after_activity() {
    let (mut segment, seats) = watching(2);
    report(&mut segment, 11);
    assert_eq!(remembered(&segment), [0, 1]);
    seats[0].block.activity(0).touch(15 * TICK);
    report(&mut segment, 21);
    assert_eq!(remembered(&segment), [1]);
    seats[1].block.activity(1).touch(25 * TICK);
    assert!(idle(&mut segment, 31).len() == 1 && remembered(&segment).is_empty());
    assert!(!has_memory(&segment));
}

/// The seat's next connection has not been reported.
#[test]
fn a_report_is_forgotten_with_its_connection() {
    let (mut segment, _seats) = watching(2);
    report(&mut segment, 11);
    segment.leave(0);
    assert_eq!(remembered(&segment), [1]);
    segment.leave(1);
    assert!(!has_memory(&segment));
}

#[test]
fn one_unused_row_is_kept() {
    let (mut segment, _seats) = watching(SEATS as u32);
    let rows = |segment: &Segment<u32>| {
        (0..ROWS).filter(|&at| segment.rows[at].is_some()).collect::<Vec<_>>()
    };
    (BLOCK as u32..SEATS as u32).for_each(|number| assert_eq!(segment.leave(number), Some(number)));
    assert_eq!(rows(&segment), [0, 1]);
    let policy = IdlePolicy::new();
    for number in [64, 65] {
        let seat = segment.enter(9, policy.clone(), at(1), || Arc::new(NoWatcher)).unwrap();
        assert_eq!(seat.number, number);
    }
    (1..=65).for_each(|number| assert!(segment.leave(number).is_some()));
    assert_eq!(rows(&segment), [0, 1]);
    segment.leave(0);
    assert_eq!((rows(&segment), segment.used()), (vec![], 0));
}

/// They are reported at the same time as before.
#[test]
fn rule_04_survivors_of_a_burst_move_to_a_new_wheel() {
    let (mut segment, seats) = watching(SEATS as u32);
    let stay = |number: u32| number % 100 == 0;
    seats
        .iter()
        .filter(|seat| !stay(seat.number))
        .for_each(|seat| assert!(segment.leave(seat.number).is_some()));
    assert!(segment.peak <= FEW);
    segment.set_policy(0, IdlePolicy::new().all(ticks(30)), at(5));
    assert!(idle(&mut segment, 10).is_empty());
    let at_11: Vec<u32> = idle(&mut segment, 11).iter().map(|idle| idle.connection).collect();
    assert_eq!(at_11, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
    assert_eq!(idle(&mut segment, 31).len(), 1);
}
