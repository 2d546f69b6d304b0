//! Idle timeouts on the manual clock: kinds, races, edges, the end of the timer.

mod common;

use common::{Mutex, Record, TICK, assert_conserved, manual, manual_with, ms};
use std::sync::Arc;
use std::time::Duration;
use wheelwork::executor::Job;
use wheelwork::idle::{
    Answer, Idle, IdleEvent, IdleKind, IdlePolicy, IdleTimeouts, ScaleError, Watch,
};
use wheelwork::{Builder, HashedWheelTimer, ManualClock, ScheduleError, Unprocessed};

/// Who was reported, for what, whether first, and after how many milliseconds of silence.
type Seen = (u32, IdleKind, bool, u128);

fn seen(id: u32, event: IdleEvent) -> Seen {
    (id, event.kind, event.first, event.silent_for.as_millis())
}

/// Idle timeouts that record their events and answer `answer`.
fn recording(timer: &HashedWheelTimer, answer: Answer) -> (IdleTimeouts<u32>, Record<Seen>) {
    let events = Record::new();
    let record = events.clone();
    let idle = IdleTimeouts::new(timer, move |id: &mut u32, event| {
        record.push(seen(*id, event));
        answer
    });
    (idle, events)
}

fn all(after: u64) -> IdlePolicy {
    IdlePolicy::new().all(ms(after))
}

/// A timer whose jobs wait until the test runs them, or drops them.
fn queueing(builder: Builder) -> (HashedWheelTimer, ManualClock, Record<Job>) {
    let jobs = Record::new();
    let queue = jobs.clone();
    let executor = move |job: Job| {
        queue.push(job);
        Ok(())
    };
    let (timer, clock) = manual_with(builder.executor(executor));
    (timer, clock, jobs)
}

/// A timer that counts its jobs. Those of these tests are the manager's checks.
fn counting() -> (HashedWheelTimer, ManualClock, Record<()>) {
    let checks = Record::new();
    let record = checks.clone();
    let executor = move |job: Job| {
        record.push(());
        common::run_here(job)
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    (timer, clock, checks)
}

/// Asserts that no count and no metric of the timer shows anything.
fn assert_nothing_is_counted(timer: &HashedWheelTimer) {
    let m = timer.metrics();
    let begun = [m.scheduled, m.rearmed, m.rescheduled, m.rejected, m.queue_depth];
    let ended = [m.expired, m.cancelled, m.returned, m.abandoned, m.lateness.count()];
    assert_eq!((begun, ended), ([0; 5], [0; 5]), "{m:?}");
    assert_eq!((m.pending, timer.pending_timeouts()), (0, 0));
}

/// Tick by tick, so that no event is late by more than one.
fn walk(clock: &ManualClock, ticks: u32) {
    (0..ticks).for_each(|_| clock.advance(TICK));
}

#[test]
fn rule_02_a_silent_connection_is_reported_at_its_tick_and_not_before() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    clock.advance(ms(30));
    let watch = idle.watch(1, &all(250)).unwrap();
    clock.advance(ms(249));
    assert_eq!(events.len(), 0);
    clock.advance(ms(20)); // 269 ms silent, but within the tick
    assert_eq!(events.len(), 0);
    clock.advance(ms(1));
    assert_eq!(events.take(), [(1, IdleKind::All, true, 270)]);
    walk(&clock, 20);
    assert_eq!((events.len(), idle.watched()), (0, 0));
    watch.touch();
    drop(watch);
    assert_conserved(&timer);
}

/// With a time that the caller has, as with the present.
#[test]
fn a_record_at_a_given_time_counts_from_it() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let policy = IdlePolicy::new().reader(ms(500)).writer(ms(700));
    let [read, wrote] = [1, 2].map(|id| idle.watch(id, &policy).unwrap());
    clock.advance(ms(400));
    read.record_read_at(timer.now() - ms(50));
    read.record_write_at(idle.now());
    wrote.record_write_at(timer.now() - ms(50));
    assert_eq!((read.silent_for(), wrote.silent_for()), (ms(0), ms(50)));
    clock.advance(ms(300)); // at 700; the first was read at 350 and is due by 850
    assert_eq!(events.take(), [(2, IdleKind::Reader, true, 700)]);
    clock.advance(ms(200));
    assert_eq!(events.take(), [(1, IdleKind::Reader, true, 550)]);
}

#[test]
fn each_kind_is_silenced_by_its_own_activity() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let reader = idle.watch(1, &IdlePolicy::new().reader(ms(500))).unwrap();
    let writer = idle.watch(2, &IdlePolicy::new().writer(ms(500))).unwrap();
    let either = idle.watch(3, &all(500)).unwrap();
    clock.advance(ms(300));
    reader.record_write();
    writer.record_read();
    either.record_read();
    clock.advance(ms(200));
    let both = [(1, IdleKind::Reader, true, 500), (2, IdleKind::Writer, true, 500)];
    assert_eq!(events.take(), both);
    clock.advance(ms(300));
    assert_eq!(events.take(), [(3, IdleKind::All, true, 500)]);
}

