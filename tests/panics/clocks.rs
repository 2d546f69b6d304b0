//! Panics of clocks.

use super::{BadClock, WORKER, assert_unhurt};
use crate::common::{Record, TICK, assert_conserved, eventually, ms};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use wheelwork::executor::ThreadPool;
use wheelwork::future::DelayQueue;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::time::{Clock, Follower, Pace};
use wheelwork::{HashedWheelTimer, ManualClock, MissedTickBehavior, Period, Timeout};

/// The thread that schedules.
const SCHEDULER: &str = "panics-scheduler";

fn on_a_bad_clock(clock: &BadClock) -> HashedWheelTimer {
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).thread_name(WORKER);
    builder.clock(clock.clone()).build().unwrap()
}

/// Time stands still for the worker until its clock recovers. No timeout is early or lost, and the worker
/// reads the clock a few times in each tick.
#[test]
fn rule_05_a_clock_that_panics_on_the_worker_stands_still_until_it_recovers() {
    let clock = BadClock::on_the_worker();
    let timer = on_a_bad_clock(&clock);
    let ran = Record::new();
    let schedule = |delays: std::ops::Range<u64>| {
        for n in delays {
            let due = Instant::now() + ms(n);
            let record = ran.clone();
            timer.new_timeout_at(move || record.push((due, Instant::now())), due).unwrap();
        }
    };
    schedule(0..10);
    timer.new_timeout(|| (), Duration::from_secs(3600)).unwrap(); // something to wait for
    eventually("some have run", || ran.len() > 5);
    let begun = Instant::now();
    clock.bad.store(true, SeqCst);
    schedule(10..50); // or the worker may sleep, and read no clock
    eventually("the clock panics", || clock.panics() > 9);
    let so_far = ran.len();
    std::thread::sleep(ms(50));
    assert!(ran.len() <= so_far + 20, "only what was due by the last time known");
    let panics = clock.panics();
    let ticks = begun.elapsed().as_millis() as usize + 1;
    assert!(panics <= 10 * ticks, "{panics} in {ticks} ticks: a busy loop");
    clock.bad.store(false, SeqCst);
    eventually("all have run", || ran.len() == 50);
    assert!(ran.take().iter().all(|(due, at)| at >= due), "early");
    assert_eq!((timer.stop().unwrap().len(), timer.pending_timeouts()), (1, 0));
    assert_eq!(timer.metrics().panicked as usize, clock.panics());
    assert_conserved(&timer);
}

/// The panic comes at the wake-up for the timeout. A machine that is held up can delay it as well, but not each time.
#[test]
fn rule_05_one_panic_of_the_clock_does_not_delay_a_timeout_by_its_whole_delay() {
    #[derive(Clone)]
    struct OnceBad(BadClock);
    impl Clock for OnceBad {
        fn now(&self) -> Instant {
            let now = catch_unwind(AssertUnwindSafe(|| self.0.now()));
            self.0.bad.store(false, SeqCst);
            now.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }
    }
    eventually("it is late by less than its delay", || {
        let clock = BadClock::on_the_worker();
        let builder = HashedWheelTimer::builder().tick_duration(ms(1)).thread_name(WORKER);
        let timer = builder.clock(OnceBad(clock.clone())).build().unwrap();
        let ran = Record::new();
        let record = ran.clone();
        let due = Instant::now() + ms(500);
        timer.new_timeout_at(move || record.push(Instant::now()), due).unwrap();
        std::thread::sleep(ms(100)); // the worker sleeps
        clock.bad.store(true, SeqCst);
        eventually("it has run", || ran.len() == 1);
        (clock.panics(), timer.metrics().panicked) == (1, 1) && ran.take()[0] - due < ms(300)
    });
}

