use super::*;
use crate::base::sync::Arc;
use crate::intake::Shared;
use crate::time::Timebase;
use crate::time::tick::TickScale;
use loom::thread;
use std::num::NonZeroU64;

fn progress() -> Arc<Progress<u32>> {
    let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
    Arc::new(Progress::new(Shared::<()>::new(time, scale, None, 1).0.gate.clone()))
}

/// Runs a worker that waits until the timer is closed, and finishes it.
fn worker(progress: Arc<Progress<u32>>) -> thread::JoinHandle<usize> {
    thread::spawn(move || {
        while !progress.gate.is_closed() {
            thread::yield_now();
        }
        progress.finish(|_| vec![1, 2, 3]).len()
    })
}

/// Two stops race. Both return, and each timeout goes to one of them.
#[test]
fn rule_09_two_threads_stop_one_timer() {
    crate::base::sync::check(|| {
        let progress = progress();
        let worker = worker(progress.clone());
        let stop = |progress: &Progress<u32>| {
            progress.gate.close();
            let unprocessed = progress.wait_finished(None).expect("there is no limit");
            assert!(progress.is_finished());
            unprocessed.len()
        };
        let other = progress.clone();
        let second = thread::spawn(move || stop(&other));
        assert_eq!(stop(&progress) + second.join().unwrap(), 3);
        assert_eq!(worker.join().unwrap(), 0);
    });
}

/// The drop of the last handle against the worker's end, also after a stop that gave up
/// waiting. Exactly one of the two gets the unprocessed timeouts.
#[test]
fn rule_01_a_drop_leaves_no_timeout_uncollected() {
    for stops in [true, false] {
        crate::base::sync::check(move || {
            let progress = progress();
            let worker = worker(progress.clone());
            if stops {
                progress.gate.close();
            }
            let collected = progress.cancel().len();
            assert_eq!(collected + worker.join().unwrap(), 3);
            assert!(progress.is_finished());
        });
    }
}

/// Two threads request to catch up, and both requests are answered.
#[test]
fn rule_09_requests_to_catch_up_are_answered() {
    crate::base::sync::check(|| {
        let progress = progress();
        let askers = [(); 2].map(|()| {
            let progress = progress.clone();
            thread::spawn(move || progress.wait_caught_up(progress.request_catch_up()))
        });
        while progress.requested() < 2 {
            thread::yield_now();
        }
        progress.caught_up(progress.requested());
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
}