#[test]
fn a_connection_with_three_kinds_reports_each_in_its_time() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let policy = IdlePolicy::new().reader(ms(300)).writer(ms(200)).all(ms(300));
    let _watch = idle.watch(1, &policy).unwrap();
    walk(&clock, 4);
    let expected = [
        (1, IdleKind::Writer, true, 200),
        (1, IdleKind::Reader, true, 300),
        (1, IdleKind::All, true, 300),
        (1, IdleKind::Writer, false, 400),
    ];
    assert_eq!(events.take(), expected);
}

#[test]
fn a_report_is_first_again_after_activity() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let watch = idle.watch(1, &all(200)).unwrap();
    walk(&clock, 4);
    watch.record_read();
    walk(&clock, 4);
    let expected = [(true, 200), (false, 400), (true, 200), (false, 400)];
    assert_eq!(events.take(), expected.map(|(first, ms)| (1, IdleKind::All, first, ms)));
}

/// The wheel is touched once in each idle period, however many touches there are.
#[test]
fn rule_06_a_busy_connection_costs_one_check_in_each_idle_period() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &all(10_000)).unwrap();
    for _ in 0..3600 {
        clock.advance(TICK);
        watch.touch();
    }
    assert_eq!(events.len(), 0);
    assert!((36..=37).contains(&checks.len()), "{} checks in 360 s", checks.len());
}

#[test]
fn rule_06_a_silent_connection_costs_one_check() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    clock.advance(ms(30)); // its time is up in the middle of a tick
    let _watch = idle.watch(1, &all(1000)).unwrap();
    clock.advance(ms(70)); // and the clock moves from tick to tick
    walk(&clock, 12);
    assert_eq!((events.len(), checks.len()), (1, 1));
}

#[test]
fn a_touch_within_the_tick_of_the_check_suppresses_the_event() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &all(200)).unwrap();
    clock.advance(ms(199));
    watch.touch();
    clock.advance(ms(1));
    assert_eq!(events.len(), 0);
    clock.advance(ms(200));
    assert_eq!(events.take(), [(1, IdleKind::All, true, 201)], "199 + 200, at the next tick");
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
        watches.lock().unwrap().push(idle.watch(id, &all(100)).unwrap());
    }
    clock.advance(TICK);
    assert_eq!(events.take(), [0]);
    assert_eq!(idle.watched(), 4);
    clock.advance(TICK);
    assert_eq!(events.take(), [1]);
}

/// The connection is idle as soon as it would be, and its event is the first of its silence.
#[test]
fn a_suppressed_report_leaves_no_trace() {
    let (timer, clock) = manual();
    let watches: Arc<Mutex<Vec<Watch>>> = Arc::default();
    let (events, others, present) = (Record::new(), watches.clone(), timer.clone());
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, event| {
        record.push(seen(*id, event));
        if *id == 0 {
            others.lock().unwrap()[1].touch_at(present.now() - ms(100));
        }
        Answer::StopWatching
    });
    for id in 0..2 {
        watches.lock().unwrap().push(idle.watch(id, &all(200)).unwrap());
    }
    clock.advance(ms(200));
    assert_eq!(events.take(), [(0, IdleKind::All, true, 200)]);
    clock.advance(TICK);
    assert_eq!(events.take(), [(1, IdleKind::All, true, 200)]);
    watches.lock().unwrap().clear();
}

#[test]
fn a_jump_of_the_clock_reports_a_silent_connection_once() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let silent = idle.watch(1, &all(100)).unwrap();
    clock.advance(Duration::from_secs(30 * 86_400));
    assert_eq!(events.take(), [(1, IdleKind::All, true, 30 * 86_400_000)]);
    silent.touch_at(timer.now() + ms(500)); // a time ahead of the clock
    clock.advance(ms(500));
    assert_eq!(events.len(), 0);
    silent.touch_at(timer.now() - Duration::from_secs(31 * 86_400)); // before the timer's start
    clock.advance(ms(100));
    assert_eq!(events.len(), 1);
}

#[test]
fn rule_10_a_duration_shorter_than_a_tick_ends_at_the_next_tick() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    clock.advance(ms(50));
    let _watch = idle.watch(1, &IdlePolicy::new().all(Duration::from_nanos(1))).unwrap();
    clock.advance(ms(49));
    assert_eq!(events.len(), 0);
    clock.advance(ms(1));
    assert_eq!(events.take(), [(1, IdleKind::All, true, 50)]);
    walk(&clock, 3);
    assert_eq!(events.len(), 3, "once a tick");
}

#[test]
fn rule_10_a_zero_duration_is_off_and_the_longest_never_ends() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let off = idle.watch(1, &IdlePolicy::new()).unwrap();
    let endless = idle.watch(2, &IdlePolicy::new().reader(Duration::MAX)).unwrap();
    clock.advance(Duration::from_secs(200 * 365 * 86_400));
    assert_eq!(events.len(), 0);
    assert_eq!(idle.watched(), 2);
    off.set_policy(&all(100));
    endless.set_policy(&all(100));
    clock.advance(TICK);
    assert_eq!(events.len(), 2, "both have been silent for long");
    off.set_policy(&IdlePolicy::new());
    endless.set_policy(&IdlePolicy::new().all(Duration::ZERO));
    clock.advance(TICK * 100);
    assert_eq!(events.len(), 2);
}

