//! Virtual time that visits each deadline: `advance`, `advance_to_next`, and runs of futures.

use crate::common::{Random, Record, TICK, WHEELS, eventually, manual, manual_with, ms, on};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use wheelwork::executor::{Job, ThreadPool};
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::time::{Clock, Follower, Pace};
use wheelwork::timer::Builder;
use wheelwork::{HashedWheelTimer, ManualClock, Period, Timeout};

const HOUR: Duration = Duration::from_secs(3600);

fn pool() -> ThreadPool {
    ThreadPool::with_size(2, 1000).unwrap()
}

/// A timer whose tasks run on the worker, and one whose tasks run on a pool.
fn both() -> [Builder; 2] {
    [HashedWheelTimer::builder(), HashedWheelTimer::builder().executor(pool())]
}

/// An attempt that fails, and tries again after twice the pause.
struct Attempt {
    pause: Duration,
    left: u32,
    at: Record<Duration>,
    clock: ManualClock,
}

impl TimerTask for Attempt {
    fn run(mut self, _run: &Run<'_>) -> Next<Self> {
        self.at.push(self.clock.elapsed());
        if self.left == 0 {
            return Next::done();
        }
        (self.left, self.pause) = (self.left - 1, self.pause * 2);
        let pause = self.pause / 2;
        Next::after(self, pause)
    }
}

#[test]
fn a_retry_runs_at_0_100_and_300_ms() {
    for builder in both() {
        let (timer, clock) = manual_with(builder.tick_duration(ms(10)));
        let at = Record::new();
        let attempt = Attempt { pause: ms(100), left: 2, at: at.clone(), clock: clock.clone() };
        timer.new_timeout(attempt, Duration::ZERO).unwrap();
        clock.advance(Duration::from_secs(10));
        assert_eq!(at.take(), [ms(10), ms(110), ms(310)], "a delay of zero means the next tick");
        assert_eq!(clock.elapsed(), Duration::from_secs(10));
    }
}

#[test]
fn idle_30_s_and_drain_10_s_is_closed_after_60_s() {
    for builder in both() {
        let (timer, clock) = manual_with(builder);
        let state = Arc::new(Mutex::new(vec!["open"]));
        let (own, drains, now) = (timer.clone(), state.clone(), clock.clone());
        let idle = move || {
            drains.lock().unwrap().push("draining");
            let close = move || {
                assert_eq!(now.elapsed(), Duration::from_secs(40));
                drains.lock().unwrap().push("closed");
            };
            own.new_timeout(close, Duration::from_secs(10)).unwrap();
        };
        timer.new_timeout(idle, Duration::from_secs(30)).unwrap();
        clock.advance(Duration::from_secs(60));
        assert_eq!(*state.lock().unwrap(), ["open", "draining", "closed"]);
    }
}

/// An hour has 36,000 ticks, and something is due in 3,601 of them.
#[test]
fn an_hour_is_visited_only_where_something_is_due() {
    let (timer, clock) = manual();
    let (seconds, now) = (Record::new(), clock.clone());
    let beats = seconds.clone();
    timer.new_periodic(move || beats.push(now.elapsed()), Duration::from_secs(1)).unwrap();
    timer.new_timeout(|| (), ms(1_800_050)).unwrap();
    clock.advance(HOUR);
    assert_eq!(seconds.take(), (1..=3600).map(Duration::from_secs).collect::<Vec<_>>());
    assert_eq!(timer.metrics().expired, 3601);
    assert_eq!(timer.metrics().ticks_skipped, 36_000 - 3_601);
}