/// The clock panics when the worker first reads it after a jump.
#[test]
fn rule_05_a_panic_of_a_clock_that_moves_in_jumps_is_contained() {
    #[derive(Clone)]
    struct Jumps(ManualClock, BadClock);
    impl Clock for Jumps {
        fn now(&self) -> Instant {
            let bad = self.1.bad.load(SeqCst) && std::thread::current().name() == Some(WORKER);
            if bad {
                self.1.bad.store(false, SeqCst);
                panic!("a bad clock");
            }
            self.0.now()
        }
        fn attach(&self, follower: Follower) -> Pace {
            self.0.attach(follower)
        }
    }
    let clock = Jumps(ManualClock::new(), BadClock::on_the_worker());
    let builder = HashedWheelTimer::builder().thread_name(WORKER).clock(clock.clone());
    let timer = builder.build().unwrap();
    let ran = Record::new();
    timer.new_timeout(ran.note(()), TICK).unwrap();
    clock.1.bad.store(true, SeqCst);
    clock.0.advance_in_one_jump(TICK);
    eventually("it runs without another jump", || ran.len() == 1);
    assert_eq!(timer.metrics().panicked, 1);
    assert_unhurt(&timer, &clock.0);
}

/// A stop does not wait for the clock to recover.
#[test]
fn rule_05_a_clock_that_never_recovers_does_not_block_a_stop() {
    let clock = BadClock::on_the_worker();
    clock.bad.store(true, SeqCst);
    let timer = on_a_bad_clock(&clock);
    timer.new_timeout(|| (), ms(1)).unwrap();
    eventually("the clock panics", || clock.panics() > 20);
    assert!(timer.pending_timeouts() == 1, "it is not early");
    assert_eq!(timer.stop().unwrap().len(), 1);
    let timer = on_a_bad_clock(&clock);
    let pending = timer.new_timeout(|| (), ms(1)).unwrap();
    drop(timer);
    eventually("it is cancelled", || pending.is_cancelled());
}

/// The panic reaches the caller. No permit is lost, and no deadline moves.
#[test]
fn rule_05_a_panic_of_the_clock_on_a_caller_changes_nothing() {
    let name = "panics-caller";
    let clock = BadClock { on: name, ..BadClock::on_the_worker() };
    let builder = HashedWheelTimer::builder().clock(clock.clone()).max_pending_timeouts(1);
    let timer = builder.build().unwrap();
    let on_the_caller = |call: &(dyn Fn() + Sync)| {
        let builder = std::thread::Builder::new().name(name.to_owned());
        std::thread::scope(|scope| {
            let panicked = builder.spawn_scoped(scope, call).unwrap().join().is_err();
            assert!(panicked, "it is the caller's");
        });
    };
    clock.bad.store(true, SeqCst);
    for _ in 0..3 {
        on_the_caller(&|| drop(timer.new_timeout(|| (), ms(60_000))));
        on_the_caller(&|| drop(timer.new_periodic(|| (), Period::fixed_delay(ms(60_000)))));
    }
    let timeout = timer.new_timeout(|| (), ms(60_000)).expect("there is room");
    let deadline = timeout.deadline();
    on_the_caller(&|| _ = timeout.reschedule(ms(9)));
    on_the_caller(&|| drop(format!("{timeout:?}")));
    on_the_caller(&|| _ = timer.now());
    assert_eq!((timeout.deadline(), timer.pending_timeouts()), (deadline, 1));
    assert!(timeout.cancel());
    timer.new_timeout(|| (), ms(60_000)).expect("there is room again");
    assert_eq!(timer.metrics().scheduled, 2);
    assert_eq!((timer.stop().unwrap().len(), timer.metrics().panicked), (1, 0));
    assert_conserved(&timer);
}

/// A manual clock that panics on threads of one name.
#[derive(Clone)]
struct Failing {
    clock: ManualClock,
    on: &'static str,
    /// How many reads panic.
    left: Arc<AtomicU32>,
}

impl Clock for Failing {
    fn now(&self) -> Instant {
        if std::thread::current().name() == Some(self.on) {
            let fewer = |left: u32| left.checked_sub(1);
            assert!(self.left.fetch_update(SeqCst, SeqCst, fewer).is_err(), "a bad clock");
        }
        self.clock.now()
    }

    fn attach(&self, follower: Follower) -> Pace {
        self.clock.attach(follower)
    }
}

