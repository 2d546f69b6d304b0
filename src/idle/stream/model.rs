//! Loom models of the signal between a stream's tasks and the report. A lost wake-up leaves a thread
//! waiting, and loom reports the deadlock.

use super::signal::{Half, Listener, Signal, Silence};
use crate::base::sync::{Arc, Condvar, Mutex, check, spawn};
use crate::idle::kind::IdleKind;
use std::task::{Wake, Waker};
use std::time::Duration;

const SILENCE: Silence = Silence { since: 7, silent_for: Duration::from_millis(5), first: true };

/// A task that waits until it is woken.
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn new() -> Arc<Self> {
        Arc::new(Self { rung: Mutex::new(false), changed: Condvar::new() })
    }

    /// Polls a half until a silence was reported, each time once more than necessary. Returns the
    /// listener, whose drop would drop the other half's waker.
    fn wait_for_silence(self: &Arc<Self>, signal: Arc<Signal>, half: Half) -> Listener {
        let waker: Waker = self.clone().into();
        let mut listener = Listener::new(signal);
        loop {
            for _ in 0..2 {
                let silences = listener.wait(half, &waker).unwrap_or_default();
                if silences[IdleKind::Both as usize] == Some(SILENCE) {
                    return listener;
                }
            }
            let mut rung = self.rung.lock();
            while !*rung {
                rung = self.changed.wait(rung);
            }
            *rung = false;
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock() = true;
        self.changed.notify_one();
    }
}

/// Rules 1 and 5: a reader and a writer begin to wait while the silence is reported.
#[test]
fn both_halves_of_a_stream_see_a_report() {
    check(|| {
        let signal = Arc::new(Signal::new());
        let halves = [Half::Reader, Half::Writer].map(|half| {
            let signal = signal.clone();
            spawn(move || Bell::new().wait_for_silence(signal, half))
        });
        assert_eq!(signal.report(IdleKind::Both, SILENCE), 0);
        drop(halves.map(|half| half.join().unwrap()));
    });
}

/// Rule 2: a half is polled with another waker while the silence is reported.
#[test]
fn another_waker_of_a_stream_sees_a_report() {
    check(|| {
        let signal = Arc::new(Signal::new());
        let mut former = Listener::new(signal.clone());
        assert_eq!(former.wait(Half::Reader, Waker::noop()), Some([None; 5]));
        let task = spawn({
            let signal = signal.clone();
            move || Bell::new().wait_for_silence(signal, Half::Reader)
        });
        assert_eq!(signal.report(IdleKind::Both, SILENCE), 0);
        task.join().unwrap();
    });
}
