//! What `stop` returns.

use super::Told;
use crate::common::{Random, Record, assert_conserved, manual_with, ms, on};
use crate::on_every_wheel;
use std::thread;
use std::time::Duration;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::timer::WheelKind;
use wheelwork::{HashedWheelTimer, RefusalReason, RescheduleError, Unprocessed};

on_every_wheel!(rule_01_stop_returns_unprocessed_timeouts);

fn rule_01_stop_returns_unprocessed_timeouts(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let start = timer.new_timeout(ran.note("gone"), ms(100)).unwrap().now();
    let [c, _a, b] = [("c", 900), ("a", 300), ("b", 500)]
        .map(|(name, delay)| timer.new_timeout(ran.note(name), ms(delay)).unwrap());
    clock.advance_in_one_jump(ms(100));
    timer.new_timeout(ran.note("queued"), ms(5000)).unwrap();
    b.cancel();
    ran.take();

    let mut unprocessed = timer.stop().unwrap();
    unprocessed.sort_by_cached_key(Unprocessed::deadline);
    let deadlines: Vec<_> =
        unprocessed.iter().map(|u| (u.deadline() - start).as_millis()).collect();
    assert_eq!(deadlines, [300, 900, 5100]);
    assert!(!c.is_cancelled() && !c.is_expired());
    assert_eq!(c.reschedule(ms(1)), Err(RescheduleError::Stopped));
    assert_eq!((timer.pending_timeouts(), timer.metrics().returned), (0, 3));
    assert!(timer.is_stopped());

    assert_eq!(unprocessed[1].timeout().deadline(), c.deadline());
    let mut unprocessed = unprocessed.into_iter();
    unprocessed.next().unwrap().run();
    assert_eq!(ran.take(), ["a"]);
    drop(unprocessed.next());
    let (second, second_clock) = manual_with(on(wheel));
    second.new_timeout(unprocessed.next().unwrap().into_task(), ms(100)).unwrap();
    second_clock.advance_in_one_jump(ms(100));
    assert_eq!(ran.take(), ["queued"], "a task taken out runs in another timer");
    assert_conserved(&timer);
}

/// The deadlines are random, equal, past, far and never. Three threads schedule them, two before and one after
/// some ticks; some are cancelled, moved, or run before.
#[test]
fn rule_01_returned_timeouts_have_their_own_deadlines_and_tasks() {
    for seed in 1..=20 {
        let (timer, clock) = manual_with(HashedWheelTimer::builder());
        let (start, never) = (timer.started_at(), Duration::MAX);
        let mut expected = Vec::new();
        let schedule = |thread: u64| {
            let (mut random, mut kept) = (Random(seed << 8 | thread), Vec::new());
            for n in 0..500 {
                let task = Remind(thread << 32 | n);
                let timeout = match random.below(8) {
                    0 => timer.new_timeout(task, never),
                    1 => timer.new_timeout_at(task, start + ms(7_000_000)),
                    2 => timer.new_timeout_at(task, start), // past
                    3 => timer.new_timeout(task, Duration::from_secs(1 << random.below(30))),
                    4 => timer.new_timeout(task, never - Duration::from_nanos(random.below(99))),
                    _ => timer.new_timeout(task, Duration::from_nanos(random.below(1 << 40))),
                };
                let timeout = timeout.unwrap();
                match random.below(8) {
                    0 => assert!(timeout.cancel()),
                    1 => timeout.reschedule(ms(random.below(100_000))).unwrap(),
                    _ => {}
                }
                kept.push((timeout, thread << 32 | n));
            }
            kept
        };
        thread::scope(|scope| {
            let threads = [1, 2].map(|thread| scope.spawn(move || schedule(thread)));
            threads.into_iter().for_each(|thread| expected.extend(thread.join().unwrap()));
            clock.advance_in_one_jump(ms(500));
            expected.extend(scope.spawn(|| schedule(3)).join().unwrap());
        });
        expected.retain(|(timeout, _)| timeout.is_pending());
        let mut expected: Vec<_> =
            expected.into_iter().map(|(t, task)| (t.deadline().unwrap(), task)).collect();
        let returned = timer.stop().unwrap();
        assert!(returned.len() > 1000, "most are pending");
        drop(timer);
        let task = |unprocessed: Unprocessed| {
            let deadline = unprocessed.deadline();
            (deadline, unprocessed.downcast::<Remind>().map(|Remind(task)| task).unwrap())
        };
        let mut returned: Vec<_> = returned.into_iter().map(task).collect();
        expected.sort_unstable();
        returned.sort_unstable();
        assert_eq!(returned, expected, "seed {seed}");
    }
}

