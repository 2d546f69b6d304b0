//! Loom models of the signal between a stream's tasks and the report. A lost wake-up leaves a thread
//! waiting, and loom reports the deadlock.

use super::signal::{Half, Listener, Signal, Silence};
use crate::base::sync::{Arc, AtomicBool, Condvar, Mutex, Ordering, check, spawn};
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
            self.wait();
        }
    }

    fn wait(&self) {
        let mut rung = self.rung.lock();
        while !*rung {
            rung = self.changed.wait(rung);
        }
        *rung = false;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock() = true;
        self.changed.notify_one();
    }
}

/// Rules 1 and 6: a reader and a writer begin to wait while the silence is reported.
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

/// Rule 5: the pause of an old stream ends while a reader begins to wait.
#[test]
fn the_end_of_a_pause_wakes_the_reader_of_an_old_stream() {
    check(|| {
        let (signal, paused) = (Arc::new(Signal::new()), Arc::new(AtomicBool::new(true)));
        assert_eq!(signal.report(IdleKind::Age, SILENCE), 0);
        let reader = spawn({
            let (signal, paused) = (signal.clone(), paused.clone());
            move || {
                let bell = Bell::new();
                let (waker, mut listener) = (bell.clone().into(), Listener::new(signal));
                loop {
                    let silences = listener.wait(Half::Reader, &waker).unwrap_or_default();
                    assert_eq!(silences[IdleKind::Age as usize], Some(SILENCE));
                    if !paused.load(Ordering::Relaxed) {
                        return;
                    }
                    bell.wait();
                }
            }
        });
        paused.store(false, Ordering::Relaxed);
        signal.wake_if_old();
        reader.join().unwrap();
    });
}

/// Rule 2: a half is polled with another waker while the silence is reported.
#[test]
fn another_waker_of_a_stream_sees_a_report() {
    check(|| {
        let signal = Arc::new(Signal::new());
        let mut previous = Listener::new(signal.clone());
        assert_eq!(previous.wait(Half::Reader, Waker::noop()), Some([None; 5]));
        let task = spawn({
            let signal = signal.clone();
            move || Bell::new().wait_for_silence(signal, Half::Reader)
        });
        assert_eq!(signal.report(IdleKind::Both, SILENCE), 0);
        task.join().unwrap();
    });
}
