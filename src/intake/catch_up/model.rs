use super::*;
use crate::base::sync::{check, spawn, turn};
use crate::time::Timebase;
use crate::time::tick::TickScale;
use std::num::NonZeroU64;

/// Two runs catch up at once while the worker goes to sleep. The worker takes both entries. If one
/// were lost, the worker would sleep for ever, and loom would report the deadlock.
#[test]
fn rule_09_no_run_that_catches_up_is_missed() {
    check(|| {
        let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
        let shared = Shared::<()>::new(time, scale, None, 1).0;
        let runners = [1, 2].map(|index| {
            let shared = shared.clone();
            let token = Token { index, version: 0 };
            spawn(move || shared.catch_up(CatchUp { token, deadline: 8 }))
        });
        let mut taken = 0;
        turn();
        while taken < 2 {
            taken += std::iter::from_fn(|| shared.next_catching_up()).count();
            shared.alarm.arm(80);
            if taken < 2 && !shared.is_catching_up() {
                shared.alarm.sleep(None);
            }
            shared.alarm.disarm();
        }
        runners.into_iter().for_each(|runner| runner.join().unwrap());
    });
}
