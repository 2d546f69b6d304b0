use super::*;
use crate::base::sync::{Arc, AtomicU64, check, spawn, turn};
use crate::time::Timebase;
use crate::time::tick::TickScale;
use std::num::NonZeroU64;

/// Time passes during two runs, which then wait for the clock while the worker goes to sleep. The worker
/// reads a time that is not before their ends. If an entry were lost, loom would report the deadlock.
#[test]
fn rule_02_a_delay_begins_after_the_end_of_its_run() {
    check(|| {
        let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
        let shared = Shared::<()>::new(time, scale, None, 1).0;
        let clock = Arc::new(AtomicU64::new(0));
        let runners = [1, 2].map(|index| {
            let (shared, clock) = (shared.clone(), clock.clone());
            spawn(move || {
                let end = clock.fetch_add(1, Ordering::AcqRel) + 1;
                shared.wait_for_clock(Token { index, version: 0 }, end);
            })
        });
        let mut taken = 0;
        turn();
        while taken < 2 {
            let waiting = shared.waiting_for_clock();
            let now = clock.load(Ordering::Acquire);
            for _ in 0..waiting {
                let (_, end) = shared.next_waiting_for_clock().expect("it is in the queue");
                assert!(end <= now);
                taken += 1;
            }
            shared.alarm.arm(80);
            if taken < 2 && shared.waiting_for_clock() == 0 {
                shared.alarm.sleep(None);
            }
            shared.alarm.disarm();
        }
        runners.into_iter().for_each(|runner| runner.join().unwrap());
    });
}
