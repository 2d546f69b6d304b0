//! Idle timeouts on the real clock, with threads that touch, watch, drop and pause at once.
//!
//! Nothing here depends on the machine's speed: each touching thread measures its own gaps, and events
//! are compared with these.

use crate::common::{Random, eventually, ms};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::executor::ThreadPool;
use wheelwork::idle::{Answer, IdleKind, IdlePolicy, IdleTimeouts, Watch};

fn timer(threads: usize) -> HashedWheelTimer {
    let pool = ThreadPool::with_size(threads, 1024).unwrap();
    HashedWheelTimer::builder().tick_duration(ms(1)).executor(pool).build().unwrap()
}

/// A connection that is touched all the time is reported only if the thread that touches it was
/// itself held up for the whole idle time.
#[test]
fn rule_02_a_busy_connection_is_never_reported() {
    const IDLE: Duration = Duration::from_millis(50);
    let timer = timer(2);
    let idle = IdleTimeouts::new(&timer, |events: &mut Arc<AtomicU64>, event| {
        assert!(event.silent_for >= IDLE);
        events.fetch_add(1, Relaxed);
        Answer::KeepWatching
    });
    let touch_for_a_second = |kind: usize| {
        let events = Arc::new(AtomicU64::new(0));
        let mut last = Instant::now();
        let policy = IdlePolicy::new().both(IDLE);
        let watch = idle.watch(events.clone(), &policy).unwrap();
        let (begun, mut gaps) = (Instant::now(), 0);
        while begun.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(ms(1));
            let before = Instant::now();
            match kind % 4 {
                0 => watch.record_read(),
                1 => watch.record_write_at(before),
                2 => drop(watch.pause()),
                _ => watch.touch_at(idle.now()),
            }
            gaps += u64::from(last.elapsed() >= IDLE);
            last = before;
        }
        drop(watch);
        gaps += u64::from(last.elapsed() >= IDLE);
        // A long gap can make several events.
        (gaps, events)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|kind| scope.spawn(move || touch_for_a_second(kind))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((idle.panicked(), idle.watched()), (0, 0));
    for (gaps, events) in results {
        assert!(gaps > 0 || events.load(Relaxed) == 0, "reported without a gap");
    }
}

