//! Sleeps, and the rules at the head of `src/future/sleep.rs`.

use crate::common::{
    Mutex, UPTIMES, blocking_task, eventually, manual, manual_with, ms, on, shortly_before,
};
use crate::on_every_wheel;
use crate::wakers::{Alarm, Hooks, block_on};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::future::Sleep;
use wheelwork::time::Clock;
use wheelwork::timer::WheelKind;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_sleep_is_small_and_goes_anywhere() {
    fn anywhere<T: Send + Sync + Unpin>() {}
    anywhere::<Sleep>();
    let words = if cfg!(feature = "tracing") { 7 } else { 6 };
    let deadline = size_of::<u64>(); // 56 bytes in all if a word has 8, and 64 with `tracing`
    assert_eq!(size_of::<Sleep>(), deadline + words * size_of::<usize>());
}

on_every_wheel!(rule_02_a_sleep_is_ready_at_its_deadline_and_not_before);

fn rule_02_a_sleep_is_ready_at_its_deadline_and_not_before(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    assert_eq!(alarm.poll(&mut sleep), Poll::Pending);
    clock.advance_in_one_jump(SECOND - Duration::from_nanos(1));
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (0, Poll::Pending));
    assert!(!sleep.is_elapsed());
    clock.advance_in_one_jump(Duration::from_nanos(1));
    assert_eq!((alarm.wakes(), sleep.is_elapsed()), (1, true));
    for _ in 0..3 {
        assert_eq!(alarm.poll(&mut sleep), Poll::Ready(()), "it stays ready");
    }
    assert_eq!((alarm.clones(), sleep.was_stopped()), (0, false));
}

#[test]
fn in_real_time_a_sleep_takes_its_time() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let begin = Instant::now();
    block_on(timer.sleep(ms(20)));
    assert!(begin.elapsed() >= ms(20));
    block_on(timer.sleep_until(begin + ms(40)));
    assert!(begin.elapsed() >= ms(40));
}

#[test]
fn the_first_poll_arms_it() {
    let (timer, clock) = manual();
    let mut sleep = timer.sleep(SECOND);
    assert_eq!((timer.metrics().scheduled, sleep.deadline()), (0, timer.now() + SECOND));
    clock.advance_in_one_jump(SECOND / 2); // the deadline counts from the call
    let alarm = Alarm::new();
    assert!(alarm.poll(&mut sleep).is_pending());
    assert_eq!(timer.metrics().scheduled, 1);
    clock.advance_in_one_jump(SECOND / 2);
    assert_eq!(alarm.wakes(), 1);
}

#[test]
fn a_deadline_in_the_past_is_ready_at_the_first_poll_and_arms_nothing() {
    let (timer, clock) = manual();
    clock.advance_in_one_jump(SECOND);
    let past = timer.now() - SECOND / 2;
    let alarm = Alarm::new();
    for mut sleep in [timer.sleep(Duration::ZERO), timer.sleep_until(past)] {
        assert!(sleep.is_elapsed());
        assert_eq!(alarm.poll(&mut sleep), Poll::Ready(()));
    }
    let start = timer.started_at();
    let mut sleep = timer.sleep_until(start - SECOND);
    assert_eq!((sleep.deadline(), alarm.poll(&mut sleep)), (start, Poll::Ready(())));
    assert_eq!((timer.metrics().scheduled, alarm.clones()), (0, 0));
}

#[test]
fn rule_10_a_maximal_delay_is_never() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(Duration::MAX));
    let mut far = timer.sleep(Duration::from_secs(600 * 365 * 86_400));
    for _ in 0..4 {
        assert!(alarm.poll(&mut sleep).is_pending() && alarm.poll(&mut far).is_pending());
        clock.advance_in_one_jump(Duration::from_secs(150 * 365 * 86_400));
    }
    assert_eq!(alarm.wakes(), 0);
}

#[test]
fn a_poll_with_the_same_waker_registers_once() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    for _ in 0..10 {
        assert!(alarm.poll(&mut sleep).is_pending());
        clock.advance_in_one_jump(ms(1));
    }
    assert_eq!((timer.metrics().scheduled, alarm.clones()), (1, 1));
}

