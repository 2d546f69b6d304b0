use super::*;
use crate::base::sync::spawn;
use crate::intake;
use crate::time::Timebase;
use crate::time::tick::TickScale;
use loom::thread;
use std::num::NonZeroU64;

/// A timer's progress, and its gate.
fn progress() -> Arc<(Progress<u32>, Arc<Gate>)> {
    let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
    let shared = intake::Shared::<()>::new(time, scale, None, 1).0;
    Arc::new((Progress::new(), shared.gate.clone()))
}

/// Runs a worker that waits until the timer is closed, and finishes it.
fn worker(timer: Arc<(Progress<u32>, Arc<Gate>)>) -> thread::JoinHandle<usize> {
    thread::spawn(move || {
        let (progress, gate) = &*timer;
        while !gate.is_closed() {
            thread::yield_now();
        }
        progress.report_end(gate, |_| vec![1, 2, 3]).len()
    })
}

/// Two stops race. Both return, and each timeout goes to one of them.
#[test]
fn rule_09_two_threads_stop_one_timer() {
    crate::base::sync::check(|| {
        let timer = progress();
        let worker = worker(timer.clone());
        let stop = |(progress, gate): &(Progress<u32>, Arc<Gate>)| {
            gate.close();
            let unprocessed = progress.wait_finished(None).expect("there is no limit");
            assert!(progress.is_finished());
            unprocessed.len()
        };
        let other = timer.clone();
        let second = thread::spawn(move || stop(&other));
        assert_eq!(stop(&timer) + second.join().unwrap(), 3);
        assert_eq!(worker.join().unwrap(), 0);
    });
}

/// The drop of the last handle against the worker's end, also after a stop that gave up
/// waiting. Exactly one of the two gets the unprocessed timeouts.
#[test]
fn rule_01_a_drop_leaves_no_timeout_uncollected() {
    for stops in [true, false] {
        crate::base::sync::check(move || {
            let timer = progress();
            let worker = worker(timer.clone());
            let (progress, gate) = &*timer;
            if stops {
                gate.close();
            }
            let collected = progress.cancel(gate).len();
            assert_eq!(collected + worker.join().unwrap(), 3);
            assert!(progress.is_finished());
        });
    }
}

/// Two threads request to catch up, and both requests are answered.
#[test]
fn rule_09_requests_to_catch_up_are_answered() {
    crate::base::sync::check(|| {
        let timer = progress();
        let askers = [(); 2].map(|()| {
            let timer = timer.clone();
            thread::spawn(move || timer.0.wait_caught_up(timer.0.request_catch_up()))
        });
        let progress = &timer.0;
        while progress.requested() < 2 {
            thread::yield_now();
        }
        progress.caught_up(progress.requested());
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
}

/// Two runs, of tasks of two types. The first may be read with the time of the second, which has just begun.
#[test]
fn what_runs_is_read_with_its_time() {
    static TYPES: [u8; 2] = [1, 2];
    crate::base::sync::check(|| {
        let running = Arc::new(Running::new());
        let worker = {
            let running = running.clone();
            spawn(move || {
                running.begin(&TYPES[0], 10);
                running.begin(&TYPES[1], 20);
            })
        };
        let read = running.get().map(|(task, since)| (*task, since));
        assert!(matches!(read, None | Some((1, 10 | 20) | (2, 20))), "{read:?}");
        worker.join().unwrap();
        assert_eq!(running.get(), Some((&TYPES[1], 20)));
        running.end();
        assert_eq!(running.get(), None);
    });
}
