//! Far timeouts are on time, and keep their order beside those that come into reach.

use super::token;
use crate::wheel::confirm::{NextLive, Standing};
use crate::wheel::filing::Filing;
use crate::wheel::structure::TokenWheel;
use crate::wheel::token::Due;
use crate::wheel::{Exact, Hashed, LinuxClassic, Placement, Unlimited, Wheel};

/// The smallest delay that the last level of the Linux wheel does not reach.
const OUT_OF_REACH: u64 = 63 << 24;

/// If a timeout one tick out of reach were filed, it would be early by a turn of the last level.
#[test]
fn rule_08_linux_keeps_a_timeout_just_out_of_reach_waiting() {
    const LAST_OF_A_UNIT: u64 = (1 << 24) - 1;
    let mut wheel = Wheel::linux();
    for ahead in [OUT_OF_REACH - 1, OUT_OF_REACH, OUT_OF_REACH + 1] {
        wheel.insert(LAST_OF_A_UNIT + ahead, ahead);
    }
    assert_eq!(wheel.expire(LAST_OF_A_UNIT, |_, _| ()), 0);
    assert_eq!(wheel.expire(LAST_OF_A_UNIT + OUT_OF_REACH - 2, |_, _| ()), 0);
    assert_eq!(wheel.expire(3 * OUT_OF_REACH, |_, _| ()), 3);
}

fn order<S: Unlimited>(mut wheel: Wheel<&str, S>, now: u64) -> Vec<(u64, &str)> {
    let mut order = Vec::new();
    wheel.expire(now, |_, expired| order.push((expired.deadline, expired.value)));
    order
}

#[test]
fn rule_07_hashed_keeps_the_order_of_ticks_at_the_end_of_its_reach() {
    let mut wheel = Wheel::hashed(1).unwrap();
    wheel.expire(100, |_, _| ());
    wheel.insert(65_600, "A"); // in reach: 65,636
    wheel.insert(65_700, "B"); // far
    wheel.expire(101, |_, _| ());
    wheel.insert(65_550, "C");
    assert_eq!(order(wheel, 70_000), [(65_550, "C"), (65_600, "A"), (65_700, "B")]);
}

#[test]
fn rule_07_hashed_keeps_the_order_within_a_tick_at_the_end_of_its_reach() {
    let mut wheel = Wheel::hashed(1).unwrap();
    wheel.expire(100, |_, _| ());
    wheel.insert(65_700, "A"); // far
    wheel.insert(65_590, "first"); // shares the bucket
    wheel.insert(65_700, "B");
    wheel.expire(1000, |_, _| ());
    wheel.insert(65_700, "C"); // in reach
    wheel.insert(65_600, "second");
    let expected =
        [(65_590, "first"), (65_600, "second"), (65_700, "A"), (65_700, "B"), (65_700, "C")];
    assert_eq!(order(wheel, 70_000), expected);
}

#[test]
fn rule_07_classic_keeps_the_order_within_a_tick_at_the_end_of_its_reach() {
    const REACH: u64 = 1 << 32;
    let mut wheel = Wheel::linux_classic();
    wheel.expire(100, |_, _| ());
    wheel.insert(REACH + 200, "A"); // far
    wheel.insert(REACH + 50, "first");
    wheel.expire(301, |_, _| ());
    wheel.insert(REACH + 200, "B"); // in reach
    assert_eq!(
        order(wheel, REACH + 300),
        [(REACH + 50, "first"), (REACH + 200, "A"), (REACH + 200, "B")]
    );
}

/// In a pass, a tick comes into reach before the older values of that tick are filed.
#[test]
fn rule_07_classic_keeps_the_order_within_a_tick_that_comes_into_reach_in_a_pass() {
    const REACH: u64 = 1 << 32;
    let mut wheel = Wheel::linux_classic();
    wheel.expire(100, |_, _| ());
    wheel.insert(REACH + 200, "A"); // far
    wheel.insert(300, "during");
    let is_over = wheel.expire_at_most(400, usize::MAX, |wheel, expired| {
        assert_eq!(expired.value, "during");
        wheel.insert(REACH + 200, "B");
    });
    assert!(is_over);
    assert_eq!(order(wheel, REACH + 300), [(REACH + 200, "A"), (REACH + 200, "B")]);
}

#[test]
fn bucket_and_placement_are_none_for_a_value_in_no_bucket() {
    const REACH: u64 = 65_535; // rounds, of one tick each
    let mut wheel = Wheel::hashed(1).unwrap();
    let [near, far, never] = [REACH, REACH + 1, u64::MAX].map(|tick| wheel.insert(tick, ()));
    let in_bucket = Some(Placement { level: 1, bucket: 0 });
    let placements = |wheel: &Wheel<(), Hashed>| {
        [near, far, never].map(|key| {
            let placement = wheel.placement(key);
            assert_eq!(placement.map(|placement| placement.bucket), wheel.bucket(key));
            placement
        })
    };
    assert_eq!(placements(&wheel), [in_bucket, None, None]);
    assert_eq!(wheel.remaining_rounds(far), Some(REACH + 1));
    wheel.expire(0, |_, _| ());
    assert_eq!(placements(&wheel), [in_bucket, in_bucket, None], "one round less");
    assert_eq!(wheel.remaining_rounds(far), Some(REACH));
}

#[test]
fn rule_04_removals_of_far_values_do_not_pile_up() {
    let mut wheel = Wheel::hashed(1).unwrap();
    let kept = wheel.insert(1 << 40, 0);
    for n in 1..10_000 {
        let key = wheel.insert((1 << 40) - n, n);
        assert_eq!(wheel.remove(key), Some(n));
    }
    assert!(wheel.next_expiry() > Some((1 << 40) - 10_000), "most entries are swept out");
    assert_eq!(wheel.remove(kept), Some(0));
}

/// The owner files a token again each time it comes out before its tick, also if time jumps over all
/// ticks that the wheel reached.
#[test]
fn rule_08_a_token_out_of_reach_comes_in_its_tick() {
    fn check(wheel: impl Exact, steps: &[u64]) {
        const FAR: u64 = 1 << 40;
        let mut filing = Filing::new(wheel);
        filing.insert(FAR, token(1));
        let (mut met, mut came) = (0, None);
        for &now in steps {
            while let Some(Due { tick, token }) = filing.pop(now) {
                met += 1;
                if tick < FAR {
                    filing.insert_in_pass(FAR, token, now);
                } else {
                    came = Some((now, tick));
                }
            }
            assert!(now >= FAR || filing.next_expiry().is_some_and(|next| next > now));
        }
        assert_eq!(came, Some((FAR, FAR)));
        assert!(met <= steps.len() + 1);
    }
    for steps in [&[1 << 40][..], &[1 << 36, (1 << 40) - 1, 1 << 40]] {
        check(Hashed::new(1).unwrap(), steps);
        check(LinuxClassic::default(), steps);
    }
}

/// Otherwise each search would move it on by the time that has passed.
#[test]
fn rule_06_a_search_leaves_an_entry_that_is_due_beyond_the_reach() {
    let mut filing = Filing::new(Hashed::new(1).unwrap());
    filing.insert(100_000, token(1));
    let end_of_reach = filing.wheel.reach();
    for _ in 0..2 {
        let next = filing.confirm_next(u64::MAX, 10, |_| Standing::Later(100_000));
        assert_eq!(next, NextLive::At(Due { tick: end_of_reach, token: token(1) }));
        assert_eq!(filing.pop(9), None);
    }
}
