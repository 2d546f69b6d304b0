//! A clock that calls the manager back each time that it is read.

use super::{MANY, both};
use crate::common::{Mutex, Record, TICK, eventually};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use wheelwork::executor::Job;
use wheelwork::idle::{Answer, IdleKind, IdleTimeouts, Watch};
use wheelwork::time::{Clock, Follower, Pace};
use wheelwork::timer::Builder;
use wheelwork::{HashedWheelTimer, ManualClock};

/// Asks the manager, which takes all of its locks.
#[derive(Clone, Default)]
struct Asks {
    clock: ManualClock,
    manager: Arc<Mutex<Option<IdleTimeouts<u32>>>>,
}

impl Clock for Asks {
    fn now(&self) -> Instant {
        let manager = self.manager.lock().unwrap().clone();
        manager.into_iter().for_each(|manager| _ = manager.watched());
        self.clock.now()
    }

    fn attach(&self, follower: Follower) -> Pace {
        self.clock.attach(follower)
    }
}

struct Watched {
    asks: Asks,
    timer: HashedWheelTimer,
    kinds: Record<IdleKind>,
    watches: Vec<Watch>,
}

impl Watched {
    /// Watches this many connections. A callback waits until the channel is closed.
    fn new(builder: Builder, many: u32, channel: mpsc::Receiver<()>) -> Self {
        let asks = Asks::default();
        let timer = builder.clock(asks.clone()).build().unwrap();
        let (kinds, channel) = (Record::new(), Mutex::new(channel));
        let record = kinds.clone();
        let idle = IdleTimeouts::new(&timer, move |_: &mut u32, event| {
            record.push(event.kind);
            let _ = channel.lock().unwrap().recv();
            Answer::KeepWatching
        });
        let watches = (0..many).map(|id| idle.watch(id, &both(100)).unwrap()).collect();
        *asks.manager.lock().unwrap() = Some(idle);
        Self { asks, timer, kinds, watches }
    }

    fn stop(&self) {
        assert!(self.timer.stop_timeout(Duration::from_secs(60)).unwrap().is_empty());
    }

    fn wait_for_reports(&self, many: u32) {
        eventually("all are reported", || self.kinds.len() == many as usize);
    }
}

impl Drop for Watched {
    /// The manager keeps its timer, and so the clock.
    fn drop(&mut self) {
        let manager = self.asks.manager.lock().unwrap().take();
        drop(manager);
        if thread::panicking() {
            std::mem::forget(std::mem::take(&mut self.watches)); // who has their lock may keep it
        }
    }
}

#[test]
fn rule_09_a_clock_may_ask_the_manager_at_the_stop() {
    let watched = Watched::new(HashedWheelTimer::builder(), 3, mpsc::channel().1);
    watched.stop();
    watched.wait_for_reports(3);
}

#[test]
fn rule_09_a_clock_may_ask_the_manager_between_two_slices() {
    let watched = Watched::new(HashedWheelTimer::builder(), MANY, mpsc::channel().1);
    let clock = watched.asks.clock.clone();
    let advance = thread::spawn(move || clock.advance_in_one_jump(TICK));
    watched.wait_for_reports(MANY);
    advance.join().unwrap();
}

/// The callback has one connection at the end of the timer.
#[test]
fn rule_09_a_clock_may_ask_the_manager_after_a_report_beside_the_stop() {
    let (job, jobs) = mpsc::channel::<Job>();
    let job = Mutex::new(job);
    let executor = move |new| job.lock().unwrap().send(new).map_err(|refused| refused.0);
    let (goes_on, channel) = mpsc::channel();
    let watched = Watched::new(HashedWheelTimer::builder().executor(executor), 1, channel);
    watched.asks.clock.advance_in_one_jump(TICK);
    let reports = thread::spawn(move || jobs.recv().unwrap().run());
    watched.wait_for_reports(1);
    watched.stop();
    drop(goes_on);
    watched.wait_for_reports(2);
    assert_eq!(watched.kinds.take(), [IdleKind::Both, IdleKind::TimerStopped]);
    reports.join().unwrap();
}