impl Failing {
    fn on(on: &'static str) -> Self {
        Self { clock: ManualClock::new(), on, left: Arc::default() }
    }

    fn fail(&self, times: u32) {
        self.left.store(times, SeqCst);
    }
}

/// A timer with room for one timeout, whose clock panics where the tasks run.
fn on_a_failing_clock(on_a_pool: bool) -> (HashedWheelTimer, Failing) {
    let clock = Failing::on(if on_a_pool { "wheelwork-pool-1" } else { WORKER });
    let mut builder = HashedWheelTimer::builder().thread_name(WORKER).clock(clock.clone());
    if on_a_pool {
        builder = builder.executor(ThreadPool::with_size(1, 10).unwrap());
    }
    (builder.max_pending_timeouts(1).build().unwrap(), clock)
}

/// A task that goes on one tick after each run. The clock fails while it runs, so that the next reads panic.
struct GoesOn {
    clock: Failing,
    at: Record<Duration>,
}

impl GoesOn {
    fn run_once(&self) {
        self.at.push(self.clock.clock.elapsed());
        self.clock.fail(1);
    }
}

impl TimerTask for GoesOn {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        self.run_once();
        Next::after(self, TICK)
    }
}

/// Schedules a task that runs each tick.
type Repeats = fn(&HashedWheelTimer, GoesOn) -> Timeout;

const REPEATS: [(&str, Repeats); 4] = [
    ("after", |timer, task| timer.new_timeout(task, TICK).map_err(drop).unwrap()),
    ("a fixed delay", |timer, task| periodic(timer, task, Period::fixed_delay(TICK))),
    ("a fixed rate", |timer, task| periodic(timer, task, Period::fixed_rate(TICK))),
    ("a fixed rate that skips", |timer, task| {
        periodic(timer, task, Period::fixed_rate_with(TICK, MissedTickBehavior::Skip))
    }),
];

fn periodic(timer: &HashedWheelTimer, task: GoesOn, period: Period) -> Timeout {
    timer.new_periodic(move || task.run_once(), period).map_err(drop).unwrap()
}

/// After each run, the clock panics once where the next run is scheduled. A fixed rate needs no clock there: no run is
/// lost, early or late. A delay from the end of the run begins at no time that is known, so its timeout is cancelled.
#[test]
fn rule_05_a_clock_that_panics_after_a_run_ends_only_what_counts_from_there() {
    for (name, repeats) in REPEATS {
        for on_a_pool in [false, true] {
            let (timer, clock) = on_a_failing_clock(on_a_pool);
            let at = Record::new();
            let task = GoesOn { clock: clock.clone(), at: at.clone() };
            let timeout = repeats(&timer, task);
            (0..20).for_each(|_| clock.clock.advance(TICK));
            let runs = if name.contains("rate") { 20 } else { 1 };
            let due = (1..=runs).map(|n| TICK * n).collect::<Vec<_>>();
            assert_eq!(at.take(), due, "{name}, on a pool: {on_a_pool}");
            assert_eq!(timer.metrics().panicked, u64::from(runs), "{name}, on a pool: {on_a_pool}");
            assert_eq!(timeout.is_cancelled(), runs == 1, "{name}, on a pool: {on_a_pool}");
            assert_eq!(timeout.cancel(), runs > 1);
            timer.new_timeout(|| (), TICK).expect("its permit is free");
            assert_eq!(timer.stop().unwrap().len(), 1);
            assert_conserved(&timer);
        }
    }
}