#[test]
fn durations_change_while_a_connection_is_watched() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let sooner = idle.watch(1, &all(10_000)).unwrap();
    let later = idle.watch(2, &all(500)).unwrap();
    clock.advance(ms(300));
    sooner.set_policy(&all(400));
    later.set_policy(&all(800));
    walk(&clock, 1);
    assert_eq!(events.take(), [(1, IdleKind::All, true, 400)], "what was silent already counts");
    walk(&clock, 3);
    assert_eq!(events.len(), 0);
    walk(&clock, 1);
    assert_eq!(events.take(), [(2, IdleKind::All, true, 800)]);
}

#[test]
fn a_paused_connection_is_not_idle_and_a_resume_counts_as_a_touch() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &all(300)).unwrap();
    assert!(!watch.resume(), "it was not paused");
    let upload = watch.paused();
    walk(&clock, 50);
    {
        let _request = watch.paused();
        walk(&clock, 50);
    }
    walk(&clock, 50);
    assert_eq!(events.len(), 0, "pauses nest");
    drop(upload);
    walk(&clock, 2);
    assert_eq!(events.len(), 0);
    walk(&clock, 1);
    assert_eq!(events.take(), [(1, IdleKind::All, true, 300)]);
}

#[test]
fn a_new_connection_does_not_inherit_a_pause() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let first = idle.watch(1, &all(100)).unwrap();
    first.pause();
    drop(first);
    let _second = idle.watch(2, &all(100)).unwrap();
    clock.advance(TICK);
    assert_eq!(events.take(), [(2, IdleKind::All, true, 100)]);
}

#[test]
fn a_slow_writer_whose_bytes_flow_is_not_idle() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &IdlePolicy::new().writer(ms(300))).unwrap();
    for _ in 0..100 {
        clock.advance(ms(200));
        watch.record_write(); // one byte has gone out
    }
    assert_eq!(events.len(), 0);
    walk(&clock, 3);
    assert_eq!(events.len(), 1);
}

#[test]
fn dropping_the_handle_stops_watching_and_drops_the_connection() {
    let (timer, clock) = manual();
    let calls = Record::new();
    let record = calls.clone();
    let idle = IdleTimeouts::new(&timer, move |_: &mut Arc<()>, event| {
        record.push(event);
        Answer::StopWatching
    });
    let connection = Arc::new(());
    let watch = idle.watch(connection.clone(), &all(100)).unwrap();
    assert_eq!((Arc::strong_count(&connection), idle.watched()), (2, 1));
    drop(watch);
    assert_eq!((Arc::strong_count(&connection), idle.watched()), (1, 0));
    walk(&clock, 5);
    assert_eq!(calls.len(), 0);
}

#[test]
fn a_handle_dropped_inside_its_own_callback_ends_the_watching() {
    let (timer, clock) = manual();
    let handles: Arc<Mutex<Vec<Watch>>> = Arc::default();
    let own = handles.clone();
    let alive = Arc::new(());
    let events = Record::new();
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |_: &mut Arc<()>, _| {
        record.push(());
        own.lock().unwrap().clear();
        Answer::KeepWatching // it cannot be
    });
    handles.lock().unwrap().push(idle.watch(alive.clone(), &all(100)).unwrap());
    walk(&clock, 5);
    assert_eq!(events.len(), 1);
    assert_eq!((Arc::strong_count(&alive), idle.watched()), (1, 0));
    // Its seat can be used again.
    handles.lock().unwrap().push(idle.watch(alive.clone(), &all(100)).unwrap());
    walk(&clock, 1);
    assert_eq!(events.len(), 2);
}

#[test]
fn a_callback_may_touch_watch_and_drop_others() {
    let (timer, clock) = manual();
    let world: Arc<Mutex<Option<IdleTimeouts<u32>>>> = Arc::default();
    let watches: Arc<Mutex<Vec<Option<Watch>>>> = Arc::default();
    let (events, inner, others) = (Record::new(), world.clone(), watches.clone());
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, _| {
        record.push(*id);
        if *id == 0 {
            let mut others = others.lock().unwrap();
            others[1] = None; // due in this very batch
            others[2].as_ref().unwrap().touch(); // as well
            let idle = inner.lock().unwrap().clone().unwrap();
            others.push(Some(idle.watch(9, &all(100)).unwrap()));
            others[3].as_ref().unwrap().set_policy(&all(200));
        }
        Answer::StopWatching
    });
    *world.lock().unwrap() = Some(idle.clone());
    for (id, after) in [(0, 100), (1, 100), (2, 100), (3, 5000)] {
        watches.lock().unwrap().push(Some(idle.watch(id, &all(after)).unwrap()));
    }
    clock.advance(TICK);
    assert_eq!(events.take(), [0]);
    clock.advance(TICK);
    let mut now = events.take();
    now.sort_unstable();
    assert_eq!(now, [2, 3, 9]);
    assert_eq!(idle.watched(), 0);
    *world.lock().unwrap() = None;
}