/// Each task schedules up to two others, at any delay. Each runs in the first tick after its deadline.
#[test]
fn every_task_of_a_random_tree_runs_in_its_own_tick() {
    #[derive(Clone)]
    struct World {
        timer: HashedWheelTimer,
        clock: ManualClock,
        random: Arc<Mutex<Random>>,
        ran: Record<(Duration, Duration)>,
    }
    fn grow(world: &World, depth: u32) {
        let delay = {
            let mut random = world.random.lock().unwrap();
            let magnitude = random.below(36);
            Duration::from_nanos(random.below(1 << magnitude))
        };
        let (due, own) = (world.clock.elapsed() + delay, world.clone());
        let task = move || {
            own.ran.push((due, own.clock.elapsed()));
            let children = if depth == 0 { 0 } else { own.random.lock().unwrap().below(3) };
            (0..children).for_each(|_| grow(&own, depth - 1));
        };
        world.timer.new_timeout(task, delay).unwrap();
    }
    for (seed, wheel) in (0..).zip(WHEELS.into_iter().cycle().take(12)) {
        let mut builder = on(wheel).tick_duration(ms(7));
        if seed % 2 == 0 {
            builder = builder.executor(pool());
        }
        let (timer, clock) = manual_with(builder);
        let random = Arc::new(Mutex::new(Random(seed)));
        let world = World { timer, clock, random, ran: Record::new() };
        (0..20).for_each(|_| grow(&world, 6));
        world.clock.advance(HOUR);
        let ran = world.ran.take();
        assert_eq!(ran.len() as u64, world.timer.metrics().scheduled);
        for (due, at) in ran {
            let late = at.checked_sub(due).expect("never early");
            assert!(late < ms(7) + Duration::from_nanos(8), "{late:?} late");
            assert_eq!(at.as_nanos() % ms(7).as_nanos(), 0, "at the start of a tick");
        }
        assert_eq!((world.clock.advance_to_next(), world.clock.elapsed()), (None, HOUR));
    }
}

#[test]
fn timers_with_other_ticks_are_visited_each_in_their_own() {
    let clock = ManualClock::new();
    let built_at = |at| {
        clock.advance_in_one_jump(at);
        HashedWheelTimer::builder().clock(clock.clone())
    };
    let fine = built_at(Duration::ZERO).tick_duration(ms(1)).build().unwrap();
    let coarse = built_at(ms(33)).build().unwrap(); // its ticks begin at 33, 133, 233 ms
    let at = Record::new();
    let note = |name| {
        let (at, clock) = (at.clone(), clock.clone());
        move || at.push((name, clock.elapsed()))
    };
    let (answer, other) = (note("answer"), fine.clone());
    coarse.new_timeout(move || drop(other.new_timeout(answer, ms(3)).unwrap()), ms(150)).unwrap();
    fine.new_timeout(note("fine"), ms(150)).unwrap();
    clock.advance(Duration::from_secs(1));
    assert_eq!(at.take(), [("fine", ms(183)), ("answer", ms(236))]);
}

/// A burst of missed runs continues on the executor, one job after the other, without a tick between them.
#[test]
fn a_visit_waits_for_missed_runs_on_an_executor() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(pool()));
    for _ in 0..30 {
        let series = timer.new_periodic(|| (), TICK).unwrap();
        let before = timer.metrics().expired;
        clock.advance_in_one_jump(TICK * 50);
        clock.advance(Duration::ZERO);
        assert_eq!(timer.metrics().expired - before, 50);
        clock.advance(TICK);
        assert_eq!(timer.metrics().expired - before, 51);
        assert!(series.cancel());
    }
}

#[test]
fn jobs_that_are_refused_or_dropped_end_too() {
    let drops = |job: Job| {
        drop(job);
        Ok(())
    };
    let (dropping, first) = manual_with(HashedWheelTimer::builder().executor(drops));
    let (refusing, second) = manual_with(HashedWheelTimer::builder().executor(Err));
    for (timer, clock) in [(&dropping, &first), (&refusing, &second)] {
        timer.new_timeout(|| (), TICK).unwrap();
        timer.new_timeout(|| panic!("a bad task"), TICK).unwrap();
        clock.advance(TICK);
        assert_eq!(timer.pending_timeouts(), 0);
    }
    assert_eq!(dropping.metrics().abandoned, 2);
    assert_eq!(refusing.metrics().panicked, 1);
}

