use super::*;
use std::sync::mpsc;
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
