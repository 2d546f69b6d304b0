//! Where tasks run, and what happens when a task or an executor misbehaves.

use crate::common::{Mutex, Record, TICK, assert_conserved, eventually, manual, manual_with, ms};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wheelwork::executor::{Job, OnRefusal, PoolError, ThreadPool};
use wheelwork::{HashedWheelTimer, RefusalReason, StopError};

#[test]
fn rule_05_a_panic_is_caught_and_counted() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let bad = timer.new_timeout(|| panic!("a bad task"), ms(100)).unwrap();
    timer.new_timeout(ran.note("after"), ms(100)).unwrap();
    timer.new_timeout(ran.note("next tick"), ms(200)).unwrap();
    clock.advance_in_one_jump(ms(200));
    assert_eq!(ran.take(), ["after", "next tick"]);
    assert!(bad.is_expired());
    assert_eq!(timer.metrics().panicked, 1);
    assert_conserved(&timer);
}

#[test]
fn jobs_carry_their_timeout() {
    let jobs = Arc::new(Mutex::new(Vec::<Job>::new()));
    let queue = jobs.clone();
    let executor = move |job| {
        queue.lock().unwrap().push(job);
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let ran = Record::new();
    let timeout = timer.new_timeout(ran.note(1), ms(100)).unwrap();
    clock.advance_in_one_jump(ms(100));
    let job = jobs.lock().unwrap().pop().unwrap();
    assert!(timeout.is_expired() && job.timeout().is_expired());
    assert!(!timeout.cancel(), "too late");
    assert_eq!((ran.len(), timer.pending_timeouts()), (0, 0));
    job.run();
    assert_eq!(ran.take(), [1]);
    assert!(timeout.is_expired());
    assert_conserved(&timer);
}

/// An executor that has room for `room` jobs until it is emptied.
#[derive(Clone)]
struct Full {
    room: usize,
    taken: Arc<Mutex<Vec<Job>>>,
    refusals: Arc<AtomicUsize>,
}

impl Full {
    fn with_room(room: usize) -> Self {
        Self { room, taken: Arc::default(), refusals: Arc::default() }
    }
}

impl wheelwork::executor::Executor for Full {
    fn execute(&self, job: Job) -> Result<(), Job> {
        let mut taken = self.taken.lock().unwrap();
        if taken.len() == self.room {
            self.refusals.fetch_add(1, SeqCst);
            return Err(job);
        }
        taken.push(job);
        Ok(())
    }
}

#[test]
fn rule_05_a_refused_job_runs_on_the_worker() {
    let full = Full::with_room(3);
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(full.clone()));
    let ran = Record::new();
    (0..10).for_each(|n| drop(timer.new_timeout(ran.note(n), ms(100)).unwrap()));
    clock.advance_in_one_jump(ms(100));
    assert_eq!(ran.take(), [3, 4, 5, 6, 7, 8, 9]);
    full.taken.lock().unwrap().drain(..).for_each(Job::run);
    assert_eq!(ran.take(), [0, 1, 2]);
    let metrics = timer.metrics();
    assert_eq!((metrics.refused, metrics.expired, metrics.abandoned), (7, 10, 0));
}

#[test]
fn rule_05_a_refused_job_is_offered_again() {
    let full = Full::with_room(1);
    let builder = HashedWheelTimer::builder().executor(full.clone()).on_refusal(OnRefusal::Wait);
    let timer = builder.tick_duration(ms(1)).build().unwrap();
    let ran = Record::new();
    (0..20).for_each(|n| drop(timer.new_timeout(ran.note(n), ms(1)).unwrap()));
    eventually("all have run", || {
        full.taken.lock().unwrap().drain(..).for_each(Job::run);
        ran.len() == 20
    });
    assert_eq!(ran.take(), (0..20).collect::<Vec<_>>());
}

#[test]
fn rule_09_a_stop_ends_the_wait_for_an_executor_and_the_job_runs_on_the_worker() {
    let full = Full::with_room(0);
    let builder = HashedWheelTimer::builder().executor(full.clone()).on_refusal(OnRefusal::Wait);
    let timer = builder.tick_duration(ms(1)).build().unwrap();
    let ran = Record::new();
    timer.new_timeout(ran.note("waited"), ms(1)).unwrap();
    eventually("it is refused many times", || full.refusals.load(SeqCst) > 20);
    assert!(timer.stop().unwrap().is_empty());
    assert_eq!(ran.take(), ["waited"]);
}