#[test]
fn the_next_deadline_is_that_of_the_earliest_pending_one() {
    let (timer, clock) = manual();
    assert_eq!((timer.next_deadline(), clock.advance_to_next()), (None, None));
    let never = timer.new_timeout(|| (), Duration::MAX).unwrap();
    assert_eq!(
        (timer.next_deadline(), clock.advance_to_next()),
        (None, None),
        "never is no deadline"
    );
    assert_eq!(clock.elapsed(), Duration::ZERO);

    let timeouts = [350, 150, 250].map(|delay| timer.new_timeout(|| (), ms(delay)).unwrap());
    assert_eq!(timer.next_deadline(), timeouts[1].deadline());
    timeouts[1].reschedule(ms(450)).unwrap();
    assert_eq!(timer.next_deadline(), timeouts[2].deadline());
    let at = |ms_later| Some(timer.started_at() + ms(ms_later));
    assert_eq!(clock.advance_to_next(), at(300));
    assert!(timeouts[2].is_expired() && timeouts[0].is_pending());
    assert!(timeouts[0].cancel());
    assert_eq!(clock.advance_to_next(), at(500));
    assert_eq!((clock.advance_to_next(), clock.elapsed()), (None, ms(500)));
    assert!(never.is_pending());
}

/// Cancelled timeouts leave entries in the wheel, and a timeout that was pushed back keeps its entry.
#[test]
fn dead_entries_are_not_visited() {
    let (timer, clock) = manual();
    let later = |n: u64| timer.new_timeout(|| (), ms(5000 + n * 100)).unwrap();
    let timeouts: Vec<_> = (0..40).map(later).collect();
    crate::common::into_the_wheel(&timer, &clock);
    let (kept, others) = timeouts.split_last().unwrap();
    assert!(others.iter().all(|timeout| timeout.cancel()));
    kept.reschedule(HOUR).unwrap();
    let (due, begun) = (kept.deadline().unwrap(), clock.elapsed());
    assert_eq!(clock.advance_to_next(), Some(due));
    assert!(kept.is_expired());
    assert_eq!(clock.elapsed(), begun + HOUR);
}

#[test]
fn futures_and_idle_checks_have_deadlines() {
    let (timer, clock) = manual();
    let silent = Record::new();
    let events = silent.clone();
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, _| {
        events.push(*id);
        Answer::StopWatching
    });
    let watch = idle.watch(7, &IdlePolicy::new().both(Duration::from_secs(60))).unwrap();
    assert!(timer.next_deadline().is_some(), "the check of the connection");
    clock.advance(Duration::from_secs(50));
    watch.touch();
    clock.advance(Duration::from_secs(59));
    assert_eq!(silent.len(), 0);
    clock.advance(Duration::from_secs(2));
    assert_eq!((silent.take(), timer.next_deadline()), (vec![7], None));

    let (task, mut sleep) = (crate::wakers::Alarm::new(), timer.sleep(ms(150)));
    assert!(task.poll(&mut sleep).is_pending());
    assert_eq!(timer.next_deadline(), Some(sleep.deadline()));
    clock.advance_to_next();
    assert_eq!(task.wakes(), 1);
}

/// Neither on the worker nor on an executor can a task wait for itself.
#[test]
fn rule_09_a_task_may_advance() {
    for builder in both() {
        let (timer, clock) = manual_with(builder);
        let own = clock.clone();
        let task = move || {
            own.advance(TICK * 5);
            assert!(own.advance_to_next().is_some(), "the timeout below");
        };
        let done = timer.new_timeout(task, TICK).unwrap();
        timer.new_timeout(|| (), TICK * 10).unwrap();
        clock.advance(TICK);
        assert!(done.is_expired());
        assert_eq!((timer.metrics().panicked, clock.elapsed()), (0, TICK * 10));
        clock.advance(Duration::ZERO);
        assert_eq!(timer.metrics().expired, 2);
    }
}

/// The worker rests meanwhile, and nothing else wakes it.
#[test]
fn rule_09_a_job_that_advances_to_the_next_timeout_wakes_the_worker() {
    let pool = ThreadPool::with_size(1, 8).unwrap();
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(pool));
    let ((go, goes), (tell, told)) = (mpsc::channel(), mpsc::channel());
    let own = clock.clone();
    let job = move || {
        goes.recv().unwrap();
        std::thread::sleep(ms(20));
        assert!(own.advance_to_next().is_some());
    };
    timer.new_timeout(job, TICK).unwrap();
    timer.new_timeout(move || tell.send(()).unwrap(), 2 * TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    go.send(()).unwrap();
    told.recv_timeout(Duration::from_secs(60)).expect("the time has come");
}

