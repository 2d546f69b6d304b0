//! The whole timer under random programs: threads that begin and end at any moment, hand their timeouts
//! over, and cancel those of others, while tasks take time on the worker, the clock jumps, and timers are
//! stopped. At every quiet moment an oracle asks whether every timeout that is due has run, whether the
//! worker will wake up for the next, whether the counts are exact, and how much memory is left.
//!
//! The same programs run on real threads and, smaller, under shuttle's random schedules (`.ci/shuttle`).
//! `WHEELWORK_WHOLE_SECONDS` changes the time on real threads from 3 s, and `WHEELWORK_WHOLE_SEED` the first seed.

#![cfg(asleep)]

#[path = "../common/mod.rs"]
mod common;
mod env;
mod ledger;
#[cfg(not(shuttle))]
#[allow(dead_code)] // no other test measures here
#[path = "../common/live_bytes.rs"]
mod live_bytes;
mod oracle;
mod play;
mod program;
#[cfg(shuttle)]
#[allow(dead_code)] // tasks are for futures
#[path = "../common/schedules.rs"]
mod schedules;

use common::{Random, WHEELS};
use program::{Ring, Size};
use std::time::Duration;
use wheelwork::{HashedWheelTimer, ManualClock};

/// A timer of any kind.
fn any_timer(random: &mut Random, clock: &ManualClock) -> (HashedWheelTimer, Ring, Option<usize>) {
    let tick = Duration::from_micros([50, 1000, 100_000][random.below(3) as usize]);
    let buckets = 2 << random.below(6);
    let limit = (random.below(4) == 0).then(|| 1 + random.below(20) as usize);
    let builder = HashedWheelTimer::builder()
        .tick_duration(tick)
        .wheel(WHEELS[random.below(3) as usize])
        .ticks_per_wheel(buckets)
        .clock(clock.clone());
    let builder = match limit {
        Some(limit) => builder.max_pending_timeouts(limit),
        None => builder,
    };
    let timer = builder.build().expect("settings within their ranges");
    (timer, Ring { tick, buckets: buckets as u64 }, limit)
}

#[cfg(not(shuttle))]
#[test]
fn rule_02_every_timeout_of_a_random_program_runs_when_it_is_due() {
    use std::time::Instant;
    const AT_ONCE: u64 = 48;
    const SIZE: Size =
        Size { phases: 16, actors: 2, operations: 3, burst: 4000, work: 300, jump: 300 };
    let setting = |name: &str, default: u64| {
        let value = std::env::var(format!("WHEELWORK_WHOLE_{name}"));
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let limit = Instant::now() + Duration::from_secs(setting("SECONDS", 3));
    let first = setting("SEED", 1);
    let (mut seed, mut most) = (first, 0);
    // Most of a program is waiting, so many play at once.
    while Instant::now() < limit || seed < first + 2 * AT_ONCE {
        let batch = seed..seed + 2 * AT_ONCE;
        std::thread::scope(|scope| {
            for number in 0..AT_ONCE {
                let seeds = batch.clone().skip(number as usize).step_by(AT_ONCE as usize);
                scope.spawn(|| seeds.for_each(|seed| play::play(seed, &SIZE, any_timer)));
            }
        });
        if seed == first {
            most = live_bytes::bytes() + 200_000; // what a process makes once
        }
        let freed = || live_bytes::bytes() <= most;
        env::wait_until("the memory of programs that have ended is freed", freed);
        seed = batch.end;
    }
    println!("{} programs", seed - first);
}

#[cfg(shuttle)]
#[test]
fn rule_02_every_timeout_of_a_random_program_runs_when_it_is_due() {
    use shuttle::rand::{Rng, thread_rng};
    const SIZE: Size = Size { phases: 8, actors: 2, operations: 3, burst: 70, work: 200, jump: 40 };
    let program = || play::play(thread_rng().r#gen::<u64>(), &SIZE, any_timer);
    // A program is shorter than the histories of the other tests.
    shuttle::check_random(program, 5 * schedules::iterations());
}