/// smol#167.
#[test]
fn the_latest_waker_wins_and_the_previous_is_dropped_at_once() {
    let (timer, clock) = manual();
    let alarms = [(); 3].map(|()| Alarm::new());
    let mut sleep = timer.sleep(SECOND);
    for (latest, alarm) in alarms.iter().enumerate() {
        assert!(alarm.poll(&mut sleep).is_pending());
        let clones = [0, 1, 2].map(|n| usize::from(n == latest));
        assert_eq!(alarms.each_ref().map(Alarm::clones), clones);
    }
    assert_eq!(timer.pending_timeouts(), 1);
    clock.advance_in_one_jump(SECOND);
    assert_eq!(alarms.each_ref().map(Alarm::wakes), [0, 0, 1]);
}

/// tokio#8550.
#[test]
fn a_drop_drops_the_waker_at_once() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    assert_eq!(alarm.clones(), 1);
    drop(sleep);
    assert_eq!((alarm.clones(), timer.pending_timeouts()), (0, 0));
    clock.advance_in_one_jump(SECOND);
    assert_eq!(alarm.wakes(), 0);
}

#[test]
fn a_reset_moves_the_deadline_and_keeps_the_waker() {
    let (timer, clock) = manual();
    for (to, first, then) in [(3, 2, 1), (1, 0, 1)] {
        let (alarm, mut sleep) = (Alarm::new(), timer.sleep(2 * SECOND));
        assert!(alarm.poll(&mut sleep).is_pending());
        sleep.reset_after(to * SECOND);
        clock.advance_in_one_jump(first * SECOND);
        assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (0, Poll::Pending), "to {to} s");
        clock.advance_in_one_jump(then * SECOND);
        assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (1, Poll::Ready(())), "to {to} s");
    }
}

/// tokio#8274, futures-timer#56. The clock stands still, so no later tick wakes the task.
#[test]
fn a_reset_into_the_past_wakes_at_once() {
    let (timer, clock) = manual();
    clock.advance_in_one_jump(SECOND);
    for past in [timer.now(), timer.now() - SECOND / 2, timer.started_at()] {
        let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
        assert!(alarm.poll(&mut sleep).is_pending());
        sleep.reset(past);
        assert_eq!((alarm.wakes(), alarm.clones()), (1, 0));
        assert_eq!(alarm.poll(&mut sleep), Poll::Ready(()));
    }
    assert_eq!(timer.pending_timeouts(), 0);
}

/// A tick takes an hour, so the worker would wake the task too late.
#[test]
fn on_the_systems_clock_too_a_reset_into_the_past_wakes_at_once() {
    let hour = Duration::from_secs(3600);
    let timer = HashedWheelTimer::builder().tick_duration(hour).build().unwrap();
    let alarm = Alarm::new();
    let mut sleep = timer.sleep(2 * hour);
    assert!(alarm.poll(&mut sleep).is_pending());
    sleep.reset_after(Duration::ZERO);
    assert_eq!(alarm.wakes(), 1);
    sleep.reset_after(2 * hour);
    assert!(alarm.poll(&mut sleep).is_pending());
    sleep.reset(timer.now());
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (2, Poll::Ready(())));
}

/// The worker has claimed the timeout of the previous deadline, which does not mean that the new one has passed.
#[test]
fn on_the_systems_clock_too_a_reset_after_the_wake_up_counts() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    for looks in [true, false] {
        let (alarm, mut sleep) = (Alarm::new(), timer.sleep(Duration::from_secs(3600)));
        assert!(alarm.poll(&mut sleep).is_pending());
        sleep.reset_after(ms(50));
        eventually("the worker wakes it", || alarm.wakes() == 1);
        assert!(!looks || alarm.poll(&mut sleep).is_ready());
        sleep.reset_after(Duration::from_secs(3600));
        assert!(alarm.poll(&mut sleep).is_pending() && !sleep.is_elapsed());
        sleep.reset(timer.now());
        assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (2, Poll::Ready(())));
    }
}

#[test]
fn a_reset_lets_it_be_awaited_again() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    for round in 1..4 {
        assert!(alarm.poll(&mut sleep).is_pending());
        clock.advance_in_one_jump(SECOND);
        assert_eq!((alarm.poll(&mut sleep), alarm.wakes()), (Poll::Ready(()), round));
        sleep.reset_after(SECOND);
        assert!(!sleep.is_elapsed());
    }
}

/// The worker has woken the task, which has not polled yet.
#[test]
fn a_reset_after_the_wake_up_counts() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    clock.advance_in_one_jump(SECOND);
    sleep.reset_after(SECOND);
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (1, Poll::Pending));
    clock.advance_in_one_jump(SECOND);
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (2, Poll::Ready(())));
}