#[test]
fn rule_05_a_callback_that_panics_affects_no_other_connection() {
    let (timer, clock) = manual();
    let events = Record::new();
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, event| {
        record.push(seen(*id, event));
        assert!(*id != 2, "a bad callback");
        Answer::StopWatching
    });
    let _watches = [1, 2, 3].map(|id| idle.watch(id, &all(100)).unwrap());
    walk(&clock, 1);
    assert_eq!(events.take().into_iter().map(|(id, ..)| id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((idle.panicked(), idle.watched(), timer.metrics().panicked), (1, 1, 0));
    walk(&clock, 1);
    assert_eq!(events.take(), [(2, IdleKind::All, false, 200)], "it is watched on");
}

#[test]
fn rule_05_a_connection_whose_drop_panics_affects_no_other() {
    struct Bomb(u32);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(self.0 != 2, "a bad drop");
        }
    }
    let (timer, clock) = manual();
    let idle = IdleTimeouts::new(&timer, |_: &mut Bomb, _| Answer::StopWatching);
    let _watches = [1, 2, 3].map(|id| idle.watch(Bomb(id), &all(100)).unwrap());
    walk(&clock, 1);
    assert_eq!((idle.watched(), timer.metrics().panicked), (0, 0));
    let _again = idle.watch(Bomb(4), &all(100)).unwrap();
    walk(&clock, 1);
    assert_eq!(idle.watched(), 0);
}

#[test]
fn a_batch_is_one_call_and_one_job() {
    let batches = Record::new();
    let jobs = Record::new();
    let (record, count) = (batches.clone(), jobs.clone());
    let executor = move |job: Job| {
        count.push(());
        job.run();
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let idle = IdleTimeouts::batched(&timer, move |batch: &mut [Idle<u32>]| {
        record.push(batch.iter().map(|idle| idle.connection).collect::<Vec<_>>());
        for idle in batch {
            assert!(idle.is_still_silent() && idle.event().kind == IdleKind::All);
            if idle.connection % 2 == 0 {
                idle.answer(Answer::StopWatching);
            }
        }
    });
    let _watches: Vec<_> = (0..1000).map(|id| idle.watch(id, &all(100)).unwrap()).collect();
    clock.advance(TICK);
    assert_eq!(batches.take(), [(0..1000).collect::<Vec<_>>()]);
    assert_eq!((jobs.len(), idle.watched()), (1, 500), "without an answer it is watched on");
    clock.advance(TICK);
    assert_eq!(batches.take()[0].len(), 500);
}

/// More than one hold of a lock may deal with.
const MANY: u32 = 10_000;

/// A timer whose idle timeouts record the ids of each batch, and how each was told.
fn batching(
    answer: Answer,
) -> (ManualClock, IdleTimeouts<u32>, Record<Vec<Seen>>, HashedWheelTimer) {
    let (timer, clock) = manual();
    let batches = Record::new();
    let record = batches.clone();
    let idle = IdleTimeouts::batched(&timer, move |batch: &mut [Idle<u32>]| {
        record.push(batch.iter().map(|idle| seen(idle.connection, idle.event())).collect());
        batch.iter_mut().for_each(|idle| idle.answer(answer));
    });
    (clock, idle, batches, timer)
}

/// Several batches, none of which is large, and each connection once.
fn assert_sliced(batches: &[Vec<Seen>], expected: impl Fn(u32) -> Seen) {
    let sizes: Vec<_> = batches.iter().map(Vec::len).collect();
    assert!(sizes.iter().all(|&size| size <= MANY as usize / 3), "{sizes:?}");
    let mut all = batches.concat();
    all.sort_unstable_by_key(|&(id, ..)| id);
    assert_eq!(all, (0..MANY).map(expected).collect::<Vec<_>>());
}

#[test]
fn many_connections_due_in_one_tick_are_reported_in_batches_within_it() {
    let (clock, idle, batches, _timer) = batching(Answer::KeepWatching);
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &all(250)).unwrap()).collect();
    clock.advance(ms(299));
    assert_eq!(batches.len(), 0);
    clock.advance(ms(1));
    assert_sliced(&batches.take(), |id| (id, IdleKind::All, true, 300));
    clock.advance(ms(200));
    assert_eq!(batches.len(), 0);
    clock.advance(ms(100));
    assert_sliced(&batches.take(), |id| (id, IdleKind::All, false, 600));
    drop(watches);
}

#[test]
fn many_connections_with_two_due_kinds_are_reported_for_both() {
    let (clock, idle, batches, _timer) = batching(Answer::KeepWatching);
    let policy = IdlePolicy::new().reader(ms(100)).writer(ms(100));
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &policy).unwrap()).collect();
    clock.advance(TICK);
    let (readers, writers): (Vec<_>, Vec<_>) = (batches.take().into_iter())
        .partition(|batch| batch.iter().all(|&(_, kind, ..)| kind == IdleKind::Reader));
    assert_sliced(&readers, |id| (id, IdleKind::Reader, true, 100));
    assert_sliced(&writers, |id| (id, IdleKind::Writer, true, 100));
    drop(watches);
}

#[test]
fn shorter_durations_of_many_are_noticed_in_the_next_tick() {
    let (clock, idle, batches, _timer) = batching(Answer::StopWatching);
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &all(10_000)).unwrap()).collect();
    clock.advance(ms(5000));
    idle.scale(0.5).unwrap();
    clock.advance(TICK);
    assert_sliced(&batches.take(), |id| (id, IdleKind::All, true, 5100));
    assert_eq!(idle.watched(), 0);
    drop(watches);
}

#[test]
fn a_stop_reports_many_connections_in_batches() {
    let (clock, idle, batches, timer) = batching(Answer::KeepWatching);
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &all(10_000)).unwrap()).collect();
    clock.advance(ms(5000));
    drop(timer.stop().unwrap());
    assert_sliced(&batches.take(), |id| (id, IdleKind::TimerStopped, true, 5000));
    assert_eq!(idle.watched(), 0);
    assert!(idle.watch(0, &all(100)).is_err());
    drop(watches);
}

