//! Every place in which the library calls code of its user, and what a panic there does: it ends
//! where it began. Other timeouts run on, `stop` returns, and the counts are right (rule 5).
//!
//! | code of the user | runs on | a panic is | shown by |
//! |---|---|---|---|
//! | task: `run` | worker, executor | caught, counted | `rule_05_a_panic_in_a_run_is_contained` |
//! | task: `cancelled` | whoever cancels; the worker, after the last handle | caught, counted | `rule_05_a_panic_in_a_cancel_callback_is_contained` |
//! | task: drop of its captures, after its run | worker, executor | caught, counted | `rule_05_a_panic_in_the_drop_of_captures_after_a_run_is_contained` |
//! | task: drop, when it is cancelled | as `cancelled` | caught, counted | `rule_05_a_panic_in_the_drop_of_a_cancelled_task_is_contained` |
//! | task: drop, when an executor abandons its job | executor | caught, counted | `rule_05_a_panic_in_the_drop_of_an_abandoned_task_is_contained` |
//! | task: drop, when its timeout does not go on | worker, executor | caught, counted | `rule_05_a_panic_in_the_drop_of_a_task_cancelled_during_its_run_is_contained` |
//! | task: drop, when it is refused or returned | the caller, who has it | the caller's | `rule_05_a_panic_in_the_drop_of_a_task_given_back_is_the_callers` |
//! | payload of a panic: drop | where it is caught | caught | `rule_05_a_panic_in_the_drop_of_a_panic_payload_is_contained` |
//! | executor: `execute` | worker | caught, counted; the job is abandoned | `rule_05_a_panic_in_an_executor_is_contained` |
//! | callback for refused jobs | worker | as `execute` | `rule_05_a_panic_in_the_callback_for_refused_jobs_is_contained` |
//! | executor, callback for refused jobs: drop | worker, at its end | caught | `rule_05_panics_in_the_drops_of_an_executor_and_its_callback_are_contained` |
//! | clock: `now` | worker | caught, counted; the last time known counts | `rule_05_a_clock_that_panics_on_the_worker_stands_still_until_it_recovers*` |
//! | clock: `now` | a caller | the caller's, before anything is changed | `rule_05_a_panic_of_the_clock_on_a_caller_changes_nothing` |
//! | clock: `now` | an idle check | caught, counted; the check comes again | `rule_05_an_idle_check_whose_clock_panics_is_replaced*` |
//! | clock: `attach` | whoever builds | the caller's; no follower waits | `rule_05_a_panic_while_a_clock_is_attached_blocks_no_follower` |
//! | clock: drop | whoever has it last | caught | `rule_05_a_panic_in_the_drop_of_a_clock_is_contained` |
//! | idle callback | worker, executor | caught, counted by the manager | `rule_05_a_panic_in_an_idle_callback_is_contained` |
//! | watched connection: drop | worker, executor | caught | `rule_05_a_panic_in_the_drop_of_a_watched_connection_is_contained` |
//! | watched connection: drop, with its handle | whoever drops the handle | the caller's | `rule_05_a_panic_in_the_drop_of_a_watched_connection_is_contained` |
//! | waker: `wake` | worker; whoever resets a future, or stops the timer | caught, counted | `tests/future/sleep.rs`, `stop.rs` |
//! | waker: drop | whoever polls or drops a future | caught, counted | `tests/future/sleep.rs` |
//! | waker: clone | whoever polls a future | the caller's, before anything is changed | `tests/future/sleep.rs` |
//! | logger | any of them | caught | `tests/logger.rs` |
//!
//! No library can contain three panics, because the language aborts the process: one in a drop while
//! another panic unwinds through the value, one in the panic hook, and one in the drop of a
//! thread-local.

mod common;

use common::{Mutex, Record, TICK, assert_conserved, eventually, manual, manual_with, ms};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use wheelwork::executor::{Job, OnRefusal};
use wheelwork::idle::{Answer, IdleKind, IdlePolicy, IdleTimeouts};
use wheelwork::time::{Follower, Pace};
use wheelwork::{
    Clock, Executor, HashedWheelTimer, ManualClock, Next, Period, Run, ScheduleError, Timeout,
    TimerTask,
};

