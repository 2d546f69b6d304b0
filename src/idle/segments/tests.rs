//! Properties that the public manager does not show: shared memory, events between two holds of the
//! lock, and the amount of work under one hold.

use super::super::activity::{Activity, BLOCK};
use super::super::event::Answer;
use super::super::policy::Scale;
use super::super::segment::NoWatcher;
use super::*;
use std::num::NonZeroU64;
use std::time::Duration;

/// A tick, in nanoseconds. Shorter ones share a start.
const TICK: u64 = 8;

fn at(tick: u64) -> CheckTime {
    CheckTime { now: tick * TICK, scale: Scale::ONE }
}

fn ticks(n: u64) -> Duration {
    Duration::from_nanos(n * TICK)
}

/// Connections 0 to `n` in the seats of these numbers, silent since tick 1 and idle at tick 11.
fn watching(n: u32) -> (Segments<u32>, Vec<Seat>) {
    let mut segments =
        Segments::new(Instant::now(), TickScale::new(NonZeroU64::new(TICK).unwrap()));
    let policy = IdlePolicy::new().all(ticks(10));
    let enter = |n| segments.enter(n, policy.clone(), at(1), || Arc::new(NoWatcher)).unwrap();
    let seats = (0..n).map(enter).collect();
    (segments, seats)
}

fn activity_of(seat: &Seat) -> &Activity {
    seat.block.activity(seat.number)
}

/// Takes slices until no check is due now.
fn slices(segments: &mut Segments<u32>, time: CheckTime) -> Vec<Vec<Idle<u32>>> {
    let next = |_| (segments.next_check() <= time.now / TICK).then(|| segments.take_idle(time));
    (0..).map_while(next).collect()
}

fn all_of(slices: &[Vec<Idle<u32>>]) -> Vec<u32> {
    let mut all: Vec<u32> = slices.iter().flatten().map(|idle| idle.connection).collect();
    all.sort_unstable();
    all
}

const MANY: u32 = 5 * MOST as u32;

fn is_bounded(slices: &[Vec<Idle<u32>>]) -> bool {
    slices.len() >= 5 && slices.iter().all(|slice| slice.len() <= MOST)
}

#[test]
fn connections_in_neighbouring_seats_share_a_block() {
    let (_segments, seats) = watching(BLOCK as u32 + 1);
    let shares_the_first = |seat: &Seat| Arc::ptr_eq(&seat.block, &seats[0].block);
    assert_eq!(seats.iter().filter(|seat| shares_the_first(seat)).count(), BLOCK);
}

#[test]
fn an_active_or_paused_connection_is_not_taken() {
    let (mut segments, seats) = watching(3);
    activity_of(&seats[0]).touch(2 * TICK);
    activity_of(&seats[1]).pause();
    assert_eq!(
        [0, 1, 2].map(|number| segments.take_if_silent_since(number, TICK)),
        [None, None, Some(2)]
    );
}

#[test]
fn many_due_connections_are_taken_out_in_slices() {
    let (mut segments, _seats) = watching(MANY);
    assert!(segments.take_idle(at(10)).is_empty());
    let slices = slices(&mut segments, at(11));
    assert!(is_bounded(&slices));
    assert_eq!(all_of(&slices), (0..MANY).collect::<Vec<_>>());
    assert_eq!((segments.len(), segments.next_check()), (MANY as usize, NEVER), "all are out");
    for slice in slices {
        assert!(segments.put_back(slice, at(11)).again.is_empty());
    }
    assert_eq!(segments.next_check(), 21);
}

/// A due connection that waits for the next slice is watched as before.
#[test]
fn a_connection_waiting_for_the_next_slice_can_leave_be_touched_or_be_taken() {
    let (mut segments, seats) = watching(MANY);
    let first = segments.take_idle(at(11));
    let [left, touched, taken, moved] = [1, 2, 3, 4].map(|n| MANY - n);
    assert!(first.iter().all(|idle| idle.connection < moved));
    assert_eq!(segments.leave(left), Some(left));
    activity_of(&seats[touched as usize]).touch(5 * TICK);
    assert_eq!(segments.take_if_silent_since(taken, TICK), Some(taken));
    segments.set_policy(moved, IdlePolicy::new().all(ticks(30)), at(11));
    let rest = all_of(&slices(&mut segments, at(11)));
    assert_eq!(rest, (first.len() as u32..moved).collect::<Vec<_>>());
    assert_eq!(all_of(&slices(&mut segments, at(15))), [touched]);
    assert_eq!(all_of(&slices(&mut segments, at(31))), [moved]);
}

#[test]
fn a_check_of_all_connections_is_done_in_slices() {
    let (mut segments, _seats) = watching(MANY);
    let halved = CheckTime { now: 6 * TICK, scale: Scale(0.5) };
    assert!(segments.take_idle(halved).is_empty(), "none has come up");
    segments.check_all_at(6);
    let slices = slices(&mut segments, halved);
    assert!(is_bounded(&slices));
    assert_eq!(all_of(&slices), (0..MANY).collect::<Vec<_>>());
}

#[test]
fn a_check_of_all_connections_ends_when_they_have_left() {
    let (mut segments, seats) = watching(1);
    segments.check_all_at(6);
    segments.leave(seats[0].number);
    let policy = IdlePolicy::new().all(ticks(10));
    let _seat = segments.enter(9, policy, at(6), || Arc::new(NoWatcher));
    assert!(segments.confirm_next_check(at(6), CHECKS_PER_SLICE));
    assert_eq!(segments.next_check(), 16);
}

