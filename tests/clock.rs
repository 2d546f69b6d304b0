//! Clocks of users, and the threads that wait for a clock or for the worker.

use crate::common::{Record, TICK, eventually, manual_with, ms};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use wheelwork::time::{Clock, Follower, Pace, SystemClock};
use wheelwork::{BuildError, HashedWheelTimer, ManualClock};

#[test]
fn several_timers_run_on_one_clock() {
    let (first, clock) = manual_with(HashedWheelTimer::builder());
    let second = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let ran = Record::new();
    first.new_timeout(ran.note(1), TICK).unwrap();
    second.new_timeout(ran.note(2), TICK * 2).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(ran.take(), [1]);
    first.stop().unwrap();
    drop(first);
    clock.advance_in_one_jump(TICK);
    assert_eq!(ran.take(), [2]);
    assert_eq!(clock.elapsed(), TICK * 2);
}

#[test]
fn rule_09_a_task_may_move_the_clock() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder());
    let ran = Record::new();
    let own = clock.clone();
    timer.new_timeout(move || own.advance_in_one_jump(TICK * 5), TICK).unwrap();
    timer.new_timeout(ran.note(()), TICK * 6).unwrap();
    clock.advance_in_one_jump(TICK);
    clock.advance_in_one_jump(Duration::ZERO);
    assert_eq!(ran.len(), 1);
}

/// Each of two tasks, on two workers, moves the clock that both timers follow.
#[test]
fn rule_09_workers_do_not_wait_for_each_other() {
    let clock = ManualClock::new();
    let both = Arc::new(Barrier::new(2));
    let timers = [(); 2].map(|()| {
        let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
        let (own, both) = (clock.clone(), both.clone());
        let task = move || {
            both.wait();
            own.advance_in_one_jump(TICK);
        };
        timer.new_timeout(task, TICK).unwrap();
        timer
    });
    std::thread::scope(|scope| {
        let advance = scope.spawn(|| clock.advance_in_one_jump(TICK));
        eventually("both have run", || timers.iter().all(|t| t.metrics().expired == 1));
        advance.join().unwrap();
    });
}

/// A clock that asks the timer to catch up while the timer is still being built.
struct Eager(Record<()>);

impl Clock for Eager {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn attach(&self, follower: Follower) -> Pace {
        let caught_up = self.0.clone();
        std::thread::spawn(move || {
            follower.catch_up();
            caught_up.push(());
        });
        std::thread::sleep(ms(20));
        Pace::OnCall
    }
}

#[test]
fn rule_09_a_failed_build_does_not_block_its_clock() {
    let caught_up = Record::new();
    let builder = HashedWheelTimer::builder().clock(Eager(caught_up.clone()));
    let error = builder.stack_size(usize::MAX / 4 * 3).build().unwrap_err();
    assert!(matches!(error, BuildError::ThreadStart { .. }));
    eventually("the clock goes on", || caught_up.len() == 1);
}

/// A task that parks on the worker's thread consumes a wake-up of the worker. So the worker must check
/// for requests before it sleeps.
#[test]
fn rule_09_a_task_that_parks_does_not_swallow_a_move_of_the_clock() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder());
    let (started, is_running) = std::sync::mpsc::channel();
    let parks = move || {
        started.send(std::thread::current()).unwrap();
        std::thread::park();
    };
    timer.new_timeout(parks, TICK).unwrap();
    let moved = Record::new();
    let advance = || {
        let (clock, moved) = (clock.clone(), moved.clone());
        std::thread::spawn(move || {
            clock.advance_in_one_jump(TICK);
            moved.push(());
        });
    };
    advance();
    let worker = is_running.recv().unwrap();
    advance(); // wakes the task, and makes nothing due
    eventually("both moves are followed", || {
        // There, the worker does not sleep in the standard library's park, and the move does not end the task's.
        if cfg!(windows) {
            worker.unpark();
        }
        moved.len() == 2
    });
}

