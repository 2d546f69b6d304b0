//! Properties that the public manager does not show: shared memory, events between two holds of the
//! lock, and the amount of work under one hold.

use super::super::activity::{Activity, BLOCK};
use super::super::event::Answer;
use super::super::policy::Scale;
use super::*;
use std::num::NonZeroU64;
use std::time::Duration;

/// The most connections that one hold of the lock takes out: the largest batch.
const MOST: usize = CHECKS_PER_SLICE - 1 + BLOCK;

/// A tick, in nanoseconds. Shorter ones share a start.
const TICK: u64 = 8;

fn at(tick: u64) -> CheckTime {
    CheckTime { now: tick * TICK, scale: Scale::ONE }
}

fn ticks(n: u64) -> Duration {
    Duration::from_nanos(n * TICK)
}

/// Connections 0 to `n` in the seats of these numbers, silent since tick 1 and idle at tick 11.
fn watching(n: u32) -> (Seats<u32>, Vec<Seat>) {
    let mut seats = Seats::new(Instant::now(), TickScale::new(NonZeroU64::new(TICK).unwrap()));
    let policy = IdlePolicy::new().both(ticks(10));
    let enter = |n| seats.enter(n, policy.clone(), at(1), || Arc::new(NoWatcher)).unwrap();
    let taken = (0..n).map(enter).collect();
    (seats, taken)
}

fn activity_of(seat: &Seat) -> &Activity {
    seat.block.activity(seat.number)
}

/// Takes slices until no check is due now.
fn slices(seats: &mut Seats<u32>, time: CheckTime) -> Vec<Vec<Idle<u32>>> {
    let next = |_| (seats.next_check() <= time.now / TICK).then(|| seats.take_idle(time));
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
    let (_seats, taken) = watching(BLOCK as u32 + 1);
    let shares_the_first = |seat: &Seat| Arc::ptr_eq(&seat.block, &taken[0].block);
    assert_eq!(taken.iter().filter(|seat| shares_the_first(seat)).count(), BLOCK);
}

#[test]
fn an_active_or_paused_connection_is_not_taken() {
    let (mut seats, taken) = watching(3);
    activity_of(&taken[0]).touch(2 * TICK);
    activity_of(&taken[1]).pause();
    assert_eq!(
        [0, 1, 2].map(|number| seats.take_if_silent_since(number, TICK)),
        [None, None, Some(2)]
    );
}

#[test]
fn many_due_connections_are_taken_out_in_slices() {
    let (mut seats, _taken) = watching(MANY);
    assert!(seats.take_idle(at(10)).is_empty());
    let slices = slices(&mut seats, at(11));
    assert!(is_bounded(&slices));
    assert_eq!(all_of(&slices), (0..MANY).collect::<Vec<_>>());
    assert_eq!((seats.len(), seats.next_check()), (MANY as usize, NEVER), "all are out");
    for slice in slices {
        assert!(seats.put_back(slice, at(11)).0.is_empty());
    }
    assert_eq!(seats.next_check(), 21);
}

/// A due connection that waits for the next slice is watched as before.
#[test]
fn a_connection_waiting_for_the_next_slice_can_leave_be_touched_or_be_taken() {
    let (mut seats, handles) = watching(MANY);
    let first = seats.take_idle(at(11));
    let [left, touched, taken, moved] = [1, 2, 3, 4].map(|n| MANY - n);
    assert!(first.iter().all(|idle| idle.connection < moved));
    assert_eq!(seats.leave(left), Some(left));
    activity_of(&handles[touched as usize]).touch(5 * TICK);
    assert_eq!(seats.take_if_silent_since(taken, TICK), Some(taken));
    seats.set_policy(moved, IdlePolicy::new().both(ticks(30)), at(11));
    let rest = all_of(&slices(&mut seats, at(11)));
    assert_eq!(rest, (first.len() as u32..moved).collect::<Vec<_>>());
    assert_eq!(all_of(&slices(&mut seats, at(15))), [touched]);
    assert_eq!(all_of(&slices(&mut seats, at(31))), [moved]);
}

#[test]
fn a_check_of_all_connections_is_done_in_slices() {
    let (mut seats, _taken) = watching(MANY);
    let halved = CheckTime { now: 6 * TICK, scale: Scale(0.5) };
    assert!(seats.take_idle(halved).is_empty(), "none has come up");
    drop(seats.check_all());
    let slices = slices(&mut seats, halved);
    assert!(is_bounded(&slices));
    assert_eq!(all_of(&slices), (0..MANY).collect::<Vec<_>>());
}