/// The check that is to go on with the next slice is lost, and another does.
#[test]
fn rule_05_a_check_lost_between_two_slices_is_replaced() {
    let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &all(100)).unwrap()).collect();
    clock.advance(TICK);
    jobs.take().into_iter().for_each(Job::run);
    let first = events.len();
    assert!(first > 0 && first < MANY as usize);
    clock.advance(Duration::ZERO);
    assert_eq!(jobs.take().len(), 1, "the next slice, which is dropped");
    while idle.watched() > 0 {
        clock.advance(TICK);
        let slices = jobs.take();
        assert!(!slices.is_empty(), "{} are forgotten", idle.watched());
        slices.into_iter().for_each(Job::run);
    }
    assert_eq!(events.len(), MANY as usize);
    drop(watches);
    assert_conserved(&timer);
}

#[test]
fn rule_05_connections_without_an_answer_stay_watched_after_a_panic() {
    let (timer, clock) = manual();
    let idle = IdleTimeouts::batched(&timer, |batch: &mut [Idle<u32>]| {
        batch[0].answer(Answer::StopWatching);
        assert!(batch.len() == 1, "a bad callback");
    });
    let _watches: Vec<_> = (0..3).map(|id| idle.watch(id, &all(100)).unwrap()).collect();
    for (watched, panicked) in [(2, 1), (1, 2), (0, 2)] {
        clock.advance(TICK);
        assert_eq!((idle.watched(), idle.panicked()), (watched, panicked));
    }
}

#[test]
fn rule_02_jitter_spreads_a_burst_and_reports_no_connection_early() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let policy = all(1000).jitter(ms(1000));
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
fn the_idlest_are_taken_first() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watches: Vec<_> = (0..100).map(|id| idle.watch(id, &all(60_000)).unwrap()).collect();
    for n in 0..100 {
        clock.advance(ms(10));
        watches[(n * 37) % 100].touch(); // each once, in another order
    }
    watches[37].pause(); // the second
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
    clock.advance(Duration::from_secs(61));
    assert_eq!(events.len(), 0);
    watches[37].resume();
    clock.advance(Duration::from_secs(120));
    assert_eq!(events.len(), 1);
}

#[test]
fn all_durations_scale_at_once() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watches =
        [(1, 10_000), (2, 20_000)].map(|(id, after)| idle.watch(id, &all(after)).unwrap());
    clock.advance(ms(4900));
    idle.scale(0.5).unwrap();
    clock.advance(TICK);
    assert_eq!(events.take(), [(1, IdleKind::All, true, 5000)]);
    idle.scale(2.0).unwrap();
    clock.advance(ms(34_900));
    assert_eq!(events.len(), 0);
    clock.advance(TICK);
    assert_eq!(events.take(), [(2, IdleKind::All, true, 40_000)]);
    idle.scale(1.0).unwrap();
    let busy = idle.watch(3, &all(1000)).unwrap();
    busy.pause();
    let _silent = idle.watch(4, &all(1000)).unwrap();
    idle.scale(0.0).unwrap();
    clock.advance(TICK);
    assert_eq!(events.take(), [(4, IdleKind::All, true, 100)], "all but the paused one");
    for factor in [-1.0, f64::NAN, f64::INFINITY] {
        let error = idle.scale(factor).unwrap_err();
        assert!(error.to_string().contains("expected a finite number"), "{error}");
        assert!(matches!(error, ScaleError { .. }));
    }
}

/// Like on a pool: while the first callback runs, the factor changes. Then the check of all connections
/// runs, and finds all except the one that is being reported.
fn reports_when_the_factor_changes_in_a_callback(policy: &IdlePolicy, factor: f64) -> Vec<Seen> {
    let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
    let world: Arc<Mutex<Option<IdleTimeouts<u32>>>> = Arc::default();
    let events = Record::new();
    let (record, inner, time, queue) = (events.clone(), world.clone(), clock.clone(), jobs.clone());
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, event| {
        record.push(seen(*id, event));
        if let Some(idle) = inner.lock().unwrap().take() {
            idle.scale(factor).unwrap();
            time.advance(TICK);
            queue.take().into_iter().for_each(Job::run);
        }
        Answer::KeepWatching
    });
    *world.lock().unwrap() = Some(idle.clone());
    let _watch = idle.watch(1, policy).unwrap();
    for _ in 0..25 {
        clock.advance(TICK);
        jobs.take().into_iter().for_each(Job::run);
    }
    events.take()
}

#[test]
fn scale_down_during_a_callback_uses_the_new_durations() {
    let reports = reports_when_the_factor_changes_in_a_callback(&all(2000), 0.1);
    let silences = [2000, 2200, 2400, 2600];
    assert_eq!(reports, silences.map(|ms| (1, IdleKind::All, ms == 2000, ms)));
}

#[test]
fn scale_up_during_a_callback_uses_the_new_durations() {
    let policy = IdlePolicy::new().reader(ms(1000)).writer(ms(1000));
    let reports = reports_when_the_factor_changes_in_a_callback(&policy, 2.0);
    let expected = [(1, IdleKind::Reader, true, 1000), (1, IdleKind::Writer, true, 2000)];
    assert_eq!(reports, expected);
}