/// Panics when it is dropped, unless it is disarmed.
struct Bomb(bool);

impl Bomb {
    fn armed() -> Self {
        Self(true)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0, "a bad drop");
    }
}

/// After a panic: the timer takes timeouts, runs them, stops, and has lost count of nothing.
#[track_caller]
fn assert_unhurt(timer: &HashedWheelTimer, clock: &ManualClock) {
    let ran = Record::new();
    timer.new_timeout(ran.note(()), TICK).unwrap();
    timer.new_timeout(|| (), Duration::MAX).unwrap();
    clock.advance(TICK * 2);
    assert_eq!(ran.len(), 1, "others run on");
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(timer);
}

fn bad_task() {
    panic!("a bad task");
}

#[test]
fn rule_05_a_panic_in_a_run_is_contained() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let bad = timer.new_timeout(|| panic!("a bad task"), TICK).unwrap();
    let series = timer.new_periodic(bad_task, Period::fixed_rate(TICK)).unwrap();
    timer.new_timeout(ran.note("the same tick"), TICK).unwrap();
    clock.advance(TICK * 3);
    assert_eq!(ran.take(), ["the same tick"]);
    assert!(bad.is_expired() && series.is_expired(), "and a series ends");
    assert_eq!((timer.metrics().panicked, timer.metrics().expired), (2, 3));
    assert_unhurt(&timer, &clock);
}

struct BadCancel(Record<&'static str>);

impl TimerTask for BadCancel {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        Next::done()
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.0.push("told");
        panic!("a bad cancelled callback");
    }
}

#[test]
fn rule_05_a_panic_in_a_cancel_callback_is_contained() {
    let (timer, clock) = manual();
    let told = Record::new();
    let timeout = timer.new_timeout(BadCancel(told.clone()), TICK).unwrap();
    assert!(timeout.cancel() && timeout.is_cancelled());
    assert_eq!((told.take(), timer.metrics().panicked), (vec!["told"], 1));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_panics_in_cancel_callbacks_after_the_last_handle_are_contained() {
    let (timer, _clock) = manual();
    let told = Record::new();
    let pending = [1, 2, 3].map(|n| timer.new_timeout(BadCancel(told.clone()), TICK * n).unwrap());
    drop(timer);
    eventually("all are told", || told.len() == 3);
    assert!(pending.iter().all(Timeout::is_cancelled));
}

#[test]
fn rule_05_a_panic_in_the_drop_of_captures_after_a_run_is_contained() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let (record, bomb) = (ran.clone(), Bomb::armed());
    let task = move || {
        let _bomb = &bomb;
        record.push("ran");
    };
    timer.new_timeout(task, TICK).unwrap();
    clock.advance(TICK);
    assert_eq!((ran.take(), timer.metrics().panicked), (vec!["ran"], 1));
    assert_unhurt(&timer, &clock);
}

fn with_a_bomb() -> impl FnOnce() + Send + 'static {
    let bomb = Bomb::armed();
    move || drop(bomb)
}

#[test]
fn rule_05_a_panic_in_the_drop_of_a_cancelled_task_is_contained() {
    let (timer, clock) = manual();
    assert!(timer.new_timeout(with_a_bomb(), TICK).unwrap().cancel());
    drop(timer.new_timeout(with_a_bomb(), TICK).unwrap().cancel_on_drop());
    assert_eq!((timer.metrics().panicked, timer.metrics().cancelled), (2, 2));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_a_panic_in_the_drop_of_an_abandoned_task_is_contained() {
    let dropped = AtomicUsize::new(0);
    let executor = move |job: Job| match dropped.fetch_add(1, SeqCst) {
        0 => {
            drop(job);
            Ok(())
        }
        _ => Err(job),
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let timeout = timer.new_timeout(with_a_bomb(), TICK).unwrap();
    clock.advance(TICK);
    assert!(timeout.is_cancelled());
    assert_eq!((timer.metrics().panicked, timer.metrics().abandoned), (1, 1));
    assert_unhurt(&timer, &clock);
}

/// The panic is the caller's own. The timer has let go of the task before.
#[test]
fn rule_05_a_panic_in_the_drop_of_a_task_given_back_is_the_callers() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(2));
    let pending = [(); 2].map(|()| timer.new_timeout(|| (), TICK).unwrap());
    let refused = timer.new_timeout(with_a_bomb(), TICK).unwrap_err();
    assert!(matches!(refused, ScheduleError::LimitReached { .. }));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(refused))).is_err());
    assert!(pending.iter().all(Timeout::cancel));
    timer.new_timeout(with_a_bomb(), TICK).unwrap();
    let mut returned = timer.stop().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(returned.pop()))).is_err());
    assert_eq!((timer.pending_timeouts(), timer.metrics().returned), (0, 1));
    assert_conserved(&timer);
    clock.advance(TICK);
}