/// A task of 8 bytes lies in its slot, one of 64 in a box.
#[test]
fn a_returned_task_is_recognised_by_its_type() {
    #[derive(Debug, PartialEq)]
    struct Saved<const N: usize>([u64; N]);

    impl<const N: usize> TimerTask for Saved<N> {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            Next::done()
        }
    }

    let timer = HashedWheelTimer::new().unwrap();
    let ran = Record::new();
    let boxed: Box<dyn FnOnce() + Send> = Box::new(ran.note("boxed"));
    timer.new_timeout(Saved([7]), ms(10_000)).unwrap();
    timer.new_timeout(Saved([8; 8]), ms(20_000)).unwrap();
    timer.new_timeout(ran.note("unnamed"), ms(30_000)).unwrap();
    timer.new_timeout(boxed, ms(40_000)).unwrap();
    let [small, large, closure, boxed]: [_; 4] = timer.stop().unwrap().try_into().unwrap();
    assert!(small.is::<Saved<1>>() && !small.is::<Saved<8>>() && large.is::<Saved<8>>());
    let due = large.deadline();
    let large = large.downcast::<Saved<1>>().expect_err("it is larger");
    assert_eq!((large.deadline(), large.timeout().is_cancelled()), (due, false));
    assert_eq!(large.downcast::<Saved<8>>().unwrap(), Saved([8; 8]));
    assert_eq!(small.into_task().downcast::<Saved<1>>().unwrap(), Saved([7]));
    closure.downcast::<Saved<1>>().expect_err("a closure").run();
    boxed.downcast::<Box<dyn FnOnce() + Send>>().expect("its type has a name")();
    assert_eq!(ran.take(), ["unnamed", "boxed"]);
}

/// A task that was taken out and scheduled again is the same task.
#[test]
fn a_task_scheduled_again_keeps_its_type() {
    fn greet() {}
    let (mut timer, mut task) = (HashedWheelTimer::new().unwrap(), None::<wheelwork::task::Task>);
    for again in 0..4 {
        match task.take() {
            Some(task) => timer.new_timeout(task, ms(10_000)).unwrap(),
            None => timer.new_timeout(greet as fn(), ms(10_000)).unwrap(),
        };
        let unprocessed = timer.stop().unwrap().remove(0);
        assert!(
            unprocessed.is::<fn()>() && !unprocessed.is::<Box<dyn FnOnce() + Send>>(),
            "time {again}"
        );
        assert!(unprocessed.is::<wheelwork::task::Task>(), "every task is a `Task`");
        task = Some(unprocessed.into_task());
        timer = HashedWheelTimer::new().unwrap();
    }
    assert!(task.unwrap().downcast::<fn()>().is_ok());
}

/// It is refused by a timer that is stopped, and by one that is full.
#[test]
fn rule_01_a_task_of_another_timer_comes_back_if_it_is_refused() {
    let returned = || {
        let timer = HashedWheelTimer::new().unwrap();
        timer.new_timeout(Remind(7), ms(60_000)).unwrap();
        timer.stop().unwrap().remove(0).into_task()
    };
    let stopped = HashedWheelTimer::new().unwrap();
    stopped.stop().unwrap();
    let full = HashedWheelTimer::builder().max_pending_timeouts(1).build().unwrap();
    full.new_timeout(|| (), ms(60_000)).unwrap();
    for timer in [stopped, full] {
        let task = timer.new_timeout(returned(), ms(1)).unwrap_err().into_task();
        assert_eq!(task.downcast::<Remind>().map(|Remind(user)| user).ok(), Some(7));
    }
}

#[test]
fn rule_01_a_stopped_timer_gives_the_task_back() {
    let timer = HashedWheelTimer::new().unwrap();
    timer.stop().unwrap();
    let ran = Record::new();
    let error = timer.new_timeout(ran.note("back"), ms(1)).unwrap_err();
    assert!(matches!(error.reason(), RefusalReason::Stopped));
    assert_eq!(error.to_string(), "the timer is stopped");
    error.into_task()();
    assert_eq!(ran.take(), ["back"]);
    assert_eq!((timer.metrics().rejected, timer.pending_timeouts()), (1, 0));
    assert!(timer.stop().unwrap().is_empty(), "stopping again is no error");
}

struct Remind(u64);

impl TimerTask for Remind {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        Next::done()
    }
}

/// Also if it was scheduled in another timer meanwhile.
#[test]
fn a_returned_task_can_be_downcast() {
    let returned_by = |timer: HashedWheelTimer| timer.stop().unwrap().remove(0).into_task();
    let first = HashedWheelTimer::new().unwrap();
    first.new_timeout(Remind(7), ms(60_000)).unwrap();
    let second = HashedWheelTimer::new().unwrap();
    second.new_timeout(returned_by(first), ms(60_000)).unwrap();
    let task = returned_by(second).downcast::<Told>().err().expect("it is a `Remind`");
    assert_eq!(task.downcast::<Remind>().map(|Remind(user)| user).ok(), Some(7));
}