#[test]
fn rule_05_a_lost_check_of_all_connections_is_replaced() {
    let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watch = idle.watch(1, &all(10_000)).unwrap();
    idle.scale(0.01).unwrap();
    clock.advance(TICK);
    assert_eq!(jobs.take().len(), 1, "it is dropped");
    clock.advance(TICK);
    jobs.take().into_iter().for_each(Job::run);
    assert_eq!(events.take(), [(1, IdleKind::All, true, 200)]);
}

#[test]
fn rule_06_only_a_smaller_factor_costs_a_check() {
    let (timer, clock, checks) = counting();
    let (idle, _events) = recording(&timer, Answer::StopWatching);
    idle.scale(0.5).unwrap(); // no connection is watched
    let _watch = idle.watch(1, &all(60_000)).unwrap();
    for (factor, expected) in [(1.0, 0), (2.0, 0), (2.0, 0), (1.5, 1), (1.5, 1)] {
        idle.scale(factor).unwrap();
        clock.advance(TICK);
        assert_eq!(checks.len(), expected, "after a factor of {factor}");
    }
}

/// Each due in a tick of its own, from the second one on.
fn one_in_each_tick(idle: &IdleTimeouts<u32>, count: u32) -> Vec<Watch> {
    let policy = |id| all(100 * (2 + u64::from(id)));
    (0..count).map(|id| idle.watch(id, &policy(id)).unwrap()).collect()
}

#[test]
fn rule_06_connections_that_have_left_cost_one_check() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watch = idle.watch(1000, &all(100_000)).unwrap();
    let watches = one_in_each_tick(&idle, 500);
    clock.advance(TICK);
    watches.into_iter().rev().for_each(drop); // the first one last
    walk(&clock, 998);
    assert_eq!((events.len(), checks.len()), (0, 0));
    walk(&clock, 1);
    assert_eq!((events.len(), checks.len()), (1, 1));
}

#[test]
fn rule_06_a_connection_that_leaves_in_time_costs_no_check() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    for watch in one_in_each_tick(&idle, 500) {
        clock.advance(TICK);
        drop(watch);
    }
    walk(&clock, 10);
    assert_eq!((events.len(), checks.len()), (0, 0));
}

#[test]
fn rule_06_a_new_connection_causes_no_check_of_those_that_left() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    drop(one_in_each_tick(&idle, 50));
    let _watch = idle.watch(1000, &all(10_000)).unwrap();
    walk(&clock, 99);
    assert_eq!((events.len(), checks.len()), (0, 0));
    walk(&clock, 1);
    assert_eq!((events.len(), checks.len()), (1, 1));
}

/// One check for all of them, whenever they have come.
#[test]
fn rule_06_busy_connections_cost_one_check_in_each_idle_period() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let mut watches = Vec::new();
    for id in 0..300 {
        watches.push(idle.watch(id, &all(60_000)).unwrap());
        clock.advance(TICK);
    }
    for _ in 0..3600 {
        clock.advance(TICK);
        watches.iter().for_each(Watch::touch);
    }
    assert_eq!(events.len(), 0);
    assert!((6..=13).contains(&checks.len()), "{} checks in 390 s", checks.len());
}

#[test]
fn rule_06_very_many_connections_that_left_or_were_active_cost_few_wake_ups() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let policies: Vec<_> = (0..50).map(|n| all(2000 + 100 * n)).collect();
    let watch = |id: u32| idle.watch(id, &policies[id as usize % 50]).unwrap();
    let mut watches: Vec<_> = (0..4 * MANY).map(watch).collect();
    clock.advance(ms(1900));
    watches.iter().for_each(Watch::touch);
    watches.truncate(2 * MANY as usize);
    let mut ticks_with_a_check = 0;
    for _ in 0..18 {
        let before = checks.len();
        clock.advance(TICK);
        ticks_with_a_check += u32::from(checks.len() > before);
    }
    assert_eq!(events.len(), 0);
    assert!((1..=2).contains(&ticks_with_a_check), "{ticks_with_a_check} in 1.8 s");
    walk(&clock, 60);
    assert_eq!(events.len(), 2 * MANY as usize);
}

#[test]
fn rule_01_a_stop_reports_each_connection_once() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let mut watches: Vec<_> = (0..50).map(|id| idle.watch(id, &all(1000)).unwrap()).collect();
    watches.push(idle.watch(50, &IdlePolicy::new()).unwrap()); // off, and watched all the same
    clock.advance(ms(500));
    assert!(timer.stop().unwrap().is_empty());
    let mut reported = events.take();
    reported.sort_unstable_by_key(|&(id, ..)| id);
    let expected: Vec<_> = (0..=50).map(|id| (id, IdleKind::TimerStopped, true, 500)).collect();
    assert_eq!(reported, expected);
    assert_eq!(idle.watched(), 0);
    let error = idle.watch(51, &all(100)).unwrap_err();
    assert!(matches!(error, ScheduleError::Stopped { .. }), "{error}");
    assert_eq!(error.into_task(), 51);
    watches[0].touch();
    drop(watches);
    assert_conserved(&timer);
}

