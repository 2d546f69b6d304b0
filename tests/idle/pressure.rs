//! Factors for all durations, and the idlest connections.

use super::{Seen, both, queueing, recording, seen};
use crate::common::{Mutex, Record, TICK, manual, ms};
use std::sync::Arc;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::executor::Job;
use wheelwork::idle::{Answer, IdleKind, IdlePolicy, IdleTimeouts, ScaleError};

#[test]
fn the_idlest_are_taken_first() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watches: Vec<_> = (0..100).map(|id| idle.watch(id, &both(60_000)).unwrap()).collect();
    for n in 0..100 {
        clock.advance_in_one_jump(ms(10));
        watches[(n * 37) % 100].touch(); // each once, in another order
    }
    watches[37].begin_pause(); // the second
    let taken = idle.take_idlest(3);
    let expected = [(0, 990), (74, 970), (11, 960)];
    assert_eq!(
        taken.iter().map(|s| (s.connection, s.silent_for.as_millis())).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(idle.watched(), 97);
    assert!(idle.take_idlest(0).is_empty());
    watches[0].touch(); // does nothing more
    assert_eq!(idle.take_idlest(usize::MAX).len(), 96, "all but the paused one");
    clock.advance_in_one_jump(Duration::from_secs(61));
    assert_eq!(events.len(), 0);
    watches[37].end_pause();
    clock.advance_in_one_jump(Duration::from_secs(120));
    assert_eq!(events.len(), 1);
}

#[test]
fn connections_are_counted_by_their_silence() {
    let (timer, clock) = manual();
    let (idle, _events) = recording(&timer, Answer::StopWatching);
    let counts = || [0, 1, 10, 20, 21].map(|after| idle.count_silent(ms(after)));
    let watches: Vec<_> = (0..2000).map(|id| idle.watch(id, &both(60_000)).unwrap()).collect();
    assert_eq!(counts(), [2000, 0, 0, 0, 0], "more than a segment has, and none before the start");
    clock.advance_in_one_jump(ms(10));
    watches[..500].iter().for_each(|watch| watch.record_read());
    watches[500..600].iter().for_each(|watch| watch.record_write());
    clock.advance_in_one_jump(ms(10));
    assert_eq!(counts(), [2000, 2000, 2000, 1400, 0]);
    watches[0].begin_pause();
    watches[1999].begin_pause();
    assert_eq!(counts(), [1998, 1998, 1998, 1399, 0], "paused connections are not silent");
}

/// The time of a touch may be ahead of the clock.
#[test]
fn a_count_of_all_connections_has_those_that_were_just_touched() {
    let timer = HashedWheelTimer::new().unwrap();
    let (idle, _events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &both(3_600_000)).unwrap();
    std::thread::sleep(ms(50)); // so that the time of a touch is read quickly
    for _ in 0..10_000 {
        watch.touch();
        assert_eq!(idle.count_silent(Duration::ZERO), 1);
    }
}

#[test]
fn all_durations_scale_at_once() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watches =
        [(1, 10_000), (2, 20_000)].map(|(id, after)| idle.watch(id, &both(after)).unwrap());
    clock.advance_in_one_jump(ms(4900));
    idle.scale(0.5).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 5000)]);
    idle.scale(2.0).unwrap();
    clock.advance_in_one_jump(ms(34_900));
    assert_eq!(events.len(), 0);
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.take(), [(2, IdleKind::Both, true, 40_000)]);
    idle.scale(1.0).unwrap();
    let busy = idle.watch(3, &both(1000)).unwrap();
    busy.begin_pause();
    let _silent = idle.watch(4, &both(1000)).unwrap();
    idle.scale(0.0).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.take(), [(4, IdleKind::Both, true, 100)], "all but the paused one");
    for factor in [-1.0, f64::NAN, f64::INFINITY] {
        let error = idle.scale(factor).unwrap_err();
        assert!(error.to_string().contains("expected a finite number"), "{error}");
        assert!(matches!(error, ScaleError { .. }));
    }
}

/// Changes the factor while the first callback runs, and then runs the check of all connections, as a
/// pool could. That check does not find the connection that is being reported.
fn reports_when_the_factor_changes_in_a_callback(policy: &IdlePolicy, factor: f64) -> Vec<Seen> {
    let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
    let world: Arc<Mutex<Option<IdleTimeouts<u32>>>> = Arc::default();
    let events = Record::new();
    let (record, inner, time, queue) = (events.clone(), world.clone(), clock.clone(), jobs.clone());
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, event| {
        record.push(seen(*id, event));
        if let Some(idle) = inner.lock().unwrap().take() {
            idle.scale(factor).unwrap();
            time.advance_in_one_jump(TICK);
            queue.take().into_iter().for_each(Job::run);
        }
        Answer::KeepWatching
    });
    *world.lock().unwrap() = Some(idle.clone());
    let _watch = idle.watch(1, policy).unwrap();
    for _ in 0..25 {
        clock.advance_in_one_jump(TICK);
        jobs.take().into_iter().for_each(Job::run);
    }
    events.take()
}

#[test]
fn scale_down_during_a_callback_uses_the_new_durations() {
    let reports = reports_when_the_factor_changes_in_a_callback(&both(2000), 0.1);
    let silences = [2000, 2200, 2400, 2600];
    assert_eq!(reports, silences.map(|ms| (1, IdleKind::Both, ms == 2000, ms)));
}

#[test]
fn scale_up_during_a_callback_uses_the_new_durations() {
    let policy = IdlePolicy::new().reader(ms(1000)).writer(ms(1000));
    let reports = reports_when_the_factor_changes_in_a_callback(&policy, 2.0);
    let expected = [(1, IdleKind::Reader, true, 1000), (1, IdleKind::Writer, true, 2000)];
    assert_eq!(reports, expected);
}