#[test]
fn rule_09_a_run_in_a_task_panics_instead_of_waiting_for_itself() {
    for builder in both() {
        let (timer, clock) = manual_with(builder);
        let own = clock.clone();
        timer.new_timeout(move || own.run(async {}), TICK).unwrap();
        clock.advance(TICK);
        assert_eq!(timer.metrics().panicked, 1);
    }
}

#[test]
fn rule_10_the_time_ends_after_584_years() {
    let (timer, clock) = manual();
    timer.new_timeout(|| (), HOUR).unwrap();
    clock.advance(Duration::MAX);
    assert_eq!(timer.metrics().expired, 1);
    let end = clock.elapsed();
    assert_eq!(end.as_nanos(), u128::from(u64::MAX - 1));
    clock.advance(HOUR);
    assert_eq!((clock.elapsed(), clock.advance_to_next()), (end, None));
}

#[test]
fn rule_09_a_stop_does_not_hang_a_move_through_time() {
    let (timer, clock) = manual();
    timer.new_periodic(|| (), ms(1)).unwrap();
    std::thread::scope(|scope| {
        let moves = scope.spawn(|| clock.advance(HOUR));
        eventually("the clock moves", || clock.elapsed() > TICK * 10);
        timer.stop().unwrap();
        moves.join().unwrap();
    });
    assert_eq!(clock.elapsed(), HOUR);
}

/// A user's clock that jumps from deadline to deadline.
#[derive(Clone)]
struct Jumping(Arc<Mutex<(Instant, Vec<Follower>)>>);

impl Clock for Jumping {
    fn now(&self) -> Instant {
        self.0.lock().unwrap().0
    }

    fn attach(&self, follower: Follower) -> Pace {
        self.0.lock().unwrap().1.push(follower);
        Pace::OnCall
    }
}

#[test]
fn a_follower_knows_what_is_due_next() {
    let clock = Jumping(Arc::new(Mutex::new((Instant::now(), Vec::new()))));
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let follower = clock.0.lock().unwrap().1[0].clone();
    assert_eq!(follower.next_due(), None);
    let timeout = timer.new_timeout(|| (), ms(250)).unwrap();
    let next = follower.next_due().unwrap();
    assert_eq!(next, timer.started_at() + ms(300), "the start of its tick");
    clock.0.lock().unwrap().0 = next;
    follower.catch_up();
    assert!(timeout.is_expired());
    timer.new_timeout(|| (), ms(250)).unwrap();
    timer.stop().unwrap();
    drop(timer);
    assert_eq!(follower.next_due(), None);
}

#[test]
fn a_run_moves_on_when_everything_waits() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().tick_duration(ms(1)));
    let ticks = clock.run(async {
        let mut interval = timer.interval(Duration::from_secs(1)).unwrap();
        let limit = timer.timeout(Duration::from_millis(3_600_500), async {
            let mut ticks = 0;
            while interval.tick().await.is_some() {
                ticks += 1;
                if ticks == 3600 {
                    std::future::pending::<()>().await;
                }
            }
        });
        limit.await.map_err(|_| clock.elapsed())
    });
    assert_eq!(ticks, Err(Duration::from_millis(3_600_500)));
}

/// Tasks of one run wake each other, need not be `Send`, and are dropped at its end.
#[test]
fn a_run_has_tasks() {
    let (timer, clock) = manual();
    let (order, held) = (Rc::new(std::cell::RefCell::new(Vec::new())), Rc::new(()));
    clock.run_with(async |tasks| {
        let [early, late] = [(1, "early"), (2, "late")].map(|(seconds, name)| {
            let sleep = timer.sleep(Duration::from_secs(seconds));
            let (order, nested) = (order.clone(), tasks.clone());
            tasks.spawn(async move {
                nested.spawn(sleep).await;
                order.borrow_mut().push(name);
                name
            })
        });
        let (never, own) = (held.clone(), tasks.clone());
        drop(tasks.spawn(async move {
            std::future::pending::<()>().await;
            drop((never, own));
        }));
        assert_eq!((late.await, early.await), ("late", "early"));
    });
    assert_eq!(*order.borrow(), ["early", "late"]);
    assert_eq!(Rc::strong_count(&held), 1);
    assert_eq!(clock.elapsed(), Duration::from_secs(2));
}