/// The first to be told drops all handles.
#[test]
fn a_handle_dropped_amid_the_reports_of_a_stop_suppresses_its_own() {
    let (timer, _clock) = manual();
    let watches: Arc<Mutex<Vec<Watch>>> = Arc::default();
    let (events, all_of_them) = (Record::new(), watches.clone());
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, _| {
        record.push(*id);
        all_of_them.lock().unwrap().clear();
        Answer::StopWatching
    });
    for id in 0..3 {
        watches.lock().unwrap().push(idle.watch(id, &all(1000)).unwrap());
    }
    drop(timer.stop().unwrap());
    assert_eq!((events.len(), idle.watched()), (1, 0));
}

/// The list has the users' timeouts, and only these.
#[test]
fn rule_01_a_stop_reports_each_connection_whatever_becomes_of_its_list() {
    let uses: [fn(Vec<Unprocessed>); 4] = [
        drop,
        std::mem::forget,
        |list| list.into_iter().for_each(Unprocessed::run),
        |list| list.into_iter().for_each(|unprocessed| drop(unprocessed.into_task())),
    ];
    for end in uses {
        let (timer, _clock) = manual();
        let (idle, events) = recording(&timer, Answer::KeepWatching);
        let _watches = [1, 2].map(|id| idle.watch(id, &all(1000)).unwrap());
        let timeout = timer.new_timeout(|| (), ms(500)).unwrap();
        let list = timer.stop().unwrap();
        let reported: Vec<_> = events.take().into_iter().map(|(id, kind, ..)| (id, kind)).collect();
        assert_eq!(reported, [1, 2].map(|id| (id, IdleKind::TimerStopped)));
        assert_eq!(list.iter().map(Unprocessed::timeout).collect::<Vec<_>>(), [&timeout]);
        end(list);
        assert_eq!((events.len(), idle.watched(), timer.metrics().scheduled), (0, 0, 1));
    }
}

/// A stop with a limit does not wait for the callbacks. They come from the worker's thread.
#[test]
fn rule_09_a_stop_with_a_limit_reports_on_the_worker() {
    for limit in [Duration::ZERO, ms(10)] {
        let (timer, _clock) = manual_with(HashedWheelTimer::builder().thread_name("the worker"));
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let (blocked, told) = (Mutex::new(blocked), Record::new());
        let record = told.clone();
        let idle = IdleTimeouts::new(&timer, move |_: &mut u32, event| {
            let _ = blocked.lock().unwrap().recv();
            record.push((event.kind, std::thread::current().name().map(str::to_owned)));
            Answer::StopWatching
        });
        let _watch = idle.watch(1, &all(1000)).unwrap();
        assert!(timer.stop_timeout(limit).unwrap().is_empty());
        assert_eq!(told.len(), 0);
        drop(release);
        common::eventually("it is reported", || told.len() == 1);
        assert_eq!(told.take(), [(IdleKind::TimerStopped, Some("the worker".to_owned()))]);
    }
}

#[test]
fn checks_are_in_no_count_of_the_timer() {
    let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let first = idle.watch(1, &all(1000)).unwrap();
    assert_nothing_is_counted(&timer);
    let sooner = idle.watch(2, &all(100)).unwrap(); // pulls the check forward
    assert_nothing_is_counted(&timer);
    clock.advance(TICK);
    assert_nothing_is_counted(&timer); // it waits in the executor
    jobs.take().into_iter().for_each(Job::run);
    assert_eq!(events.len(), 1);
    clock.advance(TICK);
    drop(jobs.take()); // it is replaced
    drop(sooner); // puts the check off
    drop(first); // cancels it
    assert_nothing_is_counted(&timer);
    let _third = idle.watch(3, &all(1000)).unwrap();
    clock.advance(TICK);
    assert_nothing_is_counted(&timer);
    timer.stop().unwrap();
    assert!(idle.watch(4, &all(1000)).is_err());
    assert_nothing_is_counted(&timer);
}

