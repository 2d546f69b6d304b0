//! The end of the timer, which reports each watched connection.

use super::{both, recording};
use crate::common;
use crate::common::{Mutex, Record, assert_conserved, manual, manual_with, ms};
use std::sync::Arc;
use std::time::Duration;
use wheelwork::idle::{Answer, IdleKind, IdlePolicy, IdleTimeouts, Watch};
use wheelwork::{HashedWheelTimer, RefusalReason, Unprocessed};

#[test]
fn rule_01_a_stop_reports_each_connection_once() {
    let (timer, clock) = manual();
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let mut watches: Vec<_> = (0..50).map(|id| idle.watch(id, &both(1000)).unwrap()).collect();
    watches.push(idle.watch(50, &IdlePolicy::new()).unwrap()); // off, and watched all the same
    clock.advance_in_one_jump(ms(500));
    assert!(timer.stop().unwrap().is_empty());
    let mut reported = events.take();
    reported.sort_unstable_by_key(|&(id, ..)| id);
    let expected: Vec<_> = (0..=50).map(|id| (id, IdleKind::TimerStopped, true, 500)).collect();
    assert_eq!(reported, expected);
    assert_eq!(idle.watched(), 0);
    let error = idle.watch(51, &both(100)).unwrap_err();
    assert!(matches!(error.reason(), RefusalReason::Stopped), "{error}");
    assert_eq!(error.into_task(), 51);
    watches[0].touch();
    drop(watches);
    assert_conserved(&timer);
}

/// The first callback drops all handles.
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
        watches.lock().unwrap().push(idle.watch(id, &both(1000)).unwrap());
    }
    drop(timer.stop().unwrap());
    assert_eq!((events.len(), idle.watched()), (1, 0));
}

/// A list that nobody drops. The static keeps it reachable, so it is no leak.
static KEPT: Mutex<Vec<Vec<Unprocessed>>> = Mutex::new(Vec::new());

/// The list holds only the users' timeouts.
#[test]
fn rule_01_a_stop_reports_each_connection_whatever_becomes_of_its_list() {
    let uses: [fn(Vec<Unprocessed>); 4] = [
        drop,
        |list| KEPT.lock().unwrap().push(list),
        |list| list.into_iter().for_each(Unprocessed::run),
        |list| list.into_iter().for_each(|unprocessed| drop(unprocessed.into_task())),
    ];
    for end in uses {
        let (timer, _clock) = manual();
        let (idle, events) = recording(&timer, Answer::KeepWatching);
        let _watches = [1, 2].map(|id| idle.watch(id, &both(1000)).unwrap());
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
    for limit in [ms(60_000), Duration::MAX] {
        let (timer, _clock) = manual_with(HashedWheelTimer::builder().thread_name("the worker"));
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let (blocked, told) = (Mutex::new(blocked), Record::new());
        let record = told.clone();
        let idle = IdleTimeouts::new(&timer, move |_: &mut u32, event| {
            let _ = blocked.lock().unwrap().recv();
            record.push((event.kind, std::thread::current().name().map(str::to_owned)));
            Answer::StopWatching
        });
        let _watch = idle.watch(1, &both(1000)).unwrap();
        assert!(timer.stop_timeout(limit).unwrap().is_empty());
        assert_eq!(told.len(), 0);
        drop(release);
        common::eventually("it is reported", || told.len() == 1);
        assert_eq!(told.take(), [(IdleKind::TimerStopped, Some("the worker".to_owned()))]);
    }
}

/// Threads watch connections while the timer is stopped. Each accepted connection is reported.
#[test]
fn rule_01_no_connection_is_lost_between_watch_and_stop() {
    for _ in 0..50 {
        let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
        let (idle, events) = recording(&timer, Answer::StopWatching);
        let (accepted, _kept): (Vec<u32>, Vec<Watch>) = std::thread::scope(|scope| {
            let watching = [0, 1_000_000_000, 2_000_000_000u32].map(|first| {
                let idle = idle.clone();
                scope.spawn(move || {
                    let mut watches = Vec::new();
                    for id in first.. {
                        match idle.watch(id, &both(60_000)) {
                            Ok(watch) => watches.push(watch),
                            Err(error) => {
                                assert_eq!(error.into_task(), id);
                                break;
                            }
                        }
                    }
                    (first..).zip(watches)
                })
            });
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
