//! Callbacks and handles: what they may do, and what a panic or a slow one leaves.

use super::{both, seen, walk};
use crate::common;
use crate::common::{Mutex, Record, TICK, manual, ms};
use std::sync::Arc;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, Idle, IdleKind, IdlePolicy, IdleTimeouts, Watch};

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
    let watch = idle.watch(connection.clone(), &both(100)).unwrap();
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
    handles.lock().unwrap().push(idle.watch(alive.clone(), &both(100)).unwrap());
    walk(&clock, 5);
    assert_eq!(events.len(), 1);
    assert_eq!((Arc::strong_count(&alive), idle.watched()), (1, 0));
    // Its seat can be used again.
    handles.lock().unwrap().push(idle.watch(alive.clone(), &both(100)).unwrap());
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
            others.push(Some(idle.watch(9, &both(100)).unwrap()));
            others[3].as_ref().unwrap().set_policy(&both(200));
        }
        Answer::StopWatching
    });
    *world.lock().unwrap() = Some(idle.clone());
    for (id, after) in [(0, 100), (1, 100), (2, 100), (3, 5000)] {
        watches.lock().unwrap().push(Some(idle.watch(id, &both(after)).unwrap()));
    }
    clock.advance_in_one_jump(TICK);
    assert_eq!(events.take(), [0]);
    clock.advance_in_one_jump(TICK);
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
    let _watches = [1, 2, 3].map(|id| idle.watch(id, &both(100)).unwrap());
    walk(&clock, 1);
    assert_eq!(events.take().into_iter().map(|(id, ..)| id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((idle.panicked(), idle.watched(), timer.metrics().panicked), (1, 1, 0));
    walk(&clock, 1);
    assert_eq!(events.take(), [(2, IdleKind::Both, false, 200)], "it is watched on");
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
    let _watches = [1, 2, 3].map(|id| idle.watch(Bomb(id), &both(100)).unwrap());
    walk(&clock, 1);
    assert_eq!((idle.watched(), timer.metrics().panicked), (0, 0));
    let _again = idle.watch(Bomb(4), &both(100)).unwrap();
    walk(&clock, 1);
    assert_eq!(idle.watched(), 0);
}

#[test]
fn rule_05_connections_without_an_answer_stay_watched_after_a_panic() {
    let (timer, clock) = manual();
    let idle = IdleTimeouts::batched(&timer, |batch: &mut [Idle<u32>]| {
        batch[0].answer(Answer::StopWatching);
        assert!(batch.len() == 1, "a bad callback");
    });
    let _watches: Vec<_> = (0..3).map(|id| idle.watch(id, &both(100)).unwrap()).collect();
    for (watched, panicked) in [(2, 1), (1, 2), (0, 2)] {
        clock.advance_in_one_jump(TICK);
        assert_eq!((idle.watched(), idle.panicked()), (watched, panicked));
    }
}

/// The other connection becomes idle while the callback runs.
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
    let _slow = idle.watch(1, &both(1)).unwrap();
    // Not before: if both were found idle at once, the slow one would be ahead in their batch.
    common::eventually("the slow one is being reported", || begun.len() == 1);
    let _other = idle.watch(2, &both(1)).unwrap();
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
    let watch = idle.watch(1, &both(1000)).unwrap();
    drop((idle, timer));
    clock.advance_in_one_jump(ms(500));
    assert_eq!(Arc::strong_count(&alive), 2, "a watched connection keeps all of it");
    drop(watch);
    common::eventually("the callback is dropped", || Arc::strong_count(&alive) == 1);
}

#[test]
fn reports_are_counted_by_kind() {
    let (timer, clock) = manual();
    let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::KeepWatching);
    let reader = IdlePolicy::new().reader(ms(100));
    let watches = [idle.watch(1, &both(100)).unwrap(), idle.watch(2, &reader).unwrap()];
    let counts = || {
        let kinds = [IdleKind::Reader, IdleKind::Writer, IdleKind::Both, IdleKind::TimerStopped];
        kinds.map(|kind| idle.reported(kind))
    };
    assert_eq!(counts(), [0; 4]);
    walk(&clock, 2);
    assert_eq!(counts(), [2, 0, 2, 0]);
    timer.stop().unwrap();
    assert_eq!(counts(), [2, 0, 2, 2]);
    drop(watches);
}
