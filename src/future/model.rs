//! Loom models of the futures on the whole timer, with the worker's own thread. A lost wake-up leaves a
//! thread waiting, and loom reports the deadlock.

use super::sleep::Sleep;
use super::stop_async::Stop;
use crate::base::sync::{Arc, Condvar, Mutex, check_up_to, spawn};
use crate::time::ManualClock;
use crate::timer::HashedWheelTimer;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);

fn on(clock: &ManualClock) -> HashedWheelTimer {
    let builder = HashedWheelTimer::builder().tick_duration(TICK).ticks_per_wheel(1);
    builder.clock(clock.clone()).build().expect("settings within their ranges")
}

/// A task that waits until it is woken.
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn new() -> Arc<Self> {
        Arc::new(Self { rung: Mutex::new(false), changed: Condvar::new() })
    }

    fn wait(&self) {
        let mut rung = self.rung.lock();
        while !*rung {
            rung = self.changed.wait(rung);
        }
        *rung = false;
    }

    /// Polls once.
    fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(&self.clone().into()))
    }

    /// Waits and polls until the future is ready. The caller has already polled it once.
    fn finish<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> F::Output {
        loop {
            self.wait();
            if let Poll::Ready(output) = self.poll(future) {
                return output;
            }
        }
    }

    fn block_on<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> F::Output {
        match self.poll(future) {
            Poll::Ready(output) => output,
            Poll::Pending => self.finish(future),
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock() = true;
        self.changed.notify_one();
    }
}

/// A sleep that has been polled by this task, and is pending.
fn armed(bell: &Arc<Bell>, timer: &HashedWheelTimer, delay: Duration) -> Sleep {
    let mut sleep = timer.sleep(delay);
    assert!(bell.poll(&mut sleep).is_pending());
    sleep
}

fn stop(timer: &HashedWheelTimer) {
    assert!(timer.stop().expect("not on the worker").is_empty(), "no sleep is returned");
}

fn end(timer: &HashedWheelTimer) {
    stop(timer);
    assert_eq!(timer.pending_timeouts(), 0);
}

/// Rules 1 and 2: a sleep is polled for the first time while the clock passes its deadline, and stands
/// still afterwards.
#[test]
fn a_first_poll_against_the_expiry() {
    check_up_to(1, || {
        let clock = ManualClock::new();
        let timer = on(&clock);
        let mut sleep = timer.sleep(TICK);
        let sleeper = spawn(move || Bell::new().block_on(&mut sleep));
        clock.advance_in_one_jump(TICK * 2);
        sleeper.join().unwrap();
        end(&timer);
    });
}

