//! Timers on a clock that also runs while the machine is suspended. No test can suspend the machine: these show that
//! the timer keeps its promises on the other way of sleeping.

use crate::common::{Record, assert_conserved, eventually, ms};
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::time::{BoottimeClock, Clock};

const HOUR: Duration = Duration::from_secs(3600);

fn timer() -> HashedWheelTimer {
    HashedWheelTimer::builder().tick_duration(ms(1)).clock(BoottimeClock).build().unwrap()
}

#[test]
fn it_never_goes_back_and_is_never_behind_the_system_clock() {
    // The two were read one after the other when the process first used the clock, and here.
    let mut last = BoottimeClock.now();
    let behind = Instant::now().saturating_duration_since(last);
    assert!(behind < Duration::from_secs(60));
    for _ in 0..10_000 {
        let system = Instant::now();
        let now = BoottimeClock.now();
        assert!(now >= last && now + behind >= system);
        last = now;
    }
}

#[test]
fn rule_02_timeouts_run_and_none_is_early() {
    let (timer, ran) = (timer(), Record::new());
    for n in 0..200 {
        let (due, record) = (timer.now() + ms(n), ran.clone());
        timer.new_timeout_at(move || record.push((due, BoottimeClock.now())), due).unwrap();
    }
    eventually("all have run", || ran.len() == 200);
    assert!(ran.take().iter().all(|(due, at)| at >= due), "early");
    assert_conserved(&timer);
}

#[test]
fn rule_06_its_worker_sleeps_while_nothing_is_due() {
    let timer = timer();
    timer.new_timeout(|| (), HOUR).unwrap();
    std::thread::sleep(ms(50));
    let before = timer.metrics().wakeups;
    std::thread::sleep(ms(200));
    assert!(timer.metrics().wakeups - before <= 2);
}

/// The system ends the wait of a thread that handles a signal. Profilers send many.
#[test]
fn rule_06_a_signal_does_not_wake_its_worker() {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    extern "C" fn ignore(_: i32) {}
    let handler = SigHandler::Handler(ignore);
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing.
    unsafe { sigaction(Signal::SIGURG, &action) }.unwrap();
    let (timer, (tell, told)) = (timer(), std::sync::mpsc::channel());
    // SAFETY: it only reads.
    let tell = move || tell.send(unsafe { nix::libc::pthread_self() }).unwrap();
    timer.new_timeout(tell, ms(1)).unwrap();
    let worker = told.recv().unwrap();
    eventually("it sleeps", || {
        let before = timer.metrics().wakeups;
        std::thread::sleep(ms(20));
        timer.metrics().wakeups == before
    });
    let before = timer.metrics().wakeups;
    for _ in 0..500 {
        // SAFETY: the worker's thread lives until the timer is dropped.
        assert_eq!(unsafe { nix::libc::pthread_kill(worker, nix::libc::SIGURG) }, 0);
        std::thread::sleep(Duration::from_micros(200));
    }
    // It may have been about to sleep.
    assert!(timer.metrics().wakeups < before + 10);
    assert_conserved(&timer);
}

#[test]
fn rule_09_a_sooner_timeout_and_a_stop_wake_its_worker() {
    let (timer, ran) = (timer(), Record::new());
    let far = timer.new_timeout(|| (), HOUR).unwrap();
    for n in 0..50 {
        std::thread::sleep(ms(n % 5));
        timer.new_timeout(ran.note(n), ms(2)).unwrap();
        eventually("it runs long before the hour", || ran.len() as u64 == n + 1);
    }
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert!(!far.is_expired());
}