#[test]
fn rule_05_a_panic_in_the_drop_of_a_panic_payload_is_contained() {
    let (timer, clock) = manual();
    timer.new_timeout(|| panic_any(Bomb::armed()), TICK).unwrap();
    clock.advance(TICK);
    assert_eq!(timer.metrics().panicked, 1);
    assert_unhurt(&timer, &clock);
}

/// An executor that panics for its first jobs and refuses the others.
fn bad_for(jobs: usize) -> impl Executor {
    let calls = AtomicUsize::new(0);
    move |job: Job| -> Result<(), Job> {
        assert!(calls.fetch_add(1, SeqCst) >= jobs, "a bad executor");
        Err(job)
    }
}

#[test]
fn rule_05_a_panic_in_an_executor_is_contained() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(bad_for(2)));
    let told = Record::new();
    let bad = timer.new_timeout(BadCancel(told.clone()), TICK).unwrap();
    timer.new_timeout(with_a_bomb(), TICK).unwrap();
    clock.advance(TICK);
    assert!(bad.is_cancelled());
    let metrics = timer.metrics();
    // The executor twice, a task that was told of its cancel, and one that was dropped.
    assert_eq!((metrics.panicked, metrics.abandoned, metrics.cancelled), (4, 2, 2));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_a_panic_in_the_callback_for_refused_jobs_is_contained() {
    let calls = AtomicUsize::new(0);
    let callback = OnRefusal::callback(move |job: Job| {
        assert!(calls.fetch_add(1, SeqCst) > 0, "a bad callback");
        job.run();
    });
    let builder = HashedWheelTimer::builder().executor(bad_for(0)).on_refusal(callback);
    let (timer, clock) = manual_with(builder);
    let bad = timer.new_timeout(with_a_bomb(), TICK).unwrap();
    clock.advance(TICK);
    assert!(bad.is_cancelled());
    assert_eq!((timer.metrics().panicked, timer.metrics().abandoned), (2, 1));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_panics_in_the_drops_of_an_executor_and_its_callback_are_contained() {
    struct BadDrop {
        _bomb: Bomb,
    }
    impl Executor for BadDrop {
        fn execute(&self, job: Job) -> Result<(), Job> {
            Err(job)
        }
    }
    for armed in [(true, false), (false, true), (true, true)] {
        let (executor, bomb) = (BadDrop { _bomb: Bomb(armed.0) }, Bomb(armed.1));
        let callback = OnRefusal::callback(move |job| {
            let _bomb = &bomb;
            job.run();
        });
        let builder = HashedWheelTimer::builder().executor(executor).on_refusal(callback);
        let (timer, clock) = manual_with(builder);
        assert_unhurt(&timer, &clock);
    }
}

/// The system's clock, which panics while it is told to, on one thread.
#[derive(Clone)]
struct BadClock {
    on: &'static str,
    bad: Arc<AtomicBool>,
    panics: Arc<AtomicUsize>,
}

impl BadClock {
    fn on_the_worker() -> Self {
        Self { on: WORKER, bad: Arc::default(), panics: Arc::default() }
    }

    fn panics(&self) -> usize {
        self.panics.load(SeqCst)
    }
}

const WORKER: &str = "panics-worker";

impl Clock for BadClock {
    fn now(&self) -> Instant {
        if self.bad.load(SeqCst) && std::thread::current().name() == Some(self.on) {
            self.panics.fetch_add(1, SeqCst);
            panic!("a bad clock");
        }
        Instant::now()
    }
}

fn on_a_bad_clock(clock: &BadClock) -> HashedWheelTimer {
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).thread_name(WORKER);
    builder.clock(clock.clone()).build().unwrap()
}