/// Threads watch, touch, pause, change and drop without order, while others take the idlest and scale. At the
/// end all connections fall silent, and each is reported or taken once.
#[test]
fn rule_01_each_connection_ends_once_under_any_mix() {
    let timer = timer(2);
    let told = Arc::new(AtomicU64::new(0));
    let count = told.clone();
    let idle = IdleTimeouts::new(&timer, move |_: &mut (), event| {
        assert!(event.kind != IdleKind::TimerStopped);
        count.fetch_add(1, Relaxed);
        Answer::StopWatching
    });
    let mixed = |seed: u64| {
        let mut random = Random(seed);
        let mut watches: Vec<Watch> = Vec::new();
        for _ in 0..20_000 {
            let at = random.below(watches.len().max(1) as u64) as usize;
            match (random.below(6), watches.get(at)) {
                (0, _) | (_, None) => {
                    let after = (random.below(30) > 0).then(|| ms(random.below(30)));
                    let policy = IdlePolicy::new().both(after).jitter(ms(5));
                    watches.push(idle.watch((), &policy).unwrap());
                }
                (1, Some(_)) if watches.len() > 50 => drop(watches.swap_remove(at)),
                (2, Some(watch)) => {
                    watch.set_policy(&IdlePolicy::new().reader(ms(1 + random.below(30))));
                }
                (3, Some(watch)) => drop(watch.pause()),
                (_, Some(watch)) => watch.touch(),
            }
        }
        watches
    };
    let mut taken = 0;
    let watches: Vec<Watch> = std::thread::scope(|scope| {
        let mixing: Vec<_> = (0..3).map(|seed| scope.spawn(move || mixed(seed))).collect();
        for round in 0.. {
            if round >= 50 && taken > 0 {
                break;
            }
            taken += idle.take_idlest(3).len() as u64;
            idle.scale(if round % 2 == 0 { 0.1 } else { 1.0 }).unwrap();
            std::thread::sleep(ms(1));
        }
        idle.scale(1.0).unwrap();
        mixing.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let policy = IdlePolicy::new().both(ms(1));
    watches.iter().for_each(|watch| watch.set_policy(&policy));
    eventually("every connection has been reported", || idle.watched() == 0);
    assert!(told.load(Relaxed) > 0 && taken > 0);
    assert_eq!(idle.panicked(), 0);
    drop(watches);
    assert!(timer.stop().unwrap().is_empty());
}

/// The timer is stopped while jobs are under way that report the same connections.
#[test]
fn rule_01_a_stop_during_reports_reports_each_connection_once() {
    for round in 0..50 {
        let timer = timer(2);
        let idle = IdleTimeouts::new(&timer, |stops: &mut Arc<AtomicU64>, event| {
            if event.kind == IdleKind::TimerStopped {
                stops.fetch_add(1, Relaxed);
            }
            Answer::KeepWatching
        });
        let policy = IdlePolicy::new().both(ms(1)).reader(ms(2)).jitter(ms(2));
        let stops: Vec<Arc<AtomicU64>> = (0..200).map(|_| Arc::default()).collect();
        let watches: Vec<_> =
            stops.iter().map(|stops| idle.watch(stops.clone(), &policy).unwrap()).collect();
        std::thread::sleep(Duration::from_micros(round * 200));
        drop(timer.stop().unwrap());
        eventually("jobs that were under way have ended", || idle.watched() == 0);
        let told: Vec<_> = stops.iter().map(|stops| stops.load(Relaxed)).collect();
        assert_eq!(told, [1; 200]);
        drop(watches);
    }
}

/// More than the manager looks at in one hold of its lock: jobs report one slice while others look for
/// the next. Meanwhile others leave, are taken, and come.
#[test]
fn rule_01_each_connection_of_a_crowd_is_reported_once() {
    const CROWD: usize = 20_000;
    let timer = timer(2);
    let idle = IdleTimeouts::new(&timer, |told: &mut Arc<AtomicU64>, event| {
        assert_eq!(event.kind, IdleKind::Both);
        told.fetch_add(1, Relaxed);
        Answer::StopWatching
    });
    let policy = IdlePolicy::new().both(Duration::from_secs(60));
    let told: Vec<Arc<AtomicU64>> = (0..CROWD).map(|_| Arc::default()).collect();
    let watch = |told: &Arc<AtomicU64>| idle.watch(told.clone(), &policy).unwrap();
    let mut watches: Vec<Watch> = told.iter().map(watch).collect();
    let (stay, leave) = (watches.split_off(CROWD / 4), watches);
    idle.scale(0.0).unwrap();
    let all_taken = std::thread::scope(|scope| {
        let leaving = scope.spawn(move || leave.into_iter().for_each(drop));
        let coming = scope.spawn(|| (0..1000).for_each(|_| drop(watch(&Arc::default()))));
        let taken = idle.take_idlest(1000);
        leaving.join().unwrap();
        coming.join().unwrap();
        taken
    });
    for taken in &all_taken {
        taken.connection.fetch_add(1, Relaxed);
    }
    eventually("every connection has been reported", || idle.watched() == 0);
    let counts = |range: std::ops::Range<usize>| told[range].iter().map(|told| told.load(Relaxed));
    assert!(counts(0..CROWD / 4).all(|count| count <= 1), "who leaves is told once at most");
    assert!(counts(CROWD / 4..CROWD).all(|count| count == 1));
    assert_eq!(idle.panicked(), 0);
    drop(stay);
    drop((all_taken, idle));
    let is_dropped = || told.iter().all(|told| Arc::strong_count(told) == 1);
    eventually("every connection is dropped", is_dropped);
}