/// Rule 3: a sleep is polled with another waker while it expires. The latest waker is woken, or the
/// poll finds the sleep ready.
#[test]
fn another_waker_against_the_expiry() {
    check_up_to(1, || {
        let clock = ManualClock::new();
        let timer = on(&clock);
        let mut sleep = timer.sleep(TICK);
        assert!(pin!(&mut sleep).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let sleeper = spawn(move || Bell::new().block_on(&mut sleep));
        clock.advance_in_one_jump(TICK * 2);
        sleeper.join().unwrap();
        end(&timer);
    });
}

/// Rule 3 on one thread: the second waker may wait in the slot of the first.
#[test]
fn another_waker_in_the_same_slot_against_the_expiry() {
    check_up_to(1, || {
        let clock = ManualClock::new();
        let timer = on(&clock);
        let mut sleep = timer.sleep(TICK);
        let sleeper = spawn(move || {
            let _ = pin!(&mut sleep).poll(&mut Context::from_waker(Waker::noop()));
            Bell::new().block_on(&mut sleep);
            Bell::new().block_on(&mut sleep);
        });
        clock.advance_in_one_jump(TICK * 2);
        sleeper.join().unwrap();
        end(&timer);
    });
}

/// A reset that pushes the deadline back, pulls it forward, or moves it to the past, while the clock
/// passes the previous deadline or the new one. The task is not polled again before it is woken.
#[test]
fn a_reset_against_the_expiry() {
    for (from, to) in [(1, 4), (4, 1), (4, 0)] {
        check_up_to(1, move || {
            let clock = ManualClock::new();
            let timer = on(&clock);
            let (bell, begin) = (Bell::new(), timer.started_at());
            let mut sleep = armed(&bell, &timer, TICK * from);
            let sleeper = spawn(move || {
                sleep.reset(begin + TICK * to);
                bell.finish(&mut sleep);
                assert!(sleep.is_elapsed());
            });
            clock.advance_in_one_jump(TICK * 2);
            if to > 2 {
                clock.advance_in_one_jump(TICK * 2);
            }
            sleeper.join().unwrap();
            end(&timer);
        });
    }
}

/// Rule 4: a sleep is dropped while it expires. Its waker is gone afterwards.
#[test]
fn a_drop_against_the_expiry() {
    check_up_to(2, || {
        let clock = ManualClock::new();
        let timer = on(&clock);
        let bell = Bell::new();
        let sleep = armed(&bell, &timer, TICK);
        let dropper = spawn(move || drop(sleep));
        clock.advance_in_one_jump(TICK * 2);
        dropper.join().unwrap();
        assert_eq!(Arc::strong_count(&bell), 1);
        end(&timer);
    });
}

/// A sleep is polled for the first time while the timer is stopped. It is ready, or it is woken.
#[test]
fn a_first_poll_against_a_stop() {
    check_up_to(2, || {
        let timer = on(&ManualClock::new());
        let mut sleep = timer.sleep(TICK * 9);
        let sleeper = spawn(move || {
            Bell::new().block_on(&mut sleep);
            assert!(sleep.was_stopped());
        });
        stop(&timer);
        sleeper.join().unwrap();
        end(&timer);
    });
}

/// A sleep is polled for the first time, or waits, while the last handle of the timer is dropped.
#[test]
fn a_sleep_against_the_drop_of_the_last_handle() {
    for waits in [false, true] {
        check_up_to(2, move || {
            let timer = on(&ManualClock::new());
            let bell = Bell::new();
            let mut sleep = timer.sleep(TICK * 9);
            let waits = waits && bell.poll(&mut sleep).is_pending();
            let dropper = spawn(move || drop(timer));
            if waits {
                bell.finish(&mut sleep)
            } else {
                bell.block_on(&mut sleep)
            }
            assert!(sleep.was_stopped());
            dropper.join().unwrap();
        });
    }
}

/// A reset while the timer is stopped.
#[test]
fn a_reset_against_a_stop() {
    for to in [4, 20] {
        check_up_to(1, move || {
            let timer = on(&ManualClock::new());
            let bell = Bell::new();
            let mut sleep = armed(&bell, &timer, TICK * 9);
            let sleeper = spawn(move || {
                sleep.reset_after(TICK * to);
                bell.finish(&mut sleep);
                assert!(sleep.was_stopped());
            });
            stop(&timer);
            sleeper.join().unwrap();
            end(&timer);
        });
    }
}

/// Two tasks stop the timer at once. Both learn of its end, and one gets the unprocessed timeouts.
#[test]
fn two_tasks_stop_a_timer() {
    check_up_to(2, || {
        let timer = on(&ManualClock::new());
        drop(timer.new_timeout(|| (), TICK).map_err(drop).expect("it is open"));
        let other = timer.stop_async();
        let count = |mut stop: Stop| Bell::new().block_on(&mut stop).map_or(0, |left| left.len());
        let second = spawn(move || count(other));
        let first = count(timer.stop_async());
        assert_eq!(first + second.join().unwrap(), 1);
        end(&timer);
    });
}

/// A task that waits for the end is dropped while the timer ends. Its waker is gone afterwards.
#[test]
fn a_stop_that_is_dropped_against_the_end() {
    check_up_to(2, || {
        let timer = on(&ManualClock::new());
        let bell = Bell::new();
        let mut stop = timer.stop_async();
        let poll = bell.poll(&mut stop).is_pending();
        assert!(poll || timer.is_stopped());
        drop(stop);
        end(&timer);
        assert_eq!(Arc::strong_count(&bell), 1);
    });
}