#[test]
fn a_panic_of_a_task_ends_the_run() {
    let (timer, clock) = manual();
    let held = Arc::new(());
    let (kept, sleep) = (held.clone(), timer.sleep(HOUR));
    let run = std::panic::AssertUnwindSafe(|| {
        clock.run_with(async |tasks| {
            drop(tasks.spawn(async { panic!("a failed assertion") }));
            sleep.await;
            drop(kept);
        });
    });
    assert!(std::panic::catch_unwind(run).is_err());
    drop(timer);
    assert_eq!((Arc::strong_count(&held), clock.elapsed()), (1, Duration::ZERO));
}

/// Nothing is pending in the timer while another thread works.
#[test]
fn a_run_waits_for_other_threads_if_nothing_is_pending() {
    let (timer, clock) = manual();
    let (sender, mut receiver) = unbounded_channel();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(ms(30));
        sender.send("from a thread").unwrap();
    });
    let received = clock.run(async {
        let received = receiver.recv().await;
        timer.sleep(HOUR).await;
        received
    });
    assert_eq!((received, clock.elapsed()), (Some("from a thread"), HOUR));
    thread.join().unwrap();
}

/// The tasks of an executor wake the futures of a run, and time does not pass meanwhile.
#[test]
fn a_run_waits_for_jobs() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(pool()));
    let (sender, mut receiver) = unbounded_channel();
    let task = move || {
        std::thread::sleep(ms(20));
        sender.send(()).unwrap();
    };
    timer.new_timeout(task, TICK).unwrap();
    let limited = clock.run(async { timer.timeout(TICK * 2, receiver.recv()).await });
    assert_eq!((limited, clock.elapsed()), (Ok(Some(())), TICK));
}

/// A timer whose jobs wait until a future receives and runs them.
fn sending_jobs() -> (HashedWheelTimer, ManualClock, UnboundedReceiver<Job>) {
    let (sender, jobs) = unbounded_channel::<Job>();
    let executor = move |job| sender.send(job).map_err(|refused| refused.0);
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    (timer, clock, jobs)
}

/// One of the futures runs the jobs of the timer.
#[test]
fn rule_09_a_future_of_a_run_may_be_the_executor() {
    let (timer, clock, mut jobs) = sending_jobs();
    let ran = Record::new();
    let (record, now) = (ran.clone(), clock.clone());
    // Several runs are due in each tick.
    timer.new_periodic(move || record.push(now.elapsed()), TICK / 4).unwrap();
    clock.run_with(async |tasks| {
        drop(tasks.spawn(async move {
            while let Some(job) = jobs.recv().await {
                job.run();
            }
        }));
        timer.sleep(TICK * 10).await;
    });
    let ran = ran.take();
    assert!((36..=40).contains(&ran.len()), "{ran:?}");
    for (at, n) in ran.into_iter().zip(1..) {
        let late = at.checked_sub(TICK / 4 * n).expect("never early");
        assert!(late < TICK, "run {n} at {at:?}");
    }
}