/// The clock panics after the first run, which is late. So the series does not know that the next ones are missed. It
/// keeps its beat nevertheless, and makes up for them.
#[test]
fn rule_05_a_clock_that_panics_after_a_late_run_does_not_shift_a_fixed_rate() {
    for on_a_pool in [false, true] {
        let (timer, clock) = on_a_failing_clock(on_a_pool);
        let at = Record::new();
        let (record, fails) = (at.clone(), clock.clone());
        let note = move || {
            fails.fail(u32::from(record.len() == 0));
            record.push(fails.clock.elapsed());
        };
        let every_tick = Period::fixed_rate_with(TICK, MissedTickBehavior::Burst);
        let _timeout = timer.new_periodic(note, every_tick).map_err(drop).unwrap();
        clock.clock.advance_in_one_jump(5 * TICK);
        clock.clock.advance(TICK);
        assert_eq!(at.take(), [5, 5, 5, 5, 5, 6].map(|n| TICK * n), "on a pool: {on_a_pool}");
        assert_eq!(timer.metrics().panicked, 1);
    }
}

/// A sleep is moved into the past, and the clock panics where the call looks whether it has passed. The task
/// is woken, since the time stands still and would never wake it.
#[test]
fn rule_05_a_reset_whose_clock_panics_wakes_the_task() {
    use crate::wakers::Alarm;
    let name = "panics-resets";
    let clock = Failing::on(name);
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    clock.clock.advance_in_one_jump(TICK);
    let (task, mut sleep) = (Alarm::new(), timer.sleep(TICK * 100));
    assert!(task.poll(&mut sleep).is_pending());
    clock.fail(1);
    let begin = timer.started_at();
    let builder = std::thread::Builder::new().name(name.to_owned());
    let resets = builder.spawn(move || {
        sleep.reset(begin);
        sleep
    });
    let mut sleep = resets.unwrap().join().expect("the panic is contained");
    assert_eq!(task.wakes(), 1);
    assert!(task.poll(&mut sleep).is_ready());
}

/// The clock panics at the item.
#[cfg(feature = "stream")]
#[test]
fn rule_05_a_stream_whose_clock_panics_loses_no_item() {
    use crate::wakers::Alarm;
    use futures_core::Stream;
    use std::pin::pin;
    use std::task::Poll;
    use wheelwork::future::{DelayQueue, TimedStreamExt};
    let name = "panics-stream";
    let clock = Failing::on(name);
    let (source, _source_clock) = crate::common::manual();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let items = || {
        let mut items = DelayQueue::new(&source);
        (1..=2).for_each(|item| _ = items.insert(item, Duration::ZERO));
        items.insert(3, Duration::from_secs(3600));
        items
    };
    let polls = || {
        let task = Alarm::new();
        let mut limited = pin!(items().timeout_on(&timer, TICK));
        clock.fail(1);
        for item in 1..=2 {
            let polled = limited.as_mut().poll_next(&mut task.context());
            assert!(matches!(polled, Poll::Ready(Some(Ok(next))) if next.value == item));
        }
        assert!(limited.as_mut().poll_next(&mut task.context()).is_pending());
        clock.clock.advance_in_one_jump(TICK);
        let polled = limited.as_mut().poll_next(&mut task.context());
        assert!(matches!(polled, Poll::Ready(Some(Err(_)))), "the second item had a limit again");

        let mut chunks = pin!(items().chunks_timeout_on(&timer, 2, TICK));
        clock.fail(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _ = chunks.as_mut().poll_next(&mut task.context());
        }));
        assert!(panicked.is_err(), "it is the caller's");
        let Poll::Ready(Some(chunk)) = chunks.as_mut().poll_next(&mut task.context()) else {
            panic!("the chunk is full")
        };
        assert_eq!(chunk.iter().map(|item| item.value).collect::<Vec<_>>(), [1, 2]);
    };
    let builder = std::thread::Builder::new().name(name.to_owned());
    std::thread::scope(|scope| builder.spawn_scoped(scope, polls).unwrap().join().unwrap());
}

/// The panic becomes the task's. Its timeout ends and releases its permit.
#[test]
fn rule_05_a_panic_of_the_clock_within_a_task_ends_its_timeout() {
    struct Asks(BadClock);
    impl TimerTask for Asks {
        fn run(self, run: &Run<'_>) -> Next<Self> {
            self.0.bad.store(true, SeqCst);
            let now = catch_unwind(AssertUnwindSafe(|| run.now()));
            self.0.bad.store(false, SeqCst);
            now.expect("the clock panics");
            Next::done()
        }
    }
    let clock = BadClock::on_the_worker();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).thread_name(WORKER);
    let timer = builder.clock(clock.clone()).max_pending_timeouts(1).build().unwrap();
    let timeout = timer.new_timeout(Asks(clock.clone()), ms(1)).unwrap();
    eventually("it has run", || timer.metrics().panicked == 1);
    assert!(timeout.is_expired());
    timer.new_timeout(|| (), ms(60_000)).expect("there is room again");
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert_conserved(&timer);
}