#[test]
fn a_stop_of_the_timer_is_reported_in_slices() {
    let (mut segments, _seats) = watching(MANY);
    let next = |_| Some(segments.take_stopped(5 * TICK)).filter(|slice| !slice.is_empty());
    let slices: Vec<_> = (0..).map_while(next).collect();
    assert!(is_bounded(&slices));
    assert_eq!(all_of(&slices), (0..MANY).collect::<Vec<_>>());
}

#[test]
fn silent_connections_are_listed_segment_by_segment() {
    let (mut segments, seats) = watching(MANY);
    activity_of(&seats[0]).touch(2 * TICK);
    activity_of(&seats[1]).pause();
    segments.leave(2);
    let parts: Vec<_> = (0..).map_while(|at| segments.silent_since(TICK, at)).collect();
    assert!(parts.iter().all(|part| part.len() <= SEATS));
    let named: Vec<u32> = parts.concat().into_iter().map(|(_, number)| number).collect();
    assert_eq!(named, (3..MANY).collect::<Vec<_>>());
}

/// Every connection is due in each tick, so the first segments come up again before the last ones
/// have had their turn.
#[test]
fn every_segment_gets_its_turn() {
    let (mut segments, _seats) = watching(MANY);
    let short = IdlePolicy::new().all(ticks(1));
    (0..MANY).for_each(|number| segments.set_policy(number, short.clone(), at(1)));
    let mut reports = vec![0u32; MANY as usize];
    for now in 2..40 {
        let slice = segments.take_idle(at(now)); // one slice in each tick is too few
        slice.iter().for_each(|idle| reports[idle.connection as usize] += 1);
        segments.put_back(slice, at(now));
    }
    let (least, most) = (reports.iter().min().unwrap(), reports.iter().max().unwrap());
    assert!(*least > 0 && most - least <= 1, "{least} to {most} reports");
}

#[test]
fn rule_04_unused_segments_give_their_memory_back() {
    let with_memory = |segments: &Segments<u32>| {
        segments.segments.iter().filter(|slot| slot.segment.is_some()).count()
    };
    for backwards in [false, true] {
        let (mut segments, seats) = watching(MANY);
        assert_eq!(with_memory(&segments), (MANY as usize).div_ceil(SEATS));
        let mut idle: Vec<_> = slices(&mut segments, at(11)).into_iter().flatten().collect();
        if backwards {
            idle.reverse();
        }
        idle.iter_mut().for_each(|idle| idle.answer(Answer::StopWatching));
        assert_eq!(segments.put_back(idle, at(11)).dismissed.len(), MANY as usize);
        let mut numbers: Vec<u32> = seats.iter().map(|seat| seat.number).collect();
        if backwards {
            numbers.reverse();
        }
        numbers.into_iter().for_each(|number| assert_eq!(segments.leave(number), None));
        assert_eq!((with_memory(&segments), segments.segments.len(), segments.len()), (1, 1, 0));
        assert_eq!(segments.spare, Some(0));
    }
}

/// New connections fill the first free seats, so that the segments of a burst become empty.
#[test]
fn a_free_seat_is_taken_before_a_segment_is_made() {
    let (mut segments, seats) = watching(3 * SEATS as u32);
    for number in [5, SEATS as u32 + 7] {
        segments.leave(number);
    }
    let policy = IdlePolicy::new();
    let mut enter =
        || segments.enter(9, policy.clone(), at(1), || Arc::new(NoWatcher)).unwrap().number;
    let expected = [5, SEATS as u32 + 7, 3 * SEATS as u32];
    assert_eq!([(); 3].map(|()| enter()), expected);
    drop(seats);
}

#[test]
fn confirming_skips_connections_that_left_or_were_active() {
    let (mut segments, seats) = watching(MANY);
    let silent = MANY / 2;
    segments.set_policy(silent, IdlePolicy::new().all(ticks(40)), at(1));
    for seat in seats.iter().filter(|seat| seat.number != silent) {
        match seat.number % 3 {
            0 => assert!(segments.leave(seat.number).is_some()),
            _ => activity_of(seat).touch(50 * TICK),
        }
    }
    let slices = (1..).find(|_| segments.confirm_next_check(at(10), CHECKS_PER_SLICE)).unwrap();
    assert!((5..20).contains(&slices), "{slices} slices");
    assert_eq!(segments.next_check(), 41);
    segments.leave(silent);
    segments.confirm_after_leave(silent, at(10));
    assert_eq!(segments.next_check(), 60);
    let due = all_of(&self::slices(&mut segments, at(60)));
    assert!(due.iter().all(|number| number % 3 != 0) && due.len() >= MANY as usize * 2 / 3 - 1);
}

/// The search covers all segments and passes no silent connection.
#[test]
fn confirming_finds_the_first_check_of_all_segments() {
    let (mut segments, seats) = watching(MANY);
    seats
        .iter()
        .for_each(|seat| activity_of(seat).touch((2 + u64::from(MANY - seat.number)) * TICK));
    while !segments.confirm_next_check(at(3), CHECKS_PER_SLICE) {}
    assert_eq!(segments.next_check(), 13, "the last one");
    for number in (MANY - 100..MANY).rev() {
        assert_eq!(segments.filed_at(number), Some(segments.next_check()));
        segments.leave(number);
        segments.confirm_after_leave(number, at(3));
    }
    assert_eq!(segments.next_check(), 113);
}
