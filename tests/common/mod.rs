//! Helpers of the tests: a timer on a manual clock, and a record of what ran.
// Each test file compiles this for itself and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod examples;
mod gate;
pub mod wakers;
mod wheels;
#[allow(unused_imports)] // likewise
pub use self::{
    gate::{Gate, blocking_task},
    wheels::{WHEELS, sized},
};

use std::sync::Arc;
use std::time::{Duration, Instant};
use wheelwork::executor::Job;
use wheelwork::timer::{Builder, WheelKind};
use wheelwork::{HashedWheelTimer, ManualClock, Timeout};

#[allow(unused_imports)] // likewise
pub use kit::Random;
pub use std::sync::Mutex;

pub const TICK: Duration = Duration::from_millis(100);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Uptimes at which timers of others hung: some overflow a counter of milliseconds or of their ticks.
pub const UPTIMES: [Duration; 3] = [
    Duration::from_millis(1 << 30),
    Duration::from_millis(1 << 36),
    Duration::from_secs(10 * 365 * 86_400),
];

/// A timer with a tick of 1 ms on a manual clock, half a second before an uptime.
pub fn shortly_before(uptime: Duration) -> (HashedWheelTimer, ManualClock) {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().tick_duration(ms(1)));
    clock.advance_in_one_jump(uptime - ms(500));
    (timer, clock)
}

/// Without a subscriber, a `tracing` that has its feature `log` passes its events on, and each line would come twice.
/// Some package of the workspace turns that feature on.
pub fn keep_events_from_the_log() {
    #[cfg(feature = "tracing")]
    let _ = tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::new());
}

/// A timer on a manual clock, with the default tick of 100 ms.
pub fn manual() -> (HashedWheelTimer, ManualClock) {
    manual_with(HashedWheelTimer::builder())
}

pub fn manual_with(builder: Builder) -> (HashedWheelTimer, ManualClock) {
    let clock = ManualClock::new();
    let timer = builder.clock(clock.clone()).build().expect("a timer with these settings");
    (timer, clock)
}

/// Moves the timeouts that this thread scheduled last, up to about 60, into the wheel. The worker looks at
/// them once one of them is due, and files the nearer half each time. So this takes some ticks, in which one
/// more timeout is due.
pub fn into_the_wheel(timer: &HashedWheelTimer, clock: &ManualClock) {
    for _ in 0..LOOKS {
        one_look(timer, clock);
        if timer.queue_depth() == 0 {
            return;
        }
    }
    panic!("{} timeouts are not in the wheel", timer.queue_depth());
}

/// Lets the worker look at the timeouts that this thread scheduled last.
pub fn one_look(timer: &HashedWheelTimer, clock: &ManualClock) {
    timer.new_timeout(|| (), Duration::ZERO).expect("a timer that runs");
    clock.advance_in_one_jump(timer.tick_duration());
}

/// After this many looks at a chunk, all of its timeouts are in the wheel.
const LOOKS: usize = 8;

/// Schedules many timeouts, and moves about half of them into the wheel: some are due soon, so the worker
/// looks at all, once.
pub fn partly_in_the_wheel(
    timer: &HashedWheelTimer,
    clock: &ManualClock,
    count: u64,
    mut schedule: impl FnMut(u64) -> Timeout,
) -> Vec<Timeout> {
    let before = timer.queue_depth();
    let timeouts = (0..count).map(|n| {
        if n % 25 == 0 {
            timer.new_timeout(|| (), Duration::ZERO).expect("a timer that runs");
        }
        schedule(n)
    });
    let timeouts = timeouts.collect();
    clock.advance_in_one_jump(timer.tick_duration());
    let left = (timer.queue_depth() - before) as u64;
    assert!(left < count * 2 / 3, "{left} of {count} are not in the wheel");
    timeouts
}

/// An executor that runs each job on the worker.
pub fn run_here(job: Job) -> Result<(), Job> {
    job.run();
    Ok(())
}

pub fn on(wheel: WheelKind) -> Builder {
    HashedWheelTimer::builder().wheel(wheel)
}

/// Makes a test of each function for each wheel; the function is told which.
#[macro_export]
macro_rules! on_every_wheel {
    ($($test:ident),* $(,)?) => { $(mod $test {
        use wheelwork::timer::WheelKind;
        #[test]
        fn hashed() {
            super::$test(WheelKind::Hashed);
        }
        #[test]
        fn hierarchical() {
            super::$test(WheelKind::Hierarchical);
        }
        #[test]
        fn linux_classic() {
            super::$test(WheelKind::LinuxClassic);
        }
    })* };
}

/// A list that threads append to, mostly of what ran.
pub struct Record<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Record<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + 'static> Record<T> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn push(&self, value: T) {
        self.0.lock().unwrap().push(value);
    }

    /// A task that notes `value`.
    pub fn note(&self, value: T) -> impl FnOnce() + Send + 'static {
        let record = self.clone();
        move || record.push(value)
    }

    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Waits until `holds` is true. Fails the test after a minute.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "never came: {what}");
        std::thread::sleep(ms(1));
    }
}

/// Asserts that every timeout is accounted for.
pub fn assert_conserved(timer: &HashedWheelTimer) {
    let m = timer.metrics();
    assert_eq!(m.scheduled + m.rearmed, m.expired + m.cancelled + m.returned + m.pending, "{m:?}");
    assert_eq!(m.pending as usize, timer.pending_timeouts());
}