#[test]
fn a_check_of_all_connections_ends_when_they_have_left() {
    let (mut seats, taken) = watching(1);
    drop(seats.check_all());
    seats.leave(taken[0].number);
    let policy = IdlePolicy::new().both(ticks(10));
    let _seat = seats.enter(9, policy, at(6), || Arc::new(NoWatcher));
    assert!(seats.confirm_next_check(at(6), CHECKS_PER_SLICE));
    assert_eq!(seats.next_check(), 16);
}

#[test]
fn a_stop_of_the_timer_is_reported_in_slices() {
    let (mut seats, _taken) = watching(MANY);
    let next = |_| Some(seats.take_stopped(5 * TICK)).filter(|slice| !slice.is_empty());
    let slices: Vec<_> = (0..).map_while(next).collect();
    assert!(is_bounded(&slices));
    assert_eq!(all_of(&slices), (0..MANY).collect::<Vec<_>>());
}

#[test]
fn silent_connections_are_listed_in_parts() {
    let (mut seats, taken) = watching(MANY);
    activity_of(&taken[0]).touch(2 * TICK);
    activity_of(&taken[1]).pause();
    seats.leave(2);
    let parts: Vec<_> = (0..).map_while(|at| seats.silent_since(TICK, at)).collect();
    assert!(parts.iter().all(|part| part.len() <= ROWS_PER_LIST * BLOCK));
    let named: Vec<u32> = parts.concat().into_iter().map(|(_, number)| number).collect();
    assert_eq!(named, (3..MANY).collect::<Vec<_>>());
}

/// Every connection is due in each tick, so the first ones come up again before the last ones
/// have had their turn.
#[test]
fn every_connection_gets_its_turn() {
    let (mut seats, _taken) = watching(MANY);
    let short = IdlePolicy::new().both(ticks(1));
    (0..MANY).for_each(|number| seats.set_policy(number, short.clone(), at(1)));
    let mut reports = vec![0u32; MANY as usize];
    for now in 2..40 {
        let slice = seats.take_idle(at(now)); // one slice in each tick is too few
        slice.iter().for_each(|idle| reports[idle.connection as usize] += 1);
        seats.put_back(slice, at(now));
    }
    let (least, most) = (reports.iter().min().unwrap(), reports.iter().max().unwrap());
    assert!(*least > 0 && most - least <= 1, "{least} to {most} reports");
}

fn rows_with_memory(seats: &Seats<u32>) -> Vec<usize> {
    (0..seats.rows.len()).filter(|&at| seats.rows[at].is_some()).collect()
}

#[test]
fn rule_04_unused_rows_give_their_memory_back() {
    for backwards in [false, true] {
        let (mut seats, taken) = watching(MANY);
        assert_eq!(rows_with_memory(&seats).len(), (MANY as usize).div_ceil(BLOCK));
        let mut idle: Vec<_> = slices(&mut seats, at(11)).into_iter().flatten().collect();
        if backwards {
            idle.reverse();
        }
        idle.iter_mut().for_each(|idle| idle.answer(Answer::StopWatching));
        assert_eq!(seats.put_back(idle, at(11)).1.len(), MANY as usize);
        let mut numbers: Vec<u32> = taken.iter().map(|seat| seat.number).collect();
        if backwards {
            numbers.reverse();
        }
        numbers.into_iter().for_each(|number| assert_eq!(seats.leave(number), None));
        assert_eq!((seats.rows.len(), seats.room.len(), seats.len()), (0, 0, 0));
    }
}

/// For a connection that comes and goes.
#[test]
fn one_unused_row_is_kept() {
    let many = 3 * BLOCK as u32;
    let (mut seats, taken) = watching(many);
    drop(taken);
    (BLOCK as u32..many).for_each(|number| assert_eq!(seats.leave(number), Some(number)));
    let spare = |seats: &Seats<u32>| seats.spare.as_ref().map(|row| Arc::as_ptr(&row.block));
    let kept = spare(&seats);
    assert_eq!((rows_with_memory(&seats), kept.is_some()), (vec![0], true));
    let enter = seats.enter(9, IdlePolicy::new(), at(1), || Arc::new(NoWatcher));
    let seat = enter.unwrap_or_else(|_| panic!("there is room"));
    assert_eq!((seat.number, Some(Arc::as_ptr(&seat.block))), (BLOCK as u32, kept));
    (0..=BLOCK as u32).for_each(|number| assert!(seats.leave(number).is_some()));
    assert_eq!((seats.rows.len(), spare(&seats)), (0, None));
}