#[test]
fn rule_09_a_job_that_a_future_of_a_run_has_to_run_does_not_hold_up_its_first_poll() {
    let (timer, clock, mut jobs) = sending_jobs();
    let ran = Record::new();
    timer.new_timeout(ran.note(()), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    let run = std::thread::spawn(move || {
        clock.run(async { jobs.recv().await.expect("a job waits").run() });
    });
    eventually("the run ends", || run.is_finished());
    assert_eq!(ran.len(), 1);
}

/// A runtime that moves the clock when it has nothing to do.
fn idle_runtime(clock: &ManualClock) -> tokio::runtime::Runtime {
    let idle = clock.clone();
    tokio::runtime::Builder::new_current_thread()
        .on_thread_park(move || {
            if idle.advance_when_idle() {
                tokio::spawn(async {});
            }
        })
        .build()
        .unwrap()
}

/// tokio calls the hook when no task is ready. The beat wakes no task.
#[test]
fn a_tokio_runtime_moves_the_clock_when_it_has_nothing_to_do() {
    let (timer, clock) = manual();
    timer.new_periodic(|| (), Duration::from_secs(1)).unwrap();
    let (sender, events) = mpsc::channel();
    idle_runtime(&clock).block_on(async {
        let tasks = [30, 10, 20].map(|minutes| {
            let (timer, clock, sender) = (timer.clone(), clock.clone(), sender.clone());
            tokio::spawn(async move {
                timer.sleep(Duration::from_secs(60 * minutes)).await;
                sender.send((minutes, clock.elapsed())).unwrap();
            })
        });
        for task in tasks {
            task.await.unwrap();
        }
    });
    let minutes = |n| (n, Duration::from_secs(60 * n));
    assert_eq!(events.try_iter().collect::<Vec<_>>(), [10, 20, 30].map(minutes));
    assert_eq!(timer.metrics().expired, 1800 + 3);
}

/// The tasks run on a pool, or on the runtime itself, which moves the clock. Several runs are due in each tick.
#[test]
#[cfg(feature = "tokio")]
fn rule_09_a_runtime_that_moves_the_clock_may_be_the_executor() {
    for own in [true, false] {
        let clock = ManualClock::new();
        let runtime = idle_runtime(&clock);
        let builder = HashedWheelTimer::builder().clock(clock.clone());
        let builder =
            if own { builder.executor(runtime.handle().clone()) } else { builder.executor(pool()) };
        let timer = builder.build().unwrap();
        timer.new_periodic(|| (), TICK / 4).unwrap();
        runtime.block_on(timer.sleep(TICK * 100));
        assert_eq!(clock.elapsed(), TICK * 100);
        let expired = timer.metrics().expired;
        assert!((397..=401).contains(&expired), "{expired} runs");
    }
}

/// The worker may hand over a job just after the runtime has found that it has nothing to do.
#[test]
fn rule_09_a_thread_that_moves_the_clock_may_have_a_job_to_run() {
    let (sender, jobs) = mpsc::channel();
    let sender = Mutex::new(sender);
    let hands = move |job: Job| sender.lock().unwrap().send(job).map_err(|back| back.0);
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(hands));
    timer.new_timeout(|| (), TICK).unwrap();
    timer.new_timeout(|| (), 5 * TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    let (done, answers) = mpsc::channel();
    let idle = clock.clone();
    std::thread::spawn(move || done.send(idle.advance_when_idle()));
    let answer = answers.recv_timeout(Duration::from_secs(60));
    assert_eq!((answer, clock.elapsed()), (Ok(true), TICK), "it looks for the job again");
    jobs.try_iter().for_each(Job::run);
    assert!(clock.advance_when_idle());
    assert_eq!(clock.elapsed(), 5 * TICK);
}

/// Calls `moves` on a thread, and waits for it to return.
#[track_caller]
fn returns(what: &str, moves: impl FnOnce() + Send + 'static) {
    let (done, returned) = mpsc::channel();
    std::thread::spawn(move || {
        moves();
        done.send(()).unwrap();
    });
    // Only against a test that hangs.
    let returned = returned.recv_timeout(Duration::from_secs(60));
    assert!(returned.is_ok(), "{what} does not return, or has panicked");
}

/// A task that goes on, and moves the clock when it is told that it is cancelled.
struct MovesAtItsEnd(ManualClock);

impl TimerTask for MovesAtItsEnd {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        Next::after(self, TICK)
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.0.advance(TICK);
    }
}

/// A cancel comes while the job of the second run waits. The job is withdrawn, or dropped.
#[test]
fn rule_09_a_job_that_does_not_run_may_advance() {
    for (name, end) in [("run", Job::run as fn(Job)), ("drop", drop as fn(Job))] {
        let (sender, jobs) = mpsc::channel();
        let executor = move |job| sender.send(job).map_err(|back| back.0);
        let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
        let timeout = timer.new_timeout(MovesAtItsEnd(clock.clone()), TICK).unwrap();
        clock.advance_in_one_jump(TICK);
        jobs.recv().unwrap().run();
        clock.advance_in_one_jump(TICK);
        let job = jobs.recv().unwrap();
        assert!(timeout.cancel(), "it has gone on before");
        returns(name, move || end(job));
        assert_eq!((timer.metrics().panicked, clock.elapsed()), (0, TICK * 3));
    }
}

