//! Panics beneath the idle manager.

use super::{BadClock, Bomb, assert_unhurt};
use crate::common::{Mutex, Record, TICK, assert_conserved, manual, ms};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::executor::Job;
#[cfg(feature = "tokio")]
use wheelwork::idle::IdleStreams;
use wheelwork::idle::{Answer, IdleKind, IdlePolicy, IdleTimeouts};

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

/// The panic drops the check, and another check replaces it.
#[test]
fn rule_05_an_idle_check_whose_clock_panics_is_replaced() {
    let (timer, clock, jobs) = with_a_bad_clock_in_jobs();
    let (idle, events) = a_recording_manager(&timer, Answer::StopWatching);
    let policy = IdlePolicy::new().both(ms(1));
    let watches = [1, 2].map(|id| idle.watch(id, &policy).unwrap());
    run_where_the_clock_is_bad(jobs.recv().unwrap());
    assert_eq!((clock.panics(), events.len(), idle.watched()), (1, 0, 2));
    while events.len() < 2 {
        jobs.recv_timeout(Duration::from_secs(60)).expect("another check").run();
    }
    assert!(events.take().iter().all(|&(_, kind)| kind == IdleKind::Both));
    assert_eq!((idle.watched(), timer.metrics().panicked), (0, 1));
    drop(watches);
    assert!(timer.stop().unwrap().is_empty());
    assert_conserved(&timer);
}

/// The timer stops meanwhile, so the dropped check cannot be replaced. It reports every connection,
/// without reading the clock.
#[test]
fn rule_05_an_idle_check_whose_clock_panics_still_reports_a_stop() {
    let (timer, clock, jobs) = with_a_bad_clock_in_jobs();
    let (idle, events) = a_recording_manager(&timer, Answer::KeepWatching);
    let policy = IdlePolicy::new().both(ms(1));
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
    let policy = IdlePolicy::new().both(TICK);
    let watches = [1, 2].map(|id| idle.watch(id, &policy).unwrap());
    (0..3).for_each(|_| clock.advance_in_one_jump(TICK));
    assert!(idle.panicked() >= 1 && calls.len() as u64 == idle.panicked());
    assert_eq!((idle.watched(), timer.metrics().panicked), (2, 0), "they are watched on");
    drop(watches);
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_a_panic_in_the_drop_of_a_watched_connection_is_contained() {
    let (timer, clock) = manual();
    let idle = IdleTimeouts::new(&timer, |_: &mut Bomb, _| Answer::StopWatching);
    let policy = IdlePolicy::new().both(TICK);
    let reported = [(); 2].map(|()| idle.watch(Bomb::armed(), &policy).unwrap());
    (0..3).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!((idle.watched(), timer.metrics().panicked), (0, 0));
    drop(reported);
    let watch = idle.watch(Bomb::armed(), &policy).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(watch))).is_err(), "it is the caller's");
    assert_eq!(idle.watched(), 0);
    assert_unhurt(&timer, &clock);
}

/// Whoever takes connections gets them, or they stay watched.
#[test]
fn rule_01_a_clock_that_panics_loses_no_connection_that_is_taken() {
    let (timer, clock, _jobs) = with_a_bad_clock_in_jobs();
    let (idle, events) = a_recording_manager(&timer, Answer::StopWatching);
    let _watches = [1, 2].map(|id| idle.watch(id, &IdlePolicy::new()).unwrap());
    let taking = idle.clone();
    let taker = std::thread::Builder::new().name(EXECUTOR.to_owned());
    assert!(taker.spawn(move || taking.take_idlest(2)).unwrap().join().is_err());
    assert_eq!((clock.panics(), idle.watched(), events.len()), (1, 2, 0));
}

/// The panic of a touch unwinds through guards and a stream, whose drops read the clock too. A second panic would end the
/// process.
#[test]
#[cfg(feature = "tokio")]
fn rule_05_a_pause_that_ends_as_the_clock_panics_goes_on() {
    let (timer, clock, _jobs) = with_a_bad_clock_in_jobs();
    let (idle, _) = a_recording_manager(&timer, Answer::StopWatching);
    let watch = Arc::new(idle.watch(1, &IdlePolicy::new()).unwrap());
    let streams = IdleStreams::new(&timer);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, pauser) = streams.wrap_with_pauser(socket, &IdlePolicy::new()).unwrap();
    let unwound = watch.clone();
    let user = std::thread::Builder::new().name(EXECUTOR.to_owned());
    let user = user.spawn(move || {
        let _dropped = (unwound.pause(), pauser.pause(), stream);
        unwound.touch();
    });
    assert!(user.unwrap().join().is_err());
    assert_eq!(clock.panics(), 4);
    assert!(watch.end_pause(), "it is still paused");
    assert!(!watch.end_pause());
}