/// New connections fill the first free seats, so that the rows of a burst become empty.
#[test]
fn a_free_seat_is_taken_before_a_row_is_made() {
    let (mut seats, _taken) = watching(3 * BLOCK as u32);
    for number in [5, BLOCK as u32 + 7] {
        seats.leave(number);
    }
    let policy = IdlePolicy::new();
    let mut enter =
        || seats.enter(9, policy.clone(), at(1), || Arc::new(NoWatcher)).unwrap().number;
    let expected = [5, BLOCK as u32 + 7, 3 * BLOCK as u32];
    assert_eq!([(); 3].map(|()| enter()), expected);
}

/// The number of tokens in the filing.
fn tokens(seats: &mut Seats<u32>) -> usize {
    let mut tokens = 0;
    seats.filing.sweep(usize::MAX, |_| {
        tokens += 1;
        true
    });
    tokens
}

/// In a row that was made anew, no dead token is live again.
#[test]
fn rule_04_waves_of_connections_leave_few_tokens() {
    let (mut seats, taken) = watching(1);
    let policy = IdlePolicy::new().both(ticks(1000));
    for _ in 0..20 {
        let enter = |_| seats.enter(9, policy.clone(), at(1), || Arc::new(NoWatcher)).unwrap();
        let wave: Vec<Seat> = (0..5000).map(enter).collect();
        wave.iter().for_each(|seat| assert_eq!(seats.leave(seat.number), Some(9)));
        assert!(tokens(&mut seats) <= DEAD_ALLOWED + 2 + SWEPT_AFTER_LEAVE);
    }
    assert_eq!(seats.next_check(), 11);
    drop(taken);
}

/// As many connections as there are numbers of 16 bits are filed again in turn. Their dead tokens stay dead.
#[test]
fn rule_04_policies_that_change_in_turn_leave_few_tokens() {
    const CONNECTIONS: u32 = 1 << 16;
    let (mut seats, taken) = watching(CONNECTIONS);
    for _ in 0..6 {
        for after in [1000, 10] {
            let policy = IdlePolicy::new().both(ticks(after));
            (0..CONNECTIONS).for_each(|number| seats.set_policy(number, policy.clone(), at(1)));
        }
    }
    let most = 2 * CONNECTIONS as usize + DEAD_ALLOWED + SWEPT_AFTER_LEAVE;
    assert!(tokens(&mut seats) <= most, "{} tokens", tokens(&mut seats));
    drop(taken);
}

#[test]
fn confirming_skips_connections_that_left_or_were_active() {
    let (mut seats, taken) = watching(MANY);
    let silent = MANY / 2;
    seats.set_policy(silent, IdlePolicy::new().both(ticks(40)), at(1));
    for seat in taken.iter().filter(|seat| seat.number != silent) {
        match seat.number % 3 {
            0 => assert!(seats.leave(seat.number).is_some()),
            _ => activity_of(seat).touch(50 * TICK),
        }
    }
    let slices = (1..).find(|_| seats.confirm_next_check(at(10), CHECKS_PER_SLICE)).unwrap();
    assert!((5..20).contains(&slices), "{slices} slices");
    assert_eq!(seats.next_check(), 41);
    seats.leave(silent);
    seats.confirm_next_check(at(10), CHECKS_AFTER_LEAVE);
    assert_eq!(seats.next_check(), 60);
    let due = all_of(&self::slices(&mut seats, at(60)));
    assert!(due.iter().all(|number| number % 3 != 0) && due.len() >= MANY as usize * 2 / 3 - 1);
}

/// The search covers all seats and passes no silent connection.
#[test]
fn confirming_finds_the_first_check_of_all_segments() {
    let (mut seats, taken) = watching(MANY);
    taken
        .iter()
        .for_each(|seat| activity_of(seat).touch((2 + u64::from(MANY - seat.number)) * TICK));
    while !seats.confirm_next_check(at(3), CHECKS_PER_SLICE) {}
    assert_eq!(seats.next_check(), 13, "the last one");
    for number in (MANY - 100..MANY).rev() {
        assert!(seats.is_next(number));
        seats.leave(number);
        seats.confirm_next_check(at(3), CHECKS_AFTER_LEAVE);
    }
    assert_eq!(seats.next_check(), 113);
}
