//! The whole timer under random programs: threads that begin and end at any moment, hand their timeouts
//! over, and cancel those of others, while tasks take time on the worker, the clock jumps, and timers are
//! stopped. At every quiet moment an oracle asks whether every timeout that is due has run, whether the
//! worker will wake up for the next, whether the counts are exact, and how much memory is left.
//!
//! The same programs run on real threads and, smaller, under shuttle's random schedules (`.ci/shuttle`). Others have
//! bad user code, and stop their timers at any moment (see `rogue`): these have one quiet moment, at their end.
//! `WHEELWORK_WHOLE_SECONDS` changes the time of each kind on real threads from 2 s, and `WHEELWORK_WHOLE_SEED` the
//! first seed.

extern crate whole as wheelwork;

#[path = "../common/mod.rs"]
mod common;
mod env;
mod ledger;
mod links;
mod naps;
mod oracle;
mod play;
mod program;
mod rogue;
#[cfg(shuttle)]
#[allow(dead_code)] // tasks are for futures
#[path = "../common/schedules.rs"]
mod schedules;
mod streams;

use common::{Random, WHEELS, sized};
use program::{Ring, Size};
use std::time::Duration;

/// A timer of any kind.
fn any_timer(random: &mut Random) -> play::Drawn {
    let tick = Duration::from_micros([50, 1000, 100_000][random.below(3) as usize]);
    let buckets = 2 << random.below(6);
    let limit = (random.below(4) == 0).then(|| 1 + random.below(20) as usize);
    let builder = sized(WHEELS[random.below(3) as usize], buckets).tick_duration(tick);
    let builder = match limit {
        Some(limit) => builder.max_pending_timeouts(limit),
        None => builder,
    };
    (builder, Ring { tick, buckets: buckets as u64 }, limit)
}

#[cfg(not(shuttle))]
mod on_threads {
    use super::*;
    use crate::play::World;
    use kit::live_bytes::{self, COUNTING, Counting};
    use std::io::Write;
    use std::sync::{Arc, Mutex, Once, Weak};
    use std::time::Instant;
    use wheelwork::future;

    #[global_allocator]
    static ALLOCATOR: &Counting = &COUNTING;

    const AT_ONCE: u64 = 48;

    fn setting(name: &str, default: u64) -> u64 {
        let value = std::env::var(format!("WHEELWORK_WHOLE_{name}"));
        value.map_or(default, |value| value.parse().expect("a number"))
    }

    /// A program that takes longer hangs. What the oracle waits for is named sooner (see `env`).
    const LIMIT: Duration = Duration::from_secs(240);

    /// The programs that play. Nothing ends a thread that hangs, so a failure ends the process.
    static PLAYING: Mutex<Vec<(Instant, Weak<World>)>> = Mutex::new(Vec::new());

    fn play_one(seed: u64, size: &Size) {
        let world = World::new(seed, size, any_timer);
        let weak = Arc::downgrade(&world);
        PLAYING.lock().unwrap().push((Instant::now(), weak.clone()));
        play::play(&world);
        PLAYING.lock().unwrap().retain(|(_, playing)| !playing.ptr_eq(&weak));
    }

    /// From now on, a panic ends the process, unless it is one of bad user code. So does a program that hangs.
    fn watch() {
        std::panic::set_hook(Box::new(|panic| {
            let _ = writeln!(std::io::stderr(), "{panic}"); // a test's output is shown at its end
            std::process::abort();
        }));
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let playing = PLAYING.lock().unwrap().clone();
                let late = playing.iter().find(|(begin, _)| begin.elapsed() > LIMIT);
                if let Some(world) = late.and_then(|(_, world)| world.upgrade()) {
                    world.fail("the program hangs");
                }
            }
        });
    }

    /// Plays programs for a few seconds. Most of a program is waiting, so many play at once.
    fn play_many(size: &Size) {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(watch);
        let _alone = live_bytes::ALONE.lock().unwrap();
        let limit = Instant::now() + Duration::from_secs(setting("SECONDS", 2));
        let first = setting("SEED", 1);
        future::sleep(Duration::ZERO).deadline(); // makes the process's timer
        let (mut seed, mut most) = (first, 0);
        while Instant::now() < limit || seed < first + 2 * AT_ONCE {
            let batch = seed..seed + 2 * AT_ONCE;
            std::thread::scope(|scope| {
                let play = |number| {
                    let seeds = batch.clone().skip(number as usize).step_by(AT_ONCE as usize);
                    scope.spawn(|| seeds.for_each(|seed| play_one(seed, size)))
                };
                let threads: Vec<_> = (0..AT_ONCE).map(play).collect();
                // Else what the threads keep may be left.
                threads
                    .into_iter()
                    .for_each(|thread| thread.join().expect("a panic ends the process"));
            });
            if seed == first {
                most = live_bytes::bytes() + 1_000_000; // what a process makes once, and its timer keeps for a while
            }
            let freed = || live_bytes::bytes() <= most;
            assert!(
                env::comes(freed),
                "programs that have ended keep {} bytes, not {most}",
                live_bytes::bytes()
            );
            seed = batch.end;
        }
        println!("{} programs", seed - first);
    }

    #[test]
    fn rule_02_every_timeout_of_a_random_program_runs_when_it_is_due() {
        play_many(&Size {
            phases: 16,
            actors: 2,
            operations: 3,
            burst: 4000,
            work: 300,
            jump: 300,
            rogue: false,
        });
    }

    #[test]
    fn rule_01_every_timeout_ends_once_whatever_user_code_does() {
        play_many(&Size {
            phases: 1,
            actors: 4,
            operations: 24,
            burst: 400,
            work: 30,
            jump: 300,
            rogue: true,
        });
    }
}

#[cfg(shuttle)]
#[test]
fn rule_02_every_timeout_of_a_random_program_runs_when_it_is_due() {
    use shuttle::rand::{Rng, thread_rng};
    const SIZE: Size =
        Size { phases: 8, actors: 2, operations: 3, burst: 70, work: 200, jump: 40, rogue: false };
    let program = || play::play(&play::World::new(thread_rng().r#gen(), &SIZE, any_timer));
    // A program is shorter than the histories of the other tests.
    shuttle::check_random(program, 5 * schedules::iterations());
}
