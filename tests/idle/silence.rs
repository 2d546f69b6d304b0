//! When a connection is reported: its kinds of silence, touches, pauses and changes of its durations.

use super::{both, recording, seen, walk};
use crate::common::{Mutex, Record, TICK, assert_conserved, manual, ms};
use std::sync::Arc;
use std::time::Duration;
use wheelwork::idle::{Answer, IdleKind, IdlePolicy, IdleTimeouts, Watch};

#[test]
fn rule_02_a_silent_connection_is_reported_at_its_tick_and_not_before() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    clock.advance_in_one_jump(ms(30));
    let watch = idle.watch(1, &both(250)).unwrap();
    clock.advance_in_one_jump(ms(249));
    assert_eq!(events.len(), 0);
    clock.advance_in_one_jump(ms(20)); // 269 ms silent, but within the tick
    assert_eq!(events.len(), 0);
    clock.advance_in_one_jump(ms(1));
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 270)]);
    walk(&clock, 20);
    assert_eq!((events.len(), idle.watched()), (0, 0));
    watch.touch();
    drop(watch);
    assert_conserved(&timer);
}

/// A record can be made with any time that the caller has.
#[test]
fn a_record_at_a_given_time_counts_from_it() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let policy = IdlePolicy::new().reader(ms(500)).writer(ms(700));
    let [read, wrote] = [1, 2].map(|id| idle.watch(id, &policy).unwrap());
    clock.advance_in_one_jump(ms(400));
    read.record_read_at(timer.now() - ms(50));
    read.record_write_at(idle.now());
    wrote.record_write_at(timer.now() - ms(50));
    assert_eq!((read.silent_for(), wrote.silent_for()), (ms(0), ms(50)));
    clock.advance_in_one_jump(ms(300)); // at 700; the first was read at 350 and is due by 850
    assert_eq!(events.take(), [(2, IdleKind::Reader, true, 700)]);
    clock.advance_in_one_jump(ms(200));
    assert_eq!(events.take(), [(1, IdleKind::Reader, true, 550)]);
}

#[test]
fn each_kind_is_silenced_by_its_own_activity() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let reader = idle.watch(1, &IdlePolicy::new().reader(ms(500))).unwrap();
    let writer = idle.watch(2, &IdlePolicy::new().writer(ms(500))).unwrap();
    let either = idle.watch(3, &both(500)).unwrap();
    clock.advance_in_one_jump(ms(300));
    reader.record_write();
    writer.record_read();
    either.record_read();
    clock.advance_in_one_jump(ms(200));
    let both = [(1, IdleKind::Reader, true, 500), (2, IdleKind::Writer, true, 500)];
    assert_eq!(events.take(), both);
    clock.advance_in_one_jump(ms(300));
    assert_eq!(events.take(), [(3, IdleKind::Both, true, 500)]);
}

#[test]
fn a_connection_with_three_kinds_reports_each_in_its_time() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let policy = IdlePolicy::new().reader(ms(300)).writer(ms(200)).both(ms(300));
    let _watch = idle.watch(1, &policy).unwrap();
    walk(&clock, 4);
    let expected = [
        (1, IdleKind::Writer, true, 200),
        (1, IdleKind::Reader, true, 300),
        (1, IdleKind::Both, true, 300),
        (1, IdleKind::Writer, false, 400),
    ];
    assert_eq!(events.take(), expected);
}

#[test]
fn a_report_is_first_again_after_activity() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let watch = idle.watch(1, &both(200)).unwrap();
    walk(&clock, 4);
    watch.record_read();
    walk(&clock, 4);
    let expected = [(true, 200), (false, 400), (true, 200), (false, 400)];
    assert_eq!(events.take(), expected.map(|(first, ms)| (1, IdleKind::Both, first, ms)));
}

#[test]
fn a_touch_within_the_tick_of_the_check_suppresses_the_event() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &both(200)).unwrap();
    clock.advance_in_one_jump(ms(199));
    watch.touch();
    clock.advance_in_one_jump(ms(1));
    assert_eq!(events.len(), 0);
    clock.advance_in_one_jump(ms(200));
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 201)], "199 + 200, at the next tick");
}