/// The executor drops the job, on the worker.
#[test]
fn rule_09_a_job_that_the_executor_drops_may_advance() {
    let drops = |job: Job| {
        drop(job);
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(drops));
    timer.new_timeout(MovesAtItsEnd(clock.clone()), TICK).unwrap();
    let moved = clock.clone();
    returns("advance", move || moved.advance(TICK));
    assert_eq!((timer.metrics().panicked, clock.elapsed()), (0, TICK * 2));
}

/// A job waits for the worker on which a task runs. If the task waited for the job, both would wait for ever.
#[test]
fn rule_09_a_task_and_a_job_of_another_timer_may_advance_together() {
    let (inline, clock) = manual();
    let pooled = HashedWheelTimer::builder().clock(clock.clone()).executor(pool()).build().unwrap();
    let (begins, has_begun) = mpsc::channel();
    let [own, of_job, moved] = [(); 3].map(|()| clock.clone());
    let job = move || {
        begins.send(()).unwrap();
        of_job.advance(TICK);
    };
    let task = move || {
        has_begun.recv().unwrap();
        own.advance(TICK);
        assert!(!own.advance_when_idle(), "in a task");
    };
    pooled.new_timeout(job, TICK).unwrap();
    inline.new_timeout(task, TICK).unwrap();
    returns("advance", move || moved.advance(TICK));
    let panics = [&inline, &pooled].map(|timer| timer.metrics().panicked);
    assert_eq!((panics, clock.elapsed()), ([0, 0], TICK * 3));
}

/// Moves a clock on by one of the ways that look for what is due next. False if nothing is.
type Move = fn(&HashedWheelTimer, &ManualClock) -> bool;

const MOVES: [(&str, Move); 4] = [
    ("advance", |_, clock| {
        clock.advance(TICK);
        true
    }),
    ("advance_to_next", |_, clock| clock.advance_to_next().is_some()),
    ("advance_when_idle", |_, clock| clock.advance_when_idle()),
    ("run", |timer, clock| {
        clock.run(timer.sleep(TICK));
        true
    }),
];

/// The clock stands at the start of a tick, which the worker has expired.
#[test]
fn rule_09_a_series_that_begins_at_once_does_not_hold_up_the_clock() {
    for (name, moves) in MOVES {
        for (builder, stands_at) in both().into_iter().zip([Duration::ZERO, TICK * 7]) {
            let (timer, clock) = manual_with(builder);
            clock.advance_in_one_jump(stands_at);
            let at = Record::new();
            let (record, now) = (at.clone(), clock.clone());
            let period = Period::fixed_rate(TICK * 5).initial_delay(Duration::ZERO);
            timer.new_periodic(move || record.push(now.elapsed()), period).unwrap();
            returns(name, move || {
                while clock.elapsed() < stands_at + TICK * 11 {
                    moves(&timer, &clock);
                }
                clock.advance(Duration::ZERO);
            });
            let at = at.take();
            let due = [1, 5, 10].map(|ticks| stands_at + TICK * ticks);
            assert_eq!(
                at[..3],
                due,
                "{name}: the first run is in the next tick, the others in phase"
            );
        }
    }
}

/// A thread may read the clock, and arm its timeout after the worker has expired that tick.
#[test]
fn rule_09_a_timeout_that_another_thread_schedules_does_not_hold_up_the_clock() {
    const TIMEOUTS: u64 = 50_000;
    for (name, moves) in MOVES {
        let (timer, clock) = manual_with(HashedWheelTimer::builder());
        let schedules = {
            let timer = timer.clone();
            move || {
                let mut random = Random(7);
                for _ in 0..TIMEOUTS {
                    timer.new_timeout(|| (), TICK * random.below(3) as u32).unwrap();
                }
            }
        };
        let own = timer.clone();
        returns(name, move || {
            let scheduler = std::thread::spawn(schedules);
            while !scheduler.is_finished() {
                moves(&own, &clock);
            }
            scheduler.join().unwrap();
            while own.pending_timeouts() > 0 {
                moves(&own, &clock);
            }
        });
        assert_eq!(timer.metrics().expired.min(TIMEOUTS), TIMEOUTS);
    }
}