/// The panic reaches the caller. A follower that is waiting already goes on.
#[test]
fn rule_05_a_panic_while_a_clock_is_attached_blocks_no_follower() {
    #[derive(Clone)]
    struct BadAttach(Record<&'static str>);
    impl Clock for BadAttach {
        fn now(&self) -> Instant {
            Instant::now()
        }
        fn attach(&self, follower: Follower) -> Pace {
            let caught_up = self.0.clone();
            std::thread::spawn(move || {
                follower.catch_up();
                caught_up.push("caught up");
            });
            std::thread::sleep(ms(20));
            panic!("a bad clock");
        }
    }
    let caught_up = Record::new();
    let builder = HashedWheelTimer::builder().clock(BadAttach(caught_up.clone()));
    assert!(catch_unwind(AssertUnwindSafe(|| builder.build())).is_err());
    eventually("the follower goes on", || caught_up.len() == 1);
}

#[test]
fn rule_05_a_panic_in_the_drop_of_a_clock_is_contained() {
    struct BadDrop(ManualClock, Record<()>);
    impl Clock for BadDrop {
        fn now(&self) -> Instant {
            self.0.now()
        }
        fn attach(&self, follower: Follower) -> Pace {
            self.0.attach(follower)
        }
    }
    impl Drop for BadDrop {
        fn drop(&mut self) {
            self.1.push(());
            panic!("a bad clock");
        }
    }
    for last_is_a_handle in [true, false] {
        let (clock, dropped) = (ManualClock::new(), Record::new());
        let builder = HashedWheelTimer::builder().clock(BadDrop(clock.clone(), dropped.clone()));
        let timer = builder.build().unwrap();
        let timeout = timer.new_timeout(|| (), TICK).unwrap();
        assert_unhurt(&timer, &clock);
        let keeps = last_is_a_handle.then_some(timeout);
        drop(timer);
        drop(keeps);
        eventually("the clock is dropped", || dropped.len() == 1);
    }
}

/// It reads its clock when it files 64 new values, after an insertion, a reset or a removal.
#[test]
fn rule_05_a_delay_queue_is_unchanged_if_its_clock_panics() {
    let scheduler = std::thread::Builder::new().name(SCHEDULER.into());
    let keeps_its_values = |inserted: u32| {
        let clock = Failing::on(SCHEDULER);
        let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
        let due = timer.started_at() + TICK;
        let mut context = Context::from_waker(Waker::noop());
        let mut queue = DelayQueue::new(&timer);
        let keys: Vec<_> = (0..64).map(|n| queue.insert_at(n, due + TICK)).collect();
        assert!(queue.poll_next_due(&mut context).is_pending()); // none is new
        let on_bad_clock = |change: &mut dyn FnMut()| {
            clock.fail(1);
            change();
        };
        (0..inserted).for_each(|n| on_bad_clock(&mut || _ = queue.insert_at(n, due + TICK)));
        on_bad_clock(&mut || assert_eq!(queue.remove(keys[0]), Some(0)));
        keys[1..].iter().for_each(|key| on_bad_clock(&mut || _ = queue.reset_at(*key, due)));
        clock.fail(0);
        clock.clock.advance_in_one_jump(3 * TICK);
        while let Poll::Ready(Some(_)) = queue.poll_next_due(&mut context) {}
        assert!(queue.is_empty(), "{} never come out", queue.len());
    };
    let all = move || [2, 63, 300].into_iter().for_each(keeps_its_values);
    scheduler.spawn(all).unwrap().join().unwrap();
}