/// The first callback of a batch touches all the others, before their turn.
#[test]
fn a_touch_by_an_earlier_callback_of_the_batch_suppresses_the_event() {
    let (timer, clock) = manual();
    let watches: Arc<Mutex<Vec<Watch>>> = Arc::default();
    let (events, others) = (Record::new(), watches.clone());
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, _| {
        record.push(*id);
        others.lock().unwrap().iter().for_each(Watch::touch);
        Answer::StopWatching
    });
    for id in 0..5 {
        watches.lock().unwrap().push(idle.watch(id, &both(100)).unwrap());
    }
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.take(), [0]);
    assert_eq!(idle.watched(), 4);
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.take(), [1]);
}

/// The connection is idle as soon as it would be, and its event is the first of its silence.
#[test]
fn a_suppressed_report_leaves_no_trace() {
    let (timer, clock) = manual();
    let watches: Arc<Mutex<Vec<Watch>>> = Arc::default();
    let (events, others, its_timer) = (Record::new(), watches.clone(), timer.clone());
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, event| {
        record.push(seen(*id, event));
        if *id == 0 {
            others.lock().unwrap()[1].touch_at(its_timer.now() - ms(100));
        }
        Answer::StopWatching
    });
    for id in 0..2 {
        watches.lock().unwrap().push(idle.watch(id, &both(200)).unwrap());
    }
    clock.advance_in_one_jump(ms(200));
    assert_eq!(events.take(), [(0, IdleKind::Both, true, 200)]);
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 200)]);
    watches.lock().unwrap().clear();
}

#[test]
fn a_jump_of_the_clock_reports_a_silent_connection_once() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let silent = idle.watch(1, &both(100)).unwrap();
    clock.advance_in_one_jump(Duration::from_secs(30 * 86_400));
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 30 * 86_400_000)]);
    silent.touch_at(timer.now() + ms(500)); // a time ahead of the clock
    clock.advance_in_one_jump(ms(500));
    assert_eq!(events.len(), 0);
    // Before the timer's start, if the system knows such an instant.
    let long_ago = timer.now().checked_sub(Duration::from_secs(31 * 86_400));
    silent.touch_at(long_ago.unwrap_or(timer.started_at()));
    clock.advance_in_one_jump(ms(100));
    assert_eq!(events.len(), 1);
}

#[test]
fn rule_10_a_duration_shorter_than_a_tick_ends_at_the_next_tick() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    clock.advance_in_one_jump(ms(50));
    let _watch = idle.watch(1, &IdlePolicy::new().both(Duration::from_nanos(1))).unwrap();
    clock.advance_in_one_jump(ms(49));
    assert_eq!(events.len(), 0);
    clock.advance_in_one_jump(ms(1));
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 50)]);
    walk(&clock, 3);
    assert_eq!(events.len(), 3, "once a tick");
}

#[test]
fn rule_10_none_is_off_zero_is_now_and_the_longest_never_ends() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let off = idle.watch(1, &IdlePolicy::new()).unwrap();
    let endless = idle.watch(2, &IdlePolicy::new().reader(Duration::MAX)).unwrap();
    clock.advance_in_one_jump(Duration::from_secs(200 * 365 * 86_400));
    assert_eq!(events.len(), 0);
    assert_eq!(idle.watched(), 2);
    off.set_policy(&both(100));
    endless.set_policy(&both(100));
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.len(), 2, "both have been silent for long");
    off.set_policy(&IdlePolicy::new());
    endless.set_policy(&IdlePolicy::new().both(None));
    clock.advance_in_one_jump(TICK * 100);
    assert_eq!(events.len(), 2);
    endless.set_policy(&IdlePolicy::new().both(Duration::ZERO));
    for _ in 0..3 {
        clock.advance_in_one_jump(TICK);
    }
    assert_eq!(events.len(), 5, "one report in each tick");
}

