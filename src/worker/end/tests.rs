use super::*;
use std::sync::mpsc;
use std::task::Wake;
use std::time::Duration;

/// To take out millions of timeouts takes a second. Only a stop waits for it, up to its limit.
#[test]
fn rule_09_only_a_stop_waits_while_the_slots_are_emptied() {
    let gate = &Shared::of_this_thread(None, 8).0.gate.clone();
    let progress = &Progress::<u32>::new();
    let (begin, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        gate.close();
        let emptier = scope.spawn(move || {
            progress.report_end(gate, |_| {
                begin.send(()).unwrap();
                may_go_on.recv().unwrap();
                vec![1, 2]
            })
        });
        has_begun.recv().unwrap();
        let (call, called) = mpsc::channel();
        scope.spawn(move || {
            let polled = progress.poll_finished(&mut None, Waker::noop());
            assert!(!progress.is_finished() && polled.is_none());
            assert!(progress.wait_finished(Some(Instant::now())).is_none());
            assert!(progress.cancel(gate).is_empty());
            call.send(()).unwrap();
        });
        let in_time = called.recv_timeout(Duration::from_secs(60));
        let stop = scope.spawn(|| progress.wait_finished(None));
        go_on.send(()).unwrap();
        assert!(in_time.is_ok(), "a call has waited for the emptying");
        assert_eq!(emptier.join().unwrap(), [1, 2], "the last handle was dropped meanwhile");
        assert_eq!(stop.join().unwrap(), Some(Vec::new()));
    });
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Two futures wait for the same end, and each is polled again.
#[test]
fn rule_09_each_caller_that_polls_for_the_end_has_its_own_waker() {
    let progress = Progress::<u32>::new();
    let wakers = [(); 2].map(|()| Arc::new(Nobody));
    let mut numbers = [None; 2];
    for _ in 0..2 {
        for (waker, number) in wakers.iter().zip(&mut numbers) {
            assert!(progress.poll_finished(number, &waker.clone().into()).is_none());
        }
    }
    let kept = || [0, 1].map(|n| Arc::strong_count(&wakers[n]) - 1);
    assert_eq!(kept(), [1, 1]);
    progress.stop_waiting(numbers[0].expect("it has polled"));
    assert_eq!(kept(), [0, 1]);
    progress.wake_waiting();
    assert_eq!(kept(), [0, 0]);
}

/// Whoever asks whether the timer is finished may be interrupted as long as its thread has low priority.
#[test]
fn rule_03_a_worker_that_nobody_has_asked_to_catch_up_waits_for_no_lock() {
    let progress = Arc::new(Progress::<u32>::new());
    let held = progress.state.lock();
    let (call, called) = mpsc::channel();
    let worker = progress.clone();
    thread::spawn(move || {
        worker.caught_up(worker.requested());
        call.send(()).unwrap();
    });
    assert!(called.recv_timeout(Duration::from_secs(60)).is_ok());
    drop(held);
}

#[test]
fn a_worker_without_a_run_is_busy_with_nothing() {
    static TYPE: u8 = 1;
    let running = Running::new();
    running.begin(&TYPE, 10);
    assert_eq!(running.get(), Some((&TYPE, 10)));
    running.end();
    assert_eq!(running.get(), None);
}
