//! The `Debug` and `Display` output of each public type. A value prints even if its task cannot be
//! printed, and from within a task, where a held lock would hang.

use crate::common::{Record, TICK, manual, manual_with, ms};
use std::fmt::Debug;
use std::time::Duration;
use wheelwork::executor::{Job, OnRefusal};
use wheelwork::idle::{Answer, Idle, IdlePolicy, IdleTimeouts};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::time::SystemClock;
use wheelwork::wheel::Wheel;
use wheelwork::{HashedWheelTimer, ManualClock, Period, RescheduleError};

fn text(value: &impl Debug) -> String {
    format!("{value:?}")
}

#[test]
fn a_timer_and_its_timeouts_print_their_state() {
    let (timer, clock) = manual();
    assert_eq!(
        text(&timer),
        "HashedWheelTimer { tick_duration: 100ms, pending_timeouts: 0, is_stopped: false, .. }"
    );
    let pending = timer.new_timeout(|| (), 3 * TICK).unwrap();
    assert_eq!(text(&pending), r#"Timeout { state: "pending", due_in: 300ms }"#);
    let guarded = timer.new_timeout(|| (), TICK).unwrap().cancel_on_drop();
    assert!(text(&guarded).starts_with(r#"CancelOnDrop(Some(Timeout { state: "pending""#));
    let cancelled = timer.new_timeout(|| (), TICK).unwrap();
    cancelled.cancel();
    assert_eq!(text(&cancelled), r#"Timeout { state: "cancelled" }"#);
    let expired = timer.new_timeout(|| (), TICK).unwrap();
    clock.advance_in_one_jump(2 * TICK);
    assert_eq!(text(&expired), r#"Timeout { state: "expired" }"#);

    let unprocessed = timer.stop().unwrap();
    assert!(text(&unprocessed).starts_with("[Unprocessed { deadline: Instant {"));
    assert_eq!(text(&pending), r#"Timeout { state: "returned" }"#);
    assert!(text(&timer).contains("pending_timeouts: 0, is_stopped: true"));
}

/// What a task prints of itself and its timer.
struct Prints(Record<String>, HashedWheelTimer);

impl TimerTask for Prints {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.0.push(text(&run.timeout()));
        self.0.push(text(&self.1));
        self.0.push(text(&self.1.metrics().lateness));
        Next::done()
    }
}

#[test]
fn rule_09_a_task_may_print_its_timeout_its_timer_and_the_metrics() {
    let (timer, clock) = manual();
    let printed = Record::new();
    timer.new_timeout(Prints(printed.clone(), timer.clone()), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(
        printed.take(),
        [
            r#"Timeout { state: "running", due_in: 0ns }"#,
            "HashedWheelTimer { tick_duration: 100ms, pending_timeouts: 0, is_stopped: false, .. }",
            "Lateness { count: 1, p50: 0ns, p99: 0ns, max: 0ns }",
        ]
    );
}

#[test]
fn settings_print_their_values() {
    let builder = HashedWheelTimer::builder()
        .tick_duration(ms(10))
        .ticks_per_wheel(512)
        .max_pending_timeouts(7)
        .thread_name("conn-timer")
        .on_refusal(OnRefusal::callback(drop));
    let builder = text(&builder);
    for part in ["10ms", "Hashed", "512", "Some(7)", "Callback", "conn-timer"] {
        assert!(builder.contains(part), "{part} in {builder}");
    }
    assert_eq!(text(&OnRefusal::Wait), "Wait");
    assert_eq!(text(&OnRefusal::RunOnWorker), "RunOnWorker");
    let clock = ManualClock::default();
    clock.advance_in_one_jump(ms(1500));
    assert_eq!(text(&clock), "ManualClock { elapsed: 1.5s }");
    assert_eq!(text(&SystemClock), "SystemClock");
}

#[test]
fn jobs_and_idle_reports_print_what_they_are_about() {
    let printed = Record::new();
    let record = printed.clone();
    let builder = HashedWheelTimer::builder().executor(move |job: Job| {
        record.push(text(&job));
        job.run();
        Ok(())
    });
    let (timer, clock) = manual_with(builder);
    timer.new_timeout(|| (), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(
        printed.take(),
        [r#"Job { timeout: Timeout { state: "running", due_in: 0ns }, .. }"#]
    );

    let record = printed.clone();
    let idle = IdleTimeouts::batched(&timer, move |batch: &mut [Idle<u32>]| {
        record.push(text(&batch));
    });
    let watch = idle.watch(7, &IdlePolicy::new().both(TICK)).unwrap();
    clock.advance_in_one_jump(3 * TICK);
    drop(watch);
    let report = printed.take().into_iter().find(|said| said.contains("Idle")).unwrap();
    assert!(report.contains("[Idle { connection: 7, event: IdleEvent { kind: Both"), "{report}");
}

#[test]
fn errors_say_what_was_expected_whatever_they_carry() {
    let (timer, _clock) = manual();
    let zero = timer.new_periodic(|| (), Period::fixed_rate(Duration::ZERO)).unwrap_err();
    assert_eq!(text(&zero), "ScheduleError { reason: ZeroPeriod, .. }");
    timer.stop().unwrap();
    let stopped = timer.new_timeout(|| (), TICK).unwrap_err();
    assert_eq!(text(&stopped), "ScheduleError { reason: Stopped, .. }");

    assert_eq!(RescheduleError::Expired.to_string(), "the timeout has expired");
    assert_eq!(RescheduleError::Cancelled.to_string(), "the timeout is cancelled");
}

#[test]
fn wheels_print_their_size_and_time() {
    fn with_one<T: Debug>(said: &str, wheel: T) {
        let wheel = text(&wheel);
        for part in ["Wheel { len: 1", said, "current_tick: 0", "next_expiry: Some("] {
            assert!(wheel.contains(part), "{part} in {wheel}");
        }
    }
    macro_rules! with_one {
        ($said:literal, $wheel:expr) => {{
            let mut wheel = $wheel;
            let _ = wheel.insert(5, || ());
            with_one($said, wheel);
        }};
    }
    with_one!("Hashed { buckets: 8", Wheel::hashed(8).unwrap());
    with_one!("Hierarchical { buckets: 8", Wheel::hierarchical(8).unwrap());
    with_one!("LinuxClassic { buckets: 512", Wheel::linux_classic());
    with_one!("Linux { buckets: ", Wheel::linux());
    with_one!("Simple { buckets: 8", Wheel::simple(8).unwrap());

    let refused = Wheel::simple(8).unwrap().insert(9, || ()).unwrap_err();
    assert_eq!(text(&refused), "DelayError { delay: 9, ticks_per_wheel: 8, .. }");
}

#[test]
fn the_idle_manager_prints_its_counts_and_policies() {
    let (timer, clock) = manual();
    let events = Record::new();
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |_: &mut (), event| {
        record.push(text(&event));
        Answer::StopWatching
    });
    let policy = IdlePolicy::default().reader(ms(200)).jitter(ms(50));
    assert_eq!(
        text(&policy),
        "IdlePolicy { reader: Some(200ms), writer: None, both: None, waiting_write: None, age: None, \
         grace: None, jitter: 50ms }"
    );
    let watch = idle.watch((), &IdlePolicy::new().reader(ms(200))).unwrap();
    assert_eq!(text(&idle), "IdleTimeouts { watched: 1, panicked: 0, .. }");
    clock.advance_in_one_jump(ms(100));
    assert_eq!(text(&watch), "Watch { silent_for: 100ms, .. }");
    assert!(text(&watch.pause()).starts_with("PauseGuard(Watch { silent_for: "));
    clock.advance_in_one_jump(ms(1000));
    clock.advance_in_one_jump(ms(1000));
    let events = events.take();
    assert!(events.len() == 1 && events[0].contains("kind: Reader"), "{events:?}");
}