#[test]
fn durations_change_while_a_connection_is_watched() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let sooner = idle.watch(1, &both(10_000)).unwrap();
    let later = idle.watch(2, &both(500)).unwrap();
    clock.advance_in_one_jump(ms(300));
    sooner.set_policy(&both(400));
    later.set_policy(&both(800));
    walk(&clock, 1);
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 400)], "what was silent already counts");
    walk(&clock, 3);
    assert_eq!(events.len(), 0);
    walk(&clock, 1);
    assert_eq!(events.take(), [(2, IdleKind::Both, true, 800)]);
}

#[test]
fn a_paused_connection_is_not_idle_and_a_resume_counts_as_a_touch() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &both(300)).unwrap();
    assert!(!watch.end_pause(), "it was not paused");
    let upload = watch.pause();
    walk(&clock, 50);
    {
        let _request = watch.pause();
        walk(&clock, 50);
    }
    walk(&clock, 50);
    assert_eq!(events.len(), 0, "pauses nest");
    drop(upload);
    walk(&clock, 2);
    assert_eq!(events.len(), 0);
    walk(&clock, 1);
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 300)]);
}

#[test]
fn a_new_connection_does_not_inherit_a_pause() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let first = idle.watch(1, &both(100)).unwrap();
    first.begin_pause();
    drop(first);
    let _second = idle.watch(2, &both(100)).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.take(), [(2, IdleKind::Both, true, 100)]);
}

#[test]
fn a_slow_writer_whose_bytes_flow_is_not_idle() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &IdlePolicy::new().writer(ms(300))).unwrap();
    for _ in 0..100 {
        clock.advance_in_one_jump(ms(200));
        watch.record_write(); // one byte has gone out
    }
    assert_eq!(events.len(), 0);
    walk(&clock, 3);
    assert_eq!(events.len(), 1);
}

#[test]
fn rule_02_jitter_spreads_a_burst_and_reports_no_connection_early() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let policy = both(1000).jitter(ms(1000));
    let _watches: Vec<_> = (0..2000).map(|id| idle.watch(id, &policy).unwrap()).collect();
    walk(&clock, 9);
    assert_eq!(events.len(), 0);
    for tick in 10..=20 {
        walk(&clock, 1);
        let in_tick = events.take().len();
        assert!(in_tick < 400, "{in_tick} in tick {tick}, of 2000");
    }
    assert_eq!(idle.watched(), 0);
}

#[test]
fn a_connection_is_reported_at_its_age_and_after_each_grace_whatever_it_does() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let once = idle.watch(1, &IdlePolicy::new().max_age(ms(1000), None)).unwrap();
    let again = idle.watch(2, &IdlePolicy::new().max_age(ms(1000), ms(500))).unwrap();
    idle.scale(0.0).unwrap(); // an age is no silence
    again.begin_pause();
    for _ in 0..9 {
        clock.advance_in_one_jump(ms(100));
        once.touch();
    }
    assert_eq!(events.len(), 0);
    clock.advance_in_one_jump(ms(100));
    assert_eq!(events.take(), [(1, IdleKind::Age, true, 1000), (2, IdleKind::Age, true, 1000)]);
    clock.advance_in_one_jump(ms(400));
    again.end_pause();
    assert_eq!(events.len(), 0);
    clock.advance_in_one_jump(ms(100));
    assert_eq!(events.take(), [(2, IdleKind::Age, false, 1500)]);
    clock.advance_in_one_jump(ms(500));
    assert_eq!(events.take(), [(2, IdleKind::Age, false, 2000)]);
    drop((once, again));
    assert_conserved(&timer);
}

/// The next connection in the seat has an age of its own.
#[test]
fn a_seat_begins_with_a_new_age() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let policy = IdlePolicy::new().max_age(ms(1000), None);
    let previous = idle.watch(1, &policy).unwrap();
    let _neighbour = idle.watch(2, &IdlePolicy::new()).unwrap();
    clock.advance_in_one_jump(ms(700));
    drop(previous);
    let _next = idle.watch(3, &policy).unwrap();
    clock.advance_in_one_jump(ms(900));
    assert_eq!(events.len(), 0);
    clock.advance_in_one_jump(ms(100));
    assert_eq!(events.take(), [(3, IdleKind::Age, true, 1000)]);
}