/// Time stands still for the worker until its clock is well again: nothing is early, nothing is lost,
/// and the worker asks a few times in each tick.
#[test]
fn rule_05_a_clock_that_panics_on_the_worker_stands_still_until_it_recovers() {
    let clock = BadClock::on_the_worker();
    let timer = on_a_bad_clock(&clock);
    let ran = Record::new();
    for n in 0..50 {
        let due = Instant::now() + ms(n);
        let record = ran.clone();
        timer.new_timeout_at(move || record.push((due, Instant::now())), due).unwrap();
    }
    timer.new_timeout(|| (), Duration::from_secs(3600)).unwrap(); // something to wait for
    eventually("some have run", || ran.len() > 5);
    let begun = Instant::now();
    clock.bad.store(true, SeqCst);
    eventually("the clock panics", || clock.panics() > 9);
    let so_far = ran.len();
    std::thread::sleep(ms(50));
    assert!(ran.len() <= so_far + 20, "only what was due by the last time known");
    let ticks = begun.elapsed().as_millis() as usize + 1;
    assert!(clock.panics() <= 10 * ticks, "{} in {ticks} ticks: a busy loop", clock.panics());
    clock.bad.store(false, SeqCst);
    eventually("all have run", || ran.len() == 50);
    assert!(ran.take().iter().all(|(due, at)| at >= due), "early");
    assert_eq!((timer.stop().unwrap().len(), timer.pending_timeouts()), (1, 0));
    assert_eq!(timer.metrics().panicked as usize, clock.panics());
    assert_conserved(&timer);
}

/// One panic, at the wake-up for a timeout, does not put it off by its whole delay again.
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
    let late = ran.take()[0] - due;
    assert_eq!((clock.panics(), timer.metrics().panicked), (1, 1));
    assert!(late < ms(300), "{late:?} late");
}

/// A clock that moves in jumps, and panics at the worker's first look after one.
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
    clock.0.advance(TICK);
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

/// The panic is the caller's own: no place in the quota is lost, no deadline is moved.
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

/// The task panics then. Its timeout has ended and gives its place back.
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

const EXECUTOR: &str = "panics-executor";

/// A timer whose clock is bad where its jobs run, and the jobs.
fn with_a_bad_clock_in_jobs() -> (HashedWheelTimer, BadClock, mpsc::Receiver<Job>) {
    let clock = BadClock { on: EXECUTOR, ..BadClock::on_the_worker() };
    clock.bad.store(true, SeqCst);
    let (sender, jobs) = mpsc::channel::<Job>();
    let sender = Mutex::new(sender);
    let executor = move |job| sender.lock().unwrap().send(job).map_err(|refused| refused.0);
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).executor(executor);
    (builder.clock(clock.clone()).build().unwrap(), clock, jobs)
}

fn run_where_the_clock_is_bad(job: Job) {
    let builder = std::thread::Builder::new().name(EXECUTOR.to_owned());
    builder.spawn(move || job.run()).unwrap().join().expect("it is contained");
}

/// A manager that answers every event alike, and the events that it reported.
fn a_recording_manager(
    timer: &HashedWheelTimer,
    answer: Answer,
) -> (IdleTimeouts<u32>, Record<(u32, IdleKind)>) {
    let events = Record::new();
    let record = events.clone();
    let idle = IdleTimeouts::new(timer, move |id: &mut u32, event| {
        record.push((*id, event.kind));
        answer
    });
    (idle, events)
}