/// tokio#8169.
#[test]
fn a_reset_on_a_thread_of_another_timer_stays_with_its_timer() {
    let (timer, clock) = manual();
    let (other, other_clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| {
            other.new_timeout(|| (), SECOND).unwrap();
            sleep.reset_after(2 * SECOND);
            assert!(alarm.poll(&mut sleep).is_pending());
        });
        elsewhere.join().unwrap();
    });
    assert_eq!((timer.pending_timeouts(), other.pending_timeouts()), (1, 1));
    other_clock.advance_in_one_jump(5 * SECOND);
    clock.advance_in_one_jump(SECOND);
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (0, Poll::Pending));
    clock.advance_in_one_jump(SECOND);
    assert_eq!(alarm.wakes(), 1);
}

/// A real-time clock that stands still, so the worker stays asleep.
#[derive(Clone)]
struct Unheard(Instant, Arc<AtomicU64>);

impl Clock for Unheard {
    fn now(&self) -> Instant {
        self.0 + ms(self.1.load(SeqCst))
    }
}

/// quinn#2677, tokio#7883: the worker has not processed the deadline, and no task was woken.
#[test]
fn the_clock_decides_and_not_the_wake_up() {
    let clock = Unheard(Instant::now(), Arc::default());
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, Duration::ZERO).unwrap();
    clock.1.store(1_000, SeqCst);
    gate.wait();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(Duration::from_secs(3600)));
    assert!(alarm.poll(&mut sleep).is_pending());
    clock.1.store(3_600_999, SeqCst);
    assert!(!sleep.is_elapsed() && alarm.poll(&mut sleep).is_pending());
    clock.1.store(3_601_000, SeqCst);
    assert!(sleep.is_elapsed() && alarm.poll(&mut sleep).is_ready());
    assert_eq!((alarm.wakes(), alarm.clones(), timer.pending_timeouts()), (0, 0, 0));
}

/// No clock may go back. If one does, a task is woken too often, but not too seldom.
#[test]
fn after_a_clock_has_gone_back_a_poll_registers_again() {
    let clock = Unheard(Instant::now(), Arc::default());
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).clock(clock.clone());
    let timer = builder.build().unwrap();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(ms(2)));
    assert!(alarm.poll(&mut sleep).is_pending());
    clock.1.store(10, SeqCst);
    eventually("it expires", || alarm.wakes() == 1);
    clock.1.store(0, SeqCst);
    assert!(alarm.poll(&mut sleep).is_pending());
    assert_eq!((timer.metrics().scheduled, alarm.clones()), (2, 1));
}

/// tokio#8334.
#[test]
fn rule_10_a_long_uptime_is_ordinary() {
    for uptime in UPTIMES {
        let (timer, clock) = shortly_before(uptime);
        let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
        let mut far = timer.sleep(uptime);
        assert!(alarm.poll(&mut sleep).is_pending() && alarm.poll(&mut far).is_pending());
        clock.advance_in_one_jump(SECOND - ms(1));
        assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (0, Poll::Pending), "{uptime:?}");
        clock.advance_in_one_jump(ms(1));
        assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (1, Poll::Ready(())), "{uptime:?}");
        clock.advance_in_one_jump(uptime - SECOND - ms(1));
        assert!(alarm.poll(&mut far).is_pending(), "{uptime:?}");
        clock.advance_in_one_jump(ms(1));
        assert_eq!((alarm.wakes(), alarm.poll(&mut far)), (2, Poll::Ready(())), "{uptime:?}");
    }
}

#[test]
fn the_limit_of_pending_timeouts_does_not_apply() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(1));
    timer.new_timeout(|| (), SECOND).unwrap();
    let alarm = Alarm::new();
    let mut sleeps: Vec<Sleep> = (0..10).map(|_| timer.sleep(SECOND)).collect();
    assert!(sleeps.iter_mut().all(|sleep| alarm.poll(sleep).is_pending()));
    assert_eq!((alarm.wakes(), timer.pending_timeouts()), (0, 11));
    assert!(timer.new_timeout(|| (), SECOND).is_err(), "they count");
    clock.advance_in_one_jump(SECOND);
    assert_eq!(alarm.wakes(), 10);
    timer.new_timeout(|| (), SECOND).expect("there is room again");
}