/// A user's clock that runs by itself, an hour ahead of the system's.
#[derive(Clone, Copy)]
struct Ahead;

impl Clock for Ahead {
    fn now(&self) -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }
}

#[test]
fn the_system_clock_may_be_named() {
    let timer =
        HashedWheelTimer::builder().clock(SystemClock).tick_duration(ms(1)).build().unwrap();
    let (ran, begun) = (Record::new(), Instant::now());
    let record = ran.clone();
    timer.new_timeout(move || record.push(Instant::now()), ms(5)).unwrap();
    eventually("it runs", || ran.len() == 1);
    assert!(ran.take()[0] >= begun + ms(5));
}

#[test]
fn a_clock_that_runs_by_itself_needs_nothing_but_the_time() {
    let timer = HashedWheelTimer::builder().clock(Ahead).tick_duration(ms(1)).build().unwrap();
    let (ran, begun) = (Record::new(), Ahead.now());
    let record = ran.clone();
    timer.new_timeout(move || record.push(Ahead.now()), ms(20)).unwrap();
    eventually("it runs", || ran.len() == 1);
    assert!(ran.take()[0] >= begun + ms(20));
    timer.new_timeout(|| (), Duration::from_secs(60)).unwrap();
    assert!(timer.stop().unwrap()[0].deadline() > begun + Duration::from_secs(59));
}

/// A user's clock that moves in jumps, and tells its timer.
#[derive(Clone)]
struct Stepped {
    origin: Instant,
    seconds: Arc<AtomicU64>,
    follower: Arc<Mutex<Option<Follower>>>,
}

impl Clock for Stepped {
    fn now(&self) -> Instant {
        self.origin + Duration::from_secs(self.seconds.load(SeqCst))
    }

    fn attach(&self, follower: Follower) -> Pace {
        *self.follower.lock().unwrap() = Some(follower);
        Pace::OnCall
    }
}

#[test]
fn a_follower_catches_up_and_knows_whether_its_timer_is_alive() {
    let clock = Stepped {
        origin: Instant::now(),
        seconds: Arc::new(AtomicU64::new(0)),
        follower: Arc::default(),
    };
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let follower = clock.follower.lock().unwrap().take().expect("build attaches it");
    let ran = Record::new();
    timer.new_timeout(ran.note(()), Duration::from_secs(5)).unwrap();
    clock.seconds.store(4, SeqCst);
    follower.catch_up();
    assert_eq!(ran.len(), 0);
    clock.seconds.store(5, SeqCst);
    follower.catch_up();
    assert_eq!(ran.len(), 1, "it has run when the call returns");

    assert!(follower.is_alive());
    assert_eq!(format!("{follower:?}"), "Follower { is_alive: true }");
    timer.stop().unwrap();
    drop(timer);
    eventually("the timer is gone", || !follower.is_alive());
    follower.catch_up(); // there is nobody to wait for
}

/// The system's time and a jump, as of a machine that was suspended.
#[derive(Clone, Default)]
struct Resumes(Arc<(AtomicU64, Mutex<Option<Follower>>)>);

impl Clock for Resumes {
    fn now(&self) -> Instant {
        Instant::now() + Duration::from_secs(self.0.0.load(SeqCst))
    }

    fn attach(&self, follower: Follower) -> Pace {
        *self.0.1.lock().unwrap() = Some(follower);
        Pace::RealTime
    }
}

/// Each jump is answered, whatever the clock's pace.
#[test]
fn rule_09_a_clock_at_the_pace_of_real_time_may_jump_too() {
    let clock = Resumes::default();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let ran = Record::new();
    timer.new_timeout(ran.note(()), Duration::from_secs(3600)).unwrap();
    clock.0.0.store(3601, SeqCst);
    let follower = clock.0.1.lock().unwrap().take().expect("build attaches it");
    let caught_up = std::thread::spawn(move || follower.catch_up());
    eventually("the jump is answered", || caught_up.is_finished());
    assert_eq!(ran.len(), 1);
}
