//! Far timeouts are on time and keep their order when they come into reach of the buckets.

use super::{taken, token};
use crate::wheel::structure::{LET_IN, TokenWheel};
use crate::wheel::{HashedWheel, Linux, LinuxClassicWheel};

/// The smallest delay that the last level of the Linux wheel does not reach.
const OUT_OF_REACH: u64 = 63 << 24;

/// A timeout in a bucket of the last level may expire after one that was too far away at its
/// insert, because such a bucket spans 2^24 ticks.
#[test]
fn rule_08_linux_files_far_timeouts_before_later_buckets_expire() {
    let mut wheel = Linux::default();
    assert_eq!(taken(&mut wheel, 5), []);
    wheel.insert(5 + OUT_OF_REACH - 1, token(1));
    assert_eq!(taken(&mut wheel, 6), []);
    wheel.insert(6 + OUT_OF_REACH, token(2));
    assert_eq!(taken(&mut wheel, 2 * OUT_OF_REACH), [1, 2]);
}

/// If a timeout one tick out of reach were filed, it would be early by a turn of the last level.
#[test]
fn rule_08_linux_keeps_a_timeout_just_out_of_reach_waiting() {
    const LAST_OF_A_UNIT: u64 = (1 << 24) - 1;
    let mut wheel = Linux::default();
    for ahead in [OUT_OF_REACH - 1, OUT_OF_REACH, OUT_OF_REACH + 1] {
        wheel.insert(LAST_OF_A_UNIT + ahead, token(ahead as u32));
    }
    assert_eq!(taken(&mut wheel, LAST_OF_A_UNIT), []);
    assert_eq!(taken(&mut wheel, LAST_OF_A_UNIT + OUT_OF_REACH - 2), []);
    assert_eq!(taken(&mut wheel, 3 * OUT_OF_REACH).len(), 3);
}

/// Some timeouts of an era are already in buckets when a far one of the same era is inserted.
#[test]
fn rule_07_hashed_keeps_the_order_of_ticks_at_the_end_of_its_reach() {
    let mut wheel = HashedWheel::new(1).unwrap();
    wheel.expire(100, |_, _: &str| ());
    wheel.insert(65_600, "A"); // in reach: 65,636
    wheel.insert(65_700, "B"); // far, of the same era
    wheel.expire(101, |_, _| ());
    wheel.insert(65_550, "C"); // far
    let mut order = Vec::new();
    wheel.expire(70_000, |tick, value| order.push((tick, value)));
    assert_eq!(order, [(65_550, "C"), (65_600, "A"), (65_700, "B")]);
}

#[test]
fn rule_07_hashed_keeps_the_order_within_a_tick_at_the_end_of_its_reach() {
    let mut wheel = HashedWheel::new(1).unwrap();
    wheel.expire(100, |_, _: &str| ());
    wheel.insert(65_590, "first"); // shares the bucket, so the others are given to `later`
    wheel.insert(65_600, "A");
    wheel.insert(65_700, "B");
    wheel.expire(101, |_, _| ());
    wheel.insert(65_600, "C");
    let mut order = Vec::new();
    wheel.expire(70_000, |tick, value| order.push((tick, value)));
    assert_eq!(order, [(65_590, "first"), (65_600, "A"), (65_600, "C"), (65_700, "B")]);
}

#[test]
fn rule_07_hashed_keeps_the_order_of_ticks_if_time_jumps_into_an_era_that_has_moved_in_part() {
    let mut wheel = HashedWheel::new(1).unwrap();
    wheel.expire(0, |_, ()| ());
    for tick in [[70_100; LET_IN], [70_050; LET_IN]].concat() {
        wheel.insert(tick, ());
    }
    wheel.expire(40_000, |_, ()| ()); // the era has come into reach, and its first half moves in
    let mut ticks = Vec::new();
    wheel.expire(71_000, |tick, ()| ticks.push(tick));
    assert_eq!(ticks, [[70_050; LET_IN], [70_100; LET_IN]].concat());
}

#[test]
fn rule_07_classic_keeps_the_order_within_a_tick_at_the_end_of_its_reach() {
    const REACH: u64 = 1 << 32;
    let mut wheel = LinuxClassicWheel::new();
    wheel.expire(100, |_, _: &str| ());
    wheel.insert(REACH + 50, "A"); // in reach
    wheel.insert(REACH + 200, "B"); // far, of the same era
    wheel.expire(101, |_, _| ());
    wheel.insert(REACH + 50, "C"); // far
    wheel.expire((1 << 26) + 5, |_, _| ()); // let in
    let mut order = Vec::new();
    wheel.expire(REACH + 300, |_, value| order.push(value));
    assert_eq!(order, ["A", "C", "B"]);
}

/// The timeouts of one tick move in by slices: the first slice to level 5, and the others, `second`
/// ticks after the beginning of the era, to a finer level. The tick counts from that beginning too.
fn check_slices(second: i64, tick: u64) {
    const BEGIN: u64 = 1 << 33;
    let count = 5 * LET_IN;
    let mut wheel = LinuxClassicWheel::new();
    wheel.expire(0, |_, _: usize| ());
    (0..count).for_each(|n| _ = wheel.insert(BEGIN + tick, n));
    wheel.expire(BEGIN - (1 << 32) + (1 << 26) + 10, |_, _| ());
    wheel.expire(BEGIN.checked_add_signed(second).unwrap(), |_, _| ());
    let mut order = Vec::new();
    wheel.expire(BEGIN + tick, |_, n| order.push(n));
    assert_eq!(order, (0..count).collect::<Vec<_>>());
}

#[test]
fn rule_07_classic_keeps_the_order_within_a_tick_over_slices_before_the_era() {
    check_slices(-1000, 300);
}

#[test]
fn rule_07_classic_keeps_the_order_within_a_tick_over_slices_within_the_era() {
    check_slices(97_000, 100_000);
}
