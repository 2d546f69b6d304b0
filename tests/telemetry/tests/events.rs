//! The timer's warnings as events: each kind, its fields, and at most one of a kind in a second.

use std::time::Duration;
use telemetry::Events;
use wheelwork::executor::Job;
use wheelwork::timer::Builder;
use wheelwork::{HashedWheelTimer, ManualClock};

const TICK: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

fn timer_named(name: &str, builder: Builder) -> (HashedWheelTimer, ManualClock) {
    let clock = ManualClock::new();
    let timer = builder.thread_name(name).clock(clock.clone()).build().expect("a timer");
    (timer, clock)
}

/// The messages and fields of a timer's events.
fn seen(events: &Events, timer: &str) -> Vec<(String, Vec<(&'static str, String)>)> {
    let events = events.of(timer).into_iter();
    events.map(|event| (event.message, event.fields.into_iter().collect())).collect()
}

#[test]
fn a_task_that_panics_is_an_event() {
    let events = Events::of_this_process();
    let (timer, clock) = timer_named("panics", HashedWheelTimer::builder());
    timer.new_timeout(|| panic!("a bad task"), TICK).expect("a timeout");
    clock.advance_in_one_jump(TICK);
    let seen = seen(&events, "panics");
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].0.starts_with("panics: the task of Run"), "{seen:?}");
    assert!(seen[0].0.ends_with("panicked"), "{seen:?}");
}

#[test]
fn refused_jobs_are_summed_up_once_in_a_second() {
    let events = Events::of_this_process();
    let builder = HashedWheelTimer::builder().executor(|job: Job| Err(job));
    let (timer, clock) = timer_named("jobs", builder);
    let refuse = |count: usize| {
        (0..count).for_each(|_| drop(timer.new_timeout(|| (), TICK).expect("a timeout")));
        clock.advance_in_one_jump(TICK);
    };
    refuse(3);
    let first = ("jobs: the executor refused 3 jobs".to_owned(), vec![("jobs", "3".to_owned())]);
    assert_eq!(seen(&events, "jobs"), [first]);
    refuse(2);
    refuse(2);
    assert_eq!(seen(&events, "jobs").len(), 1, "less than a second has passed");
    clock.advance_in_one_jump(SECOND);
    assert_eq!(seen(&events, "jobs")[1].1, [("jobs", "4".to_owned())]);
    timer.stop().expect("a stop");
    assert_eq!(seen(&events, "jobs").len(), 2, "nothing was left to report");
}

#[test]
fn the_end_of_the_timer_reports_the_rest() {
    let events = Events::of_this_process();
    let builder = HashedWheelTimer::builder().executor(|job: Job| Err(job));
    let (timer, clock) = timer_named("rest", builder);
    (0..2).for_each(|_| {
        timer.new_timeout(|| (), TICK).expect("a timeout");
        clock.advance_in_one_jump(TICK);
    });
    assert_eq!(seen(&events, "rest").len(), 1);
    timer.stop().expect("a stop");
    assert_eq!(seen(&events, "rest").len(), 2);
}

#[test]
fn timeouts_refused_at_the_limit_are_an_event() {
    let events = Events::of_this_process();
    let builder = HashedWheelTimer::builder().max_pending_timeouts(1);
    let (timer, clock) = timer_named("limit", builder);
    timer.new_timeout(|| (), TICK).expect("a timeout");
    (0..4).for_each(|_| assert!(timer.new_timeout(|| (), TICK).is_err()));
    clock.advance_in_one_jump(TICK);
    let fields: Vec<_> = seen(&events, "limit").into_iter().map(|(_, fields)| fields).collect();
    assert_eq!(fields, [[("timeouts", "4".to_owned())]]);
}

#[test]
fn a_timeout_that_runs_late_is_an_event() {
    let events = Events::of_this_process();
    let (timer, clock) = timer_named("late", HashedWheelTimer::builder());
    timer.new_timeout(|| (), TICK).expect("a timeout");
    clock.advance_in_one_jump(10 * TICK); // nine ticks late
    assert_eq!(seen(&events, "late"), []);
    timer.new_timeout(|| (), TICK).expect("a timeout");
    clock.advance_in_one_jump(41 * TICK);
    let message = "late: a timeout ran 4s after its deadline: expected at most a tick of 100ms";
    assert_eq!(seen(&events, "late"), [(message.to_owned(), vec![("late_ms", "4000".to_owned())])]);
}

/// Some timeouts of each chunk are due, so the worker files most of the others, more than one pass may.
#[test]
fn a_backlog_is_an_event() {
    let events = Events::of_this_process();
    let (timer, clock) = timer_named("backlog", HashedWheelTimer::builder());
    for n in 0..300_000u32 {
        let ticks = if n % 20 == 0 { 1 } else { 100 + n % 500 };
        drop(timer.new_timeout(|| (), TICK * ticks).expect("a timeout"));
    }
    clock.advance_in_one_jump(TICK);
    timer.stop().expect("a stop");
    let sum: u64 = seen(&events, "backlog")
        .iter()
        .map(|(_, fields)| match &fields[..] {
            [("passes", passes)] => passes.parse::<u64>().expect("a number"),
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!((sum, timer.metrics().passes_with_backlog), (1, 1));
}

#[test]
fn ordinary_timeouts_are_no_event() {
    let events = Events::of_this_process();
    let (timer, clock) = timer_named("ordinary", HashedWheelTimer::builder());
    let timeouts = [1, 2, 3].map(|n| timer.new_timeout(|| (), n * TICK).expect("a timeout"));
    assert!(timeouts[2].cancel());
    (0..20).for_each(|_| clock.advance_in_one_jump(TICK));
    timer.new_timeout(|| (), TICK).expect("a timeout");
    assert_eq!(timer.stop().expect("a stop").len(), 1);
    assert_eq!(seen(&events, "ordinary"), []);
}