/// The check is dropped by the panic, and another takes its place.
#[test]
fn rule_05_an_idle_check_whose_clock_panics_is_replaced() {
    let (timer, clock, jobs) = with_a_bad_clock_in_jobs();
    let (idle, events) = a_recording_manager(&timer, Answer::StopWatching);
    let policy = IdlePolicy::new().all(ms(1));
    let watches = [1, 2].map(|id| idle.watch(id, &policy).unwrap());
    run_where_the_clock_is_bad(jobs.recv().unwrap());
    assert_eq!((clock.panics(), events.len(), idle.watched()), (1, 0, 2));
    while events.len() < 2 {
        jobs.recv_timeout(Duration::from_secs(60)).expect("another check").run();
    }
    assert!(events.take().iter().all(|&(_, kind)| kind == IdleKind::All));
    assert_eq!((idle.watched(), timer.metrics().panicked), (0, 1));
    drop(watches);
    assert!(timer.stop().unwrap().is_empty());
    assert_conserved(&timer);
}

/// The timer stops meanwhile: the check that is dropped by the panic cannot be replaced, and reports
/// everybody, without the time.
#[test]
fn rule_05_an_idle_check_whose_clock_panics_still_reports_a_stop() {
    let (timer, clock, jobs) = with_a_bad_clock_in_jobs();
    let (idle, events) = a_recording_manager(&timer, Answer::KeepWatching);
    let policy = IdlePolicy::new().all(ms(1));
    let watches = [1, 2].map(|id| idle.watch(id, &policy).unwrap());
    let check = jobs.recv().unwrap();
    assert!(timer.stop().unwrap().is_empty(), "the check is with the executor");
    run_where_the_clock_is_bad(check);
    assert!(clock.panics() > 0);
    let mut events = events.take();
    events.sort_by_key(|&(id, _)| id);
    assert_eq!(events, [(1, IdleKind::TimerStopped), (2, IdleKind::TimerStopped)]);
    assert_eq!((idle.watched(), timer.metrics().panicked), (0, 1));
    drop(watches);
}

/// The panic is the caller's own. A follower that waits already goes on.
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

/// See also `tests/idle.rs`.
#[test]
fn rule_05_a_panic_in_an_idle_callback_is_contained() {
    let (timer, clock) = manual();
    let calls = Record::new();
    let record = calls.clone();
    let idle = IdleTimeouts::batched(&timer, move |batch| {
        record.push(batch.len());
        panic!("a bad callback");
    });
    let policy = IdlePolicy::new().all(TICK);
    let watches = [1, 2].map(|id| idle.watch(id, &policy).unwrap());
    (0..3).for_each(|_| clock.advance(TICK));
    assert!(idle.panicked() >= 1 && calls.len() as u64 == idle.panicked());
    assert_eq!((idle.watched(), timer.metrics().panicked), (2, 0), "they are watched on");
    drop(watches);
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_a_panic_in_the_drop_of_a_watched_connection_is_contained() {
    let (timer, clock) = manual();
    let idle = IdleTimeouts::new(&timer, |_: &mut Bomb, _| Answer::StopWatching);
    let policy = IdlePolicy::new().all(TICK);
    let reported = [(); 2].map(|()| idle.watch(Bomb::armed(), &policy).unwrap());
    (0..3).for_each(|_| clock.advance(TICK));
    assert_eq!((idle.watched(), timer.metrics().panicked), (0, 0));
    drop(reported);
    let watch = idle.watch(Bomb::armed(), &policy).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(watch))).is_err(), "it is the caller's");
    assert_eq!(idle.watched(), 0);
    assert_unhurt(&timer, &clock);
}

/// The timeout was cancelled during a run that would have it go on.
#[test]
fn rule_05_a_panic_in_the_drop_of_a_task_cancelled_during_its_run_is_contained() {
    struct Lasting;
    impl TimerTask for Lasting {
        fn run(self, run: &Run<'_>) -> Next<Self> {
            assert!(!run.timeout().cancel(), "it runs already");
            Next::after(self, TICK)
        }
    }
    impl Drop for Lasting {
        fn drop(&mut self) {
            panic!("a bad drop");
        }
    }
    let (timer, clock) = manual();
    let timeout = timer.new_timeout(Lasting, TICK).unwrap();
    clock.advance(TICK);
    assert!(timeout.is_expired());
    assert_eq!(timer.metrics().panicked, 1);
    assert_unhurt(&timer, &clock);
}