#[test]
fn rule_05_a_refused_job_goes_to_the_callback() {
    let overflow = Arc::new(Mutex::new(Vec::<Job>::new()));
    let queue = overflow.clone();
    let callback = OnRefusal::callback(move |job| queue.lock().unwrap().push(job));
    let builder = HashedWheelTimer::builder().executor(Full::with_room(0)).on_refusal(callback);
    let (timer, clock) = manual_with(builder);
    let ran = Record::new();
    timer.new_timeout(ran.note(1), ms(100)).unwrap();
    clock.advance_in_one_jump(ms(100));
    assert_eq!(ran.len(), 0);
    overflow.lock().unwrap().drain(..).for_each(Job::run);
    assert_eq!((ran.take(), timer.metrics().refused), (vec![1], 1));
}

#[test]
fn rule_05_an_executor_that_panics_or_drops_its_job_loses_no_timeout() {
    let calls = AtomicUsize::new(0);
    let executor = move |job: Job| match calls.fetch_add(1, SeqCst) {
        0 => panic!("a bad executor"),
        1 => {
            drop(job);
            Ok(())
        }
        _ => Err(job),
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let ran = Record::new();
    let timeouts: Vec<_> =
        (0..3).map(|n| timer.new_timeout(ran.note(n), ms(100)).unwrap()).collect();
    clock.advance_in_one_jump(ms(100));
    assert_eq!(ran.take(), [2]);
    let metrics = timer.metrics();
    assert_eq!((metrics.panicked, metrics.abandoned, metrics.cancelled), (1, 2, 2));
    assert!(timeouts[0].is_cancelled() && timeouts[1].is_cancelled() && timeouts[2].is_expired());
    assert_conserved(&timer);
}

#[test]
fn tasks_run_on_the_worker_without_an_executor() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().thread_name("the worker"));
    let ran_on = Record::new();
    let record = ran_on.clone();
    let name = || std::thread::current().name().map(str::to_owned);
    timer.new_timeout(move || record.push(name()), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(ran_on.take(), [Some("the worker".to_owned())]);
}

#[test]
fn rule_01_the_pool_runs_everything_before_it_ends() {
    let pool = ThreadPool::with_size(3, 8).unwrap();
    let builder = HashedWheelTimer::builder().executor(pool.clone()).on_refusal(OnRefusal::Wait);
    let timer = builder.tick_duration(ms(1)).build().unwrap();
    let ran = Record::new();
    for n in 0..1000 {
        let record = ran.clone();
        let task = move || {
            record.push(n);
            assert!(n % 10 != 0, "a bad task on a pool thread");
        };
        timer.new_timeout(task, ms(n % 5)).unwrap();
    }
    eventually("all are handed over", || timer.metrics().expired == 1000);
    timer.stop().unwrap();
    drop(timer);
    assert!(pool.join(), "the last handle");
    let mut all = ran.take();
    all.sort_unstable();
    assert_eq!(all, (0..1000).collect::<Vec<_>>());
}

#[test]
fn rule_01_a_join_waits_for_queued_and_running_jobs() {
    let pool = ThreadPool::with_size(1, 8).unwrap();
    let builder = HashedWheelTimer::builder().executor(pool.clone()).tick_duration(ms(1));
    let timer = builder.build().unwrap();
    let ((gate, closed), ran) = (mpsc::channel::<()>(), Record::new());
    let slow = move || {
        let _ = closed.recv();
        std::thread::sleep(ms(50));
    };
    timer.new_timeout(slow, ms(1)).unwrap();
    (0..2).for_each(|_| drop(timer.new_timeout(ran.note(()), ms(1)).unwrap()));
    eventually("all are handed over", || timer.metrics().expired == 3);
    eventually("the first is taken up", || pool.queued() == 2);
    timer.stop().unwrap();
    drop((timer, gate));
    assert!(pool.join());
    assert_eq!(ran.len(), 2);
}

