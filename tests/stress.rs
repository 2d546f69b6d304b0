//! Real threads at random: producers, cancels, reschedules, tasks that panic, executors that refuse, and
//! a stop at a random moment, over and over with new timers. In the end every timeout is accounted for.
//!
//! `WHEELWORK_STRESS_SECONDS` changes the time from 3 s. `WHEELWORK_STRESS_TIMEOUTS` and
//! `WHEELWORK_STRESS_STOPS` are the least numbers of each that a run must reach.

mod common;

use common::{Random, WHEELS, assert_conserved, ms, sized};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wheelwork::executor::{Job, OnRefusal, ThreadPool};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, Timeout, Unprocessed};

/// The number of tasks that ended in each way.
#[derive(Default)]
struct Ends {
    run: AtomicU64,
    cancelled: AtomicU64,
}

/// A task that counts its end, and sometimes panics or repeats.
struct Tracked {
    ends: Arc<Ends>,
    due: Instant,
    kind: u64,
    has_run: bool,
}

/// A task that is dropped after a run has ended by that run.
impl Drop for Tracked {
    fn drop(&mut self) {
        if self.has_run {
            self.ends.run.fetch_add(1, SeqCst);
        }
    }
}

impl TimerTask for Tracked {
    fn run(mut self, _run: &Run<'_>) -> Next<Self> {
        assert!(Instant::now() >= self.due, "never early");
        if self.kind % 16 == 1 {
            self.kind = 0;
            self.due = Instant::now() + ms(1);
            self.has_run = true;
            let due = self.due;
            return Next::at(self, due);
        }
        self.has_run = true;
        assert!(self.kind % 16 != 2, "a bad task, on purpose");
        Next::done()
    }

    fn cancelled(mut self, _timeout: &Timeout) {
        self.has_run = false;
        self.ends.cancelled.fetch_add(1, SeqCst);
        assert!(self.kind % 16 != 3, "a bad callback, on purpose");
    }
}

/// Counts the returned tasks. A repeating task that is returned has not ended by its last run.
fn count(returned: Vec<Unprocessed>) -> u64 {
    let tasks =
        returned.into_iter().map(|unprocessed| unprocessed.into_task().downcast::<Tracked>());
    tasks.map(|task| task.expect("tracked").has_run = false).count() as u64
}

fn produce(timer: &HashedWheelTimer, ends: &Arc<Ends>, random: &mut Random) -> (u64, u64) {
    let (mut accepted, mut refused) = (0, 0);
    let mut held: Vec<Timeout> = Vec::new();
    while refused < 3 {
        let delay = Duration::from_micros(random.below(8000));
        let kind = random.next();
        let task =
            Tracked { ends: ends.clone(), due: Instant::now() + delay, kind, has_run: false };
        match timer.new_timeout(task, delay) {
            Ok(timeout) => {
                accepted += 1;
                held.push(timeout);
            }
            Err(error) => {
                refused += 1;
                drop(error.into_task());
            }
        }
        if held.len() > 64 {
            let pick = held.swap_remove(random.below(64) as usize);
            match random.below(4) {
                0 => _ = pick.cancel(),
                1 => _ = pick.clone().cancel(),
                // Later, so that `due` stays true.
                2 => _ = pick.reschedule(Duration::from_millis(9 + random.below(5))),
                _ => {}
            }
        }
    }
    (accepted, refused)
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(format!("WHEELWORK_STRESS_{name}"));
    value.map_or(default, |value| value.parse().expect("a number"))
}

#[test]
fn rule_01_every_timeout_ends_in_exactly_one_way() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        if !text.contains("on purpose") {
            eprintln!("{text}");
        }
    }));
    let limit = Instant::now() + Duration::from_secs(setting("SECONDS", 3));
    let (least_timeouts, least_stops) = (setting("TIMEOUTS", 0), setting("STOPS", 16));
    let pool = ThreadPool::with_size(2, 16).unwrap();
    let mut random = Random(6);
    let (mut timeouts, mut stops) = (0, 0);
    while Instant::now() < limit || stops < least_stops || timeouts < least_timeouts {
        let (wheel, buckets) = (WHEELS[(stops / 4) as usize % WHEELS.len()], 1 << random.below(8));
        let tick = Duration::from_micros(50 + random.below(2000));
        let builder = sized(wheel, buckets).tick_duration(tick);
        let calls = AtomicU64::new(random.next());
        let fickle = move |job: Job| {
            if calls.fetch_add(1, SeqCst) % 3 == 0 {
                return Err(job);
            }
            job.run();
            Ok(())
        };
        let builder = match stops % 4 {
            0 => builder,
            1 => builder.executor(pool.clone()),
            2 => builder.executor(pool.clone()).on_refusal(OnRefusal::Wait),
            _ => builder.executor(fickle),
        };
        let timer = builder.build().unwrap();
        let ends = Arc::new(Ends::default());
        let (accepted, returned) = std::thread::scope(|scope| {
            let producers: Vec<_> = (0..2)
                .map(|_| {
                    let mut random = Random(random.next());
                    let (timer, ends) = (&timer, &ends);
                    scope.spawn(move || produce(timer, ends, &mut random).0)
                })
                .collect();
            std::thread::sleep(Duration::from_micros(random.below(20_000)));
            let returned = count(timer.stop().unwrap());
            (producers.into_iter().map(|p| p.join().unwrap()).sum::<u64>(), returned)
        });
        // What was handed to the pool before the stop still runs.
        let ended = || ends.run.load(SeqCst) + ends.cancelled.load(SeqCst) + returned;
        common::eventually("every job has run", || ended() >= accepted);
        assert_eq!(ended(), accepted, "{:?}", timer.metrics());
        assert_eq!(timer.pending_timeouts(), 0);
        assert_conserved(&timer);
        timeouts += accepted;
        stops += 1;
    }
    println!("{timeouts} timeouts, {stops} stops");
}