#[test]
fn rule_07_sleeps_of_one_thread_and_tick_wake_in_the_order_of_their_first_polls() {
    let (timer, clock) = manual();
    let (sender, woken) = mpsc::channel();
    let wakers = [0, 1, 2].map(|number| {
        let sender = Mutex::new(sender.clone());
        let on_wake = Box::new(move || sender.lock().unwrap().send(number).unwrap());
        Hooks { on_wake, ..Hooks::default() }.waker()
    });
    let mut sleeps = [(); 3].map(|()| timer.sleep(SECOND));
    for (sleep, waker) in sleeps.iter_mut().zip(&wakers).rev() {
        assert!(std::pin::pin!(sleep).poll(&mut Context::from_waker(waker)).is_pending());
    }
    clock.advance_in_one_jump(SECOND);
    assert_eq!(woken.try_iter().collect::<Vec<_>>(), [2, 1, 0]);
}

/// The executor has no free thread, or it is gone.
#[test]
fn wake_ups_run_on_the_worker_whatever_the_executor() {
    let held = Arc::new(Mutex::new(Vec::new()));
    let jobs = held.clone();
    let executor = move |job| {
        jobs.lock().unwrap().push(job);
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let (sender, woken) = mpsc::channel();
    let sender = Mutex::new(sender);
    let on_wake = Box::new(move || {
        let thread = std::thread::current();
        sender.lock().unwrap().send(thread.name().map(str::to_owned)).unwrap();
    });
    let waker = Hooks { on_wake, ..Hooks::default() }.waker();
    let mut sleep = timer.sleep(SECOND);
    let poll = std::pin::pin!(&mut sleep).poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending());
    timer.new_timeout(|| (), SECOND).unwrap();
    clock.advance_in_one_jump(SECOND);
    assert_eq!(woken.try_recv().unwrap().as_deref(), Some("wheelwork-timer"));
    assert_eq!(held.lock().unwrap().len(), 1, "the other is the executor's");
}

#[test]
fn rule_05_a_waker_that_panics_hurts_nobody() {
    let (timer, clock) = manual();
    let bad = || panic!("a bad waker");
    let panics = [
        Hooks { on_wake: Box::new(bad), ..Hooks::default() },
        Hooks { on_drop: Box::new(bad), ..Hooks::default() },
        Hooks { on_clone: Box::new(bad), ..Hooks::default() },
    ];
    let [wakes, drops, clones] = panics.map(|hooks| std::mem::ManuallyDrop::new(hooks.waker()));
    let alarm = Alarm::new();
    let mut sleeps = [(); 4].map(|()| timer.sleep(SECOND));
    let poll = |sleep: &mut Sleep, waker| {
        catch_unwind(AssertUnwindSafe(|| {
            std::pin::pin!(sleep).poll(&mut Context::from_waker(waker)).is_pending()
        }))
    };
    let [first, second, third, last] = &mut sleeps;
    assert!(poll(first, &wakes).unwrap());
    assert!(poll(second, &drops).unwrap());
    assert!(poll(third, &clones).is_err(), "the caller's own");
    assert!(alarm.poll(third).is_pending() && alarm.poll(last).is_pending());
    let panicked = || timer.metrics().panicked;
    assert!(alarm.poll(second).is_pending(), "the bad waker is dropped");
    assert_eq!(panicked(), 1);
    clock.advance_in_one_jump(SECOND);
    assert_eq!((alarm.wakes(), panicked()), (3, 2));
    assert!(sleeps.iter_mut().all(|sleep| alarm.poll(sleep).is_ready()));
    // A reset wakes on the calling thread.
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &wakes).unwrap());
    sleep.reset(timer.started_at());
    assert_eq!(panicked(), 3);
    // A stop wakes on the worker.
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &wakes).unwrap());
    timer.stop().unwrap();
    assert_eq!((panicked(), alarm.poll(&mut sleep)), (4, Poll::Ready(())));
}