/// Sends a message when its thread ends.
struct EndOfThread(mpsc::Sender<&'static str>);

impl Drop for EndOfThread {
    fn drop(&mut self) {
        let _ = self.0.send("ended");
    }
}

#[test]
fn the_threads_of_a_pool_end_with_its_last_handle() {
    thread_local! {
        static END: std::cell::RefCell<Option<EndOfThread>> = const { std::cell::RefCell::new(None) };
    }
    let pool = ThreadPool::with_size(1, 8).unwrap();
    let builder = HashedWheelTimer::builder().executor(pool.clone()).tick_duration(ms(1));
    let timer = builder.build().unwrap();
    let (sender, said) = mpsc::channel();
    let task = move || {
        sender.send("running").unwrap();
        END.with(|end| *end.borrow_mut() = Some(EndOfThread(sender)));
    };
    timer.new_timeout(task, ms(1)).unwrap();
    assert_eq!(said.recv(), Ok("running"));
    timer.stop().unwrap();
    drop((timer, pool));
    assert_eq!(said.recv_timeout(Duration::from_secs(60)), Ok("ended"));
}

#[test]
fn a_shared_pool_outlives_one_of_its_timers() {
    let pool = ThreadPool::new().unwrap();
    let build =
        || HashedWheelTimer::builder().executor(pool.clone()).tick_duration(ms(1)).build().unwrap();
    drop(build());
    let timer = build();
    let (sender, done) = mpsc::channel();
    timer.new_timeout(move || sender.send(()).unwrap(), ms(1)).unwrap();
    done.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(!pool.clone().join(), "not the last handle");
    assert!(format!("{pool:?}").contains("queued: 0"), "{pool:?}");
}

#[test]
fn rule_09_a_pool_thread_may_stop_the_timer_while_the_worker_waits_for_the_pool() {
    let pool = ThreadPool::with_size(1, 1).unwrap();
    let builder = HashedWheelTimer::builder().executor(pool.clone()).on_refusal(OnRefusal::Wait);
    let timer = builder.tick_duration(ms(1)).build().unwrap();
    let (sender, done) = mpsc::channel();
    let (handle, started) = (timer.clone(), Arc::new(AtomicBool::new(false)));
    let flag = started.clone();
    let stopper = move || {
        flag.store(true, SeqCst);
        std::thread::sleep(ms(20)); // until the worker has filled the queue and waits
        sender.send(handle.stop().map(|unprocessed| unprocessed.len())).unwrap();
    };
    timer.new_timeout(stopper, ms(1)).unwrap();
    eventually("the stopper runs", || started.load(SeqCst));
    (0..10).for_each(|_| drop(timer.new_timeout(|| (), ms(1))));
    let stopped = done.recv_timeout(Duration::from_secs(60)).expect("no deadlock");
    assert!(matches!(stopped, Ok(0..=10)));
    assert_conserved(&timer);
}

#[test]
fn rule_10_a_pool_of_an_impossible_size_is_an_error() {
    assert!(matches!(ThreadPool::with_size(0, 1), Err(PoolError::NoThreads)));
    for capacity in [(1 << 24) + 1, usize::MAX] {
        let error = ThreadPool::with_size(1, capacity).unwrap_err();
        assert!(error.to_string().contains("at most 16777216"), "{error}");
    }
    let error = ThreadPool::with_size(1, 0).unwrap_err();
    assert_eq!(error.to_string(), "the length of the queue must be greater than zero");
}

#[test]
fn rule_01_the_limit_is_exact_and_gives_the_task_back() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(3));
    let ran = Record::new();
    let first = timer.new_timeout(ran.note(0), ms(100)).unwrap();
    timer.new_timeout(ran.note(1), ms(100)).unwrap();
    timer.new_timeout(ran.note(2), ms(500)).unwrap();
    let error = timer.new_timeout(ran.note(3), ms(100)).unwrap_err();
    assert!(matches!(error.reason(), RefusalReason::LimitReached { limit: 3 }));
    assert_eq!(error.to_string(), "the limit of 3 pending timeouts is reached");
    assert!(first.cancel());
    timer.new_timeout(error.into_task(), ms(100)).unwrap();
    clock.advance_in_one_jump(ms(100)); // two run, and make room for two
    assert_eq!(ran.take(), [1, 3]);
    assert!(timer.new_timeout(|| (), ms(100)).is_ok());
    assert!(timer.new_timeout(|| (), ms(100)).is_ok());
    assert!(timer.new_timeout(|| (), ms(100)).is_err());
    assert_eq!(timer.metrics().rejected, 2);
    assert_eq!(timer.stop().unwrap().len(), 3);
    assert_eq!(timer.new_timeout(|| (), ms(1)).unwrap_err().reason(), RefusalReason::Stopped);
}

#[test]
fn a_limit_holds_for_all_threads_together() {
    let (timer, _clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(1000));
    let accepted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..500).filter(|_| timer.new_timeout(|| (), ms(9000)).is_ok()).count()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!((accepted, timer.pending_timeouts()), (1000, 1000));
}

#[test]
fn stop_errors_say_what_was_expected() {
    assert!(StopError::FromWorker.to_string().contains("call it on another thread"));
    let thread = "conn-timer".to_owned();
    let idle = StopError::StillRunning { limit: ms(5), thread, task: None };
    let said = "the timer has not stopped within 5ms: its thread \"conn-timer\" is about to end";
    assert_eq!(idle.to_string(), said);
    let forked = StopError::Forked { process: 4711 }.to_string();
    assert!(forked.contains("process 4711"), "{forked}");
}

#[test]
fn rule_05_a_panic_payload_that_panics_does_not_kill_the_worker() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a bad payload");
        }
    }
    let executor = |_: Job| -> Result<(), Job> { std::panic::panic_any(Bomb) };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    (1..4).for_each(|tick| drop(timer.new_timeout(|| (), TICK * tick).unwrap()));
    clock.advance_in_one_jump(TICK * 2);
    clock.advance_in_one_jump(TICK);
    assert_eq!(timer.metrics().abandoned, 3);
    assert_eq!(timer.pending_timeouts(), 0);
}