/// Threads watch, touch and drop while the timer is stopped: accepted means reported, unless its
/// handle was dropped before.
#[test]
fn rule_01_no_connection_is_lost_between_watch_and_stop() {
    for _ in 0..50 {
        let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
        let (idle, events) = recording(&timer, Answer::StopWatching);
        let (accepted, _kept): (Vec<u32>, Vec<Watch>) = std::thread::scope(|scope| {
            let watching = (0..3u32).map(|thread| {
                let idle = idle.clone();
                scope.spawn(move || {
                    let mut watches = Vec::new();
                    for id in thread * 100_000.. {
                        match idle.watch(id, &all(60_000)) {
                            Ok(watch) => watches.push(watch),
                            Err(error) => {
                                assert_eq!(error.into_task(), id);
                                break;
                            }
                        }
                    }
                    (thread * 100_000..).zip(watches)
                })
            });
            let watching: Vec<_> = watching.collect();
            std::thread::sleep(Duration::from_micros(500));
            drop(timer.stop().unwrap());
            watching.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut reported: Vec<u32> = events.take().into_iter().map(|(id, ..)| id).collect();
        reported.sort_unstable();
        assert_eq!(reported, accepted);
        assert_eq!(idle.watched(), 0);
    }
}

/// An executor that drops a job breaks nothing: the check schedules itself anew.
#[test]
fn rule_05_a_check_whose_job_was_dropped_is_replaced() {
    let dropped = Record::new();
    let record = dropped.clone();
    let executor = move |job: Job| {
        if record.len() < 3 {
            record.push(());
            drop(job);
        } else {
            job.run();
        }
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watch = idle.watch(1, &all(100)).unwrap();
    walk(&clock, 3);
    assert_eq!((dropped.len(), events.len()), (3, 0));
    walk(&clock, 1);
    assert_eq!(events.take(), [(1, IdleKind::All, true, 400)]);
}

/// Its connections have left while its job waited, and another check is there for the new one.
#[test]
fn an_outdated_check_does_nothing() {
    for end in [Job::run, drop] {
        let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
        let (idle, events) = recording(&timer, Answer::StopWatching);
        let first = idle.watch(1, &all(100)).unwrap();
        clock.advance(TICK);
        drop(first);
        let _second = idle.watch(2, &all(100)).unwrap();
        clock.advance(TICK);
        let [stale, present] = jobs.take().try_into().unwrap();
        end(stale);
        clock.advance(TICK);
        assert_eq!((events.len(), jobs.len()), (0, 0), "no report, and no other check");
        Job::run(present);
        assert_eq!(events.take(), [(2, IdleKind::All, true, 200)]);
        assert_conserved(&timer);
    }
}

#[test]
fn connections_are_watched_in_a_timer_at_its_limit() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(1));
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let other = timer.new_timeout(|| (), Duration::MAX).unwrap();
    let _watches = [1, 2, 3].map(|id| idle.watch(id, &all(100)).unwrap());
    assert_eq!(timer.pending_timeouts(), 1, "the other one");
    assert!(timer.new_timeout(|| (), TICK).is_err());
    clock.advance(TICK);
    assert_eq!((events.len(), idle.watched()), (3, 0));
    assert!(other.cancel());
    assert!(timer.new_timeout(|| (), TICK).is_ok());
    assert_conserved(&timer);
}

/// The place of a dropped check is taken by no user's timeout, and takes none.
#[test]
fn rule_05_a_lost_check_is_replaced_in_a_timer_at_its_limit() {
    let limited = HashedWheelTimer::builder().max_pending_timeouts(1);
    let (timer, clock, jobs) = queueing(limited);
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watch = idle.watch(1, &all(100)).unwrap();
    clock.advance(TICK);
    let other = timer.new_timeout(|| (), Duration::MAX).unwrap();
    drop(jobs.take());
    assert_eq!((events.len(), idle.watched(), timer.pending_timeouts()), (0, 1, 1));
    clock.advance(TICK);
    jobs.take().into_iter().for_each(Job::run);
    assert_eq!(events.take(), [(1, IdleKind::All, true, 200)]);
    assert!(timer.new_timeout(|| (), Duration::MAX).is_err());
    assert!(other.cancel());
    assert!(timer.new_timeout(|| (), Duration::MAX).is_ok());
    assert_conserved(&timer);
}

/// A stop finds no check to end. The one that the executor has reports when it is run or dropped.
#[test]
fn rule_01_a_check_that_waits_in_an_executor_reports_a_stop() {
    for end in [Job::run, drop] {
        let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
        let (idle, events) = recording(&timer, Answer::KeepWatching);
        let watch = idle.watch(1, &all(100)).unwrap();
        clock.advance(TICK);
        watch.touch();
        timer.stop().unwrap();
        assert_eq!(events.len(), 0);
        jobs.take().into_iter().for_each(end);
        assert_eq!(events.take(), [(1, IdleKind::TimerStopped, true, 0)]);
        assert_eq!(idle.watched(), 0);
    }
}

/// A slow callback on a pool does not hold up those who become idle meanwhile.
#[test]
fn rule_05_a_slow_callback_on_a_pool_delays_no_other_connection() {
    let pool = wheelwork::executor::ThreadPool::with_size(2, 64).unwrap();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).executor(pool);
    let timer = builder.build().unwrap();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let (begun, events) = (Record::new(), Record::new());
    let (begins, record) = (begun.clone(), events.clone());
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, _| {
        if *id == 1 {
            begins.push(());
            let _ = blocked.lock().unwrap().recv();
        }
        record.push(*id);
        Answer::StopWatching
    });
    let _slow = idle.watch(1, &all(1)).unwrap();
    // Not before: if both were found idle at once, the slow one would be ahead in their batch.
    common::eventually("the slow one is being reported", || begun.len() == 1);
    let _other = idle.watch(2, &all(1)).unwrap();
    common::eventually("the other one is reported", || events.len() == 1);
    assert_eq!(events.take(), [2]);
    drop(release);
    common::eventually("the slow one comes to its end", || events.len() == 1);
}

#[test]
fn the_callback_is_dropped_with_the_last_handle() {
    let (timer, clock) = manual();
    let alive = Arc::new(());
    let held = alive.clone();
    let idle = IdleTimeouts::new(&timer, move |_: &mut u32, _| {
        let _ = &held;
        Answer::StopWatching
    });
    let watch = idle.watch(1, &all(1000)).unwrap();
    drop((idle, timer));
    clock.advance(ms(500));
    assert_eq!(Arc::strong_count(&alive), 2, "a watched connection keeps all of it");
    drop(watch);
    common::eventually("the callback is dropped", || Arc::strong_count(&alive) == 1);
}

#[test]
fn handles_cross_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Watch>();
    is_send_and_sync::<IdlePolicy>();
    // Even for a connection that is not `Sync`: only one thread has it at a time.
    is_send_and_sync::<IdleTimeouts<std::cell::Cell<u32>>>();
}