/// tokio#5429, tokio#8552, smol#143: if a lock were held, a call of the timer would wait for itself.
#[test]
fn rule_09_wakers_are_cloned_woken_and_dropped_under_no_lock() {
    let (timer, clock) = manual();
    let calls = Arc::new(AtomicUsize::new(0));
    let call = || -> Box<dyn Fn() + Send + Sync> {
        let (timer, calls) = (timer.clone(), calls.clone());
        Box::new(move || {
            let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
            assert!(alarm.poll(&mut sleep).is_pending());
            sleep.reset_after(SECOND / 2);
            drop(sleep);
            timer.new_timeout(|| (), SECOND).unwrap().cancel();
            timer.metrics();
            calls.fetch_add(1, SeqCst);
        })
    };
    let waker = Hooks { on_wake: call(), on_clone: call(), on_drop: call() }.waker();
    let mut context = Context::from_waker(&waker);
    let alarm = Alarm::new();
    let mut sleeps = [(); 3].map(|()| timer.sleep(SECOND));
    for sleep in &mut sleeps {
        assert!(std::pin::pin!(sleep).poll(&mut context).is_pending());
    }
    assert_eq!(calls.load(SeqCst), 3, "cloned");
    assert!(alarm.poll(&mut sleeps[0]).is_pending());
    assert_eq!(calls.load(SeqCst), 4, "replaced");
    sleeps[1].reset(timer.started_at());
    assert_eq!(calls.load(SeqCst), 5, "woken by a reset");
    clock.advance_in_one_jump(SECOND);
    assert_eq!(calls.load(SeqCst), 6, "woken by the worker");
}

/// An executor may poll inside `wake`, and the task may drop everything there.
#[test]
fn a_wake_up_may_poll_or_drop_its_own_sleep() {
    for drops in [false, true] {
        let (timer, clock) = manual();
        let place = Arc::new(Mutex::new(Some(timer.sleep(SECOND))));
        let (sender, ready) = mpsc::channel();
        let (sender, own) = (Mutex::new(sender), place.clone());
        let on_wake = Box::new(move || {
            let mut sleep = own.lock().unwrap();
            let poll = sleep.as_mut().map(|sleep| Alarm::new().poll(sleep).is_ready());
            sender.lock().unwrap().send(poll).unwrap();
            if drops {
                *sleep = None;
            }
        });
        let waker = Hooks { on_wake, ..Hooks::default() }.waker();
        let mut sleep = place.lock().unwrap();
        let poll = std::pin::pin!(sleep.as_mut().unwrap()).poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        drop(sleep);
        clock.advance_in_one_jump(SECOND);
        assert_eq!(ready.try_recv(), Ok(Some(true)));
        assert_eq!(place.lock().unwrap().is_none(), drops);
    }
}

/// One sleep has not been polled, one waits, one is ready. They and their clock outlive the timer.
#[test]
fn the_drop_of_the_last_handle_resolves_every_sleep() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    let [mut unarmed, mut armed, mut ready] = [9, 9, 1].map(|n| timer.sleep(n * SECOND));
    let deadline = armed.deadline();
    assert!(alarm.poll(&mut armed).is_pending());
    clock.advance_in_one_jump(SECOND);
    assert!(alarm.poll(&mut ready).is_ready());
    drop(timer);
    assert!(alarm.poll(&mut unarmed).is_ready() && unarmed.was_stopped());
    eventually("the worker wakes it", || alarm.wakes() == 1);
    assert!(alarm.poll(&mut armed).is_ready() && armed.was_stopped());
    assert!(alarm.poll(&mut ready).is_ready() && !ready.was_stopped());
    assert_eq!((alarm.clones(), armed.deadline(), armed.is_elapsed()), (0, deadline, false));
    clock.advance_in_one_jump(9 * SECOND); // does not wait for a timer that has ended
    assert!(armed.is_elapsed());
    armed.reset_after(SECOND);
    assert!(alarm.poll(&mut armed).is_ready() && armed.was_stopped());
}

/// Sleeps are created, polled and dropped on other threads, some of which have ended.
#[test]
fn a_sleep_goes_from_thread_to_thread() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    let make = || (0..200).map(|_| timer.sleep(SECOND)).collect::<Vec<_>>();
    let poll = |mut sleeps: Vec<Sleep>| {
        assert!(sleeps.iter_mut().all(|sleep| alarm.poll(sleep).is_pending()));
        sleeps
    };
    let sleeps = std::thread::scope(|scope| scope.spawn(make).join().unwrap());
    let sleeps = std::thread::scope(|scope| scope.spawn(|| poll(sleeps)).join().unwrap());
    assert_eq!((alarm.clones(), timer.pending_timeouts()), (200, 200));
    let mut sleeps = poll(sleeps);
    let dropped = sleeps.split_off(100);
    std::thread::scope(|scope| scope.spawn(|| drop(dropped)).join().unwrap());
    assert_eq!((alarm.clones(), timer.pending_timeouts()), (100, 100));
    clock.advance_in_one_jump(SECOND);
    assert_eq!(alarm.wakes(), 100);
    assert!(sleeps.iter_mut().all(|sleep| alarm.poll(sleep).is_ready()));
}
