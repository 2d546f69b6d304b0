//! The watchdog: what it tells, when and where, and that it tells while a runtime is blocked.

use crate::common::{Record, TICK, manual, manual_with, ms};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;
use wheelwork::executor::ThreadPool;
use wheelwork::watchdog::{Feeder, Watchdog, WatchdogEvent};
use wheelwork::{HashedWheelTimer, ManualClock, RefusalReason};

type Told = Record<(String, WatchdogEvent)>;

const SECOND: Duration = Duration::from_secs(1);

fn watchdog(timer: &HashedWheelTimer) -> (Watchdog, Told) {
    let told = Record::new();
    let record = told.clone();
    let watchdog =
        Watchdog::new(timer, move |name: &str, event| record.push((name.to_owned(), event)));
    (watchdog, told)
}

fn stuck(unfed_for: Duration, first: bool) -> (String, WatchdogEvent) {
    ("it".to_owned(), WatchdogEvent::Stuck { unfed_for, first })
}

fn recovered(unfed_for: Duration) -> (String, WatchdogEvent) {
    ("it".to_owned(), WatchdogEvent::Recovered { unfed_for })
}

#[test]
fn rule_02_it_tells_after_the_limit_and_after_each_further_one() {
    let pool = ThreadPool::with_size(1, 10).unwrap();
    for builder in [HashedWheelTimer::builder(), HashedWheelTimer::builder().executor(pool)] {
        let (timer, clock) = manual_with(builder);
        let (watchdog, told) = watchdog(&timer);
        let watched = watchdog.watch("it", SECOND).unwrap();
        for _ in 0..20 {
            clock.advance(SECOND - TICK);
            watched.feed();
        }
        assert_eq!((told.len(), watched.unfed_for()), (0, Duration::ZERO));
        clock.advance(SECOND - TICK);
        assert_eq!(told.len(), 0);
        clock.advance(TICK);
        assert_eq!(told.take(), [stuck(SECOND, true)]);
        clock.advance(SECOND * 2);
        assert_eq!(told.take(), [stuck(SECOND * 2, false), stuck(SECOND * 3, false)]);
        clock.advance(SECOND / 2);
        watched.feed();
        watched.feed();
        assert_eq!(told.take(), [recovered(SECOND * 7 / 2)], "once");
        clock.advance(SECOND);
        assert_eq!(told.take(), [stuck(SECOND, true)]);
        drop(watched);
        clock.advance(SECOND * 10);
        assert_eq!((told.len(), watchdog.watched()), (0, 0));
    }
}

#[test]
fn a_pause_is_no_silence() {
    let (timer, clock) = manual();
    let (watchdog, told) = watchdog(&timer);
    let watched = watchdog.watch("it", SECOND).unwrap();
    {
        let _outer = watched.pause();
        drop(watched.pause());
        clock.advance(SECOND * 60);
    }
    clock.advance(SECOND - TICK);
    assert_eq!(told.len(), 0, "it was fed by the end of the pause");
    clock.advance(TICK);
    assert_eq!(told.take(), [stuck(SECOND, true)]);
    let paused = watched.pause();
    assert_eq!(told.take(), [recovered(SECOND)], "who pauses is alive");
    drop(paused);
}

#[test]
fn rule_10_limits_of_zero_and_of_ever() {
    let (timer, clock) = manual();
    let (watchdog, told) = watchdog(&timer);
    let never = watchdog.watch("never", Duration::MAX).unwrap();
    let always = watchdog.watch("it", Duration::ZERO).unwrap();
    clock.advance(TICK);
    assert_eq!(told.take(), [stuck(TICK, true)]);
    drop(always);
    clock.advance(SECOND * 1_000_000);
    assert_eq!((told.len(), watchdog.watched()), (0, 1));
    assert_eq!((never.name(), never.unfed_for() > SECOND * 1_000_000), ("never", true));
}

/// The end of the timer is no report. Afterwards, nothing can be watched.
#[test]
fn a_stop_ends_it_silently() {
    let (timer, clock) = manual();
    let (watchdog, told) = watchdog(&timer);
    let watched = watchdog.watch("it", SECOND).unwrap();
    assert_eq!((timer.pending_timeouts(), timer.metrics().scheduled), (0, 0), "it is out of sight");
    assert!(timer.stop().unwrap().is_empty());
    clock.advance_in_one_jump(SECOND * 2);
    watched.feed();
    assert_eq!((told.len(), watchdog.watched()), (0, 0));
    assert_eq!(watchdog.watch("late", SECOND).unwrap_err(), RefusalReason::Stopped);
}

#[test]
fn rule_05_it_goes_on_after_a_panic_of_its_callback() {
    let (timer, clock) = manual();
    let calls = Record::new();
    let record = calls.clone();
    let watchdog = Watchdog::new(&timer, move |_: &str, event| {
        record.push(event);
        panic!("a bad callback");
    });
    let watched = watchdog.watch("it", SECOND).unwrap();
    clock.advance(SECOND * 3);
    assert_eq!((calls.take().len(), timer.metrics().panicked), (3, 3));
    watched.feed(); // the panic does not reach this thread
    assert_eq!(calls.take(), [WatchdogEvent::Recovered { unfed_for: SECOND * 3 }]);
    assert_eq!(timer.metrics().panicked, 4);
    clock.advance(SECOND);
    assert_eq!(calls.take(), [WatchdogEvent::Stuck { unfed_for: SECOND, first: true }]);
}

/// A feed from within a report is a feed, and its recovery follows the report.
#[test]
fn its_callback_may_feed() {
    let (timer, clock) = manual();
    let told = Record::new();
    let (record, it) = (told.clone(), Arc::new(OnceLock::<Feeder>::new()));
    let fed = Arc::downgrade(&it); // the thing keeps the callback, which must not keep the thing
    let watchdog = Watchdog::new(&timer, move |_: &str, event| {
        record.push(event);
        fed.upgrade().unwrap().get().unwrap().feed();
    });
    it.set(watchdog.watch("it", SECOND).unwrap()).unwrap();
    clock.advance(SECOND);
    let [stuck, recovered] = told.take()[..] else { panic!("two calls") };
    assert_eq!(stuck, WatchdogEvent::Stuck { unfed_for: SECOND, first: true });
    assert_eq!(recovered, WatchdogEvent::Recovered { unfed_for: SECOND });
    it.get().unwrap().feed();
    assert_eq!(told.len(), 0);
}

/// A watchdog whose calls for `held` events wait until they are let go on. It notes where each call begins and ends.
fn holding(
    timer: &HashedWheelTimer,
    held: fn(WatchdogEvent) -> bool,
) -> (Watchdog, Record<Call>, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (calls, (entered, enters), (go_on, goes)) =
        (Record::new(), mpsc::channel(), mpsc::channel());
    let (record, goes) = (calls.clone(), Mutex::new(goes));
    let watchdog = Watchdog::new(timer, move |_: &str, event| {
        record.push(Call::Begins(event));
        if held(event) {
            let _ = entered.send(());
            let _ = goes.lock().unwrap().recv();
        }
        record.push(Call::Ends);
    });
    (watchdog, calls, enters, go_on)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Begins(WatchdogEvent),
    Ends,
}

/// It is fed while a first or a further report runs, by this thread, which is not held.
#[test]
fn a_feed_during_a_report_is_told_after_it() {
    for further in 0..2 {
        let (timer, clock) = manual();
        let (watchdog, calls, enters, go_on) = holding(&timer, |_| true);
        let watched = watchdog.watch("it", SECOND).unwrap();
        (0..further).for_each(|_| go_on.send(()).unwrap());
        thread::scope(|scope| {
            let go_on = go_on; // a failure ends the calls
            scope.spawn(|| clock.advance(SECOND * (1 + further)));
            (0..=further).for_each(|_| enters.recv().unwrap());
            watched.feed();
            drop(watched.pause()); // a pause feeds too
            let events = calls.take();
            assert!(matches!(events[..], [.., Call::Begins(WatchdogEvent::Stuck { .. })]));
            (0..2).for_each(|_| go_on.send(()).unwrap());
        });
        let recovered = WatchdogEvent::Recovered { unfed_for: SECOND * (1 + further) };
        assert_eq!(calls.take(), [Call::Ends, Call::Begins(recovered), Call::Ends]);
    }
}

/// The thread that feeds it is held in the call that tells so, for longer than the limit.
#[test]
fn a_report_does_not_overlap_a_recovery() {
    let (timer, clock) = manual();
    let (watchdog, calls, enters, go_on) =
        holding(&timer, |event| matches!(event, WatchdogEvent::Recovered { .. }));
    let watched = watchdog.watch("it", SECOND).unwrap();
    clock.advance(SECOND);
    assert_eq!(calls.take().len(), 2);
    let recovered = WatchdogEvent::Recovered { unfed_for: SECOND };
    thread::scope(|scope| {
        let _ends = go_on; // a failure ends the call too
        scope.spawn(|| watched.feed());
        enters.recv().unwrap();
        clock.advance(SECOND * 2);
        assert_eq!(calls.take(), [Call::Begins(recovered)]);
    });
    clock.advance(SECOND);
    let stuck = WatchdogEvent::Stuck { unfed_for: SECOND * 3, first: true };
    assert_eq!(calls.take(), [Call::Ends, Call::Begins(stuck), Call::Ends]);
}

/// The time in the report belongs to the silence.
#[test]
fn a_recovery_tells_the_whole_silence() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let (sender, told) = mpsc::channel();
    let watchdog = Watchdog::new(&timer, move |_: &str, event| {
        thread::sleep(ms(150));
        sender.send(event).unwrap();
    });
    let watched = watchdog.watch("it", ms(100)).unwrap();
    let Ok(WatchdogEvent::Stuck { unfed_for: before, .. }) = told.recv() else { panic!("stuck") };
    watched.feed();
    let recovered = told.iter().find_map(|event| match event {
        WatchdogEvent::Recovered { unfed_for } => Some(unfed_for),
        _ => None,
    });
    assert!(recovered.unwrap() >= before + ms(150), "{recovered:?} after {before:?}");
}

/// A loop that works for a while between two feeds. A stall, which is a jump of the clock, stalls its work too.
struct Loop {
    watched: Feeder,
    works: Duration,
    to_feed: Duration,
}

impl Loop {
    fn of(watched: Feeder, works: Duration) -> Self {
        Self { watched, works, to_feed: works }
    }

    /// Works for a time.
    fn run(&mut self, clock: &ManualClock, mut work: Duration) {
        while work >= self.to_feed {
            clock.advance(self.to_feed);
            work -= self.to_feed;
            self.watched.feed();
            self.to_feed = self.works;
        }
        clock.advance(work);
        self.to_feed -= work;
    }
}

/// Each stall comes at several phases of a loop, and of the looks at it. The last loop is late by a tick, as an interval
/// of the timer is, and its limit has little more than four ticks.
#[test]
fn a_stall_is_no_silence_whatever_its_length() {
    let (quarter, long) = (SECOND / 4, SECOND * 6 / 25);
    for (tick, works) in [(SECOND / 10, quarter), (SECOND / 100, quarter), (long, quarter + long)] {
        let (timer, clock) = manual_with(HashedWheelTimer::builder().tick_duration(tick));
        let (watchdog, told) = watchdog(&timer);
        let mut healthy = Loop::of(watchdog.watch("healthy", SECOND).unwrap(), works);
        for sixteenths in 5..=48 {
            for phase in 0..4 {
                healthy.run(&clock, SECOND * 2 + SECOND * phase / 17);
                clock.advance_in_one_jump(SECOND * sixteenths / 16);
            }
        }
        healthy.run(&clock, SECOND * 2);
        assert_eq!(told.take(), []);
    }
}

#[test]
fn stalls_one_after_another_are_no_silence() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().tick_duration(SECOND / 100));
    let (watchdog, told) = watchdog(&timer);
    let mut healthy = Loop::of(watchdog.watch("healthy", SECOND).unwrap(), SECOND / 8);
    for stall in [SECOND * 2, SECOND / 2, SECOND * 100] {
        for run in [SECOND / 17, SECOND / 9, SECOND] {
            for _ in 0..3 {
                clock.advance_in_one_jump(stall);
                healthy.run(&clock, run);
            }
        }
    }
    assert_eq!(told.take(), []);
}

/// It is fed for the last time some time before the stall.
#[test]
fn what_is_stuck_is_told_soon_after_a_stall() {
    for tick in [SECOND / 10, SECOND / 100] {
        let (timer, clock) = manual_with(HashedWheelTimer::builder().tick_duration(tick));
        let (watchdog, told) = watchdog(&timer);
        for sixteenths in 5..=48 {
            for before in 0..4 {
                let watched = watchdog.watch("it", SECOND).unwrap();
                clock.advance(SECOND * before * 4 / 17);
                clock.advance_in_one_jump(SECOND * sixteenths / 16);
                clock.advance(SECOND * 5 / 4 + tick * 3);
                assert!(!told.take().is_empty(), "{sixteenths} {before}");
                drop(watched);
            }
        }
    }
}

/// Whatever the phase of its ticks, limit and feeds.
#[test]
fn rule_02_without_a_stall_it_tells_within_a_tick() {
    let (timer, clock) = manual();
    let (watchdog, told) = watchdog(&timer);
    for limit in [1, 30, 100, 101, 150, 210, 250, 399, 400, 433, 790, 1000, 1234].map(ms) {
        let watched = watchdog.watch("it", limit).unwrap();
        for phase in 0..10 {
            clock.advance(TICK * phase / 17);
            watched.feed();
            told.take();
            clock.advance(limit - ms(1));
            assert_eq!(told.take(), [], "{limit:?} {phase}");
            clock.advance(TICK + ms(1));
            let [(_, WatchdogEvent::Stuck { unfed_for, first: true }), ..] = told.take()[..] else {
                panic!("no report: {limit:?} {phase}");
            };
            assert!((limit..limit + TICK).contains(&unfed_for), "{unfed_for:?} {limit:?} {phase}");
        }
    }
}

/// The executor of its timer is stuck too, and holds no report.
#[test]
fn it_tells_on_the_worker() {
    let held = Mutex::new(Vec::new());
    let executor = move |job| {
        held.lock().unwrap().push(job); // and runs none
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let (watchdog, told) = watchdog(&timer);
    let watched = watchdog.watch("it", SECOND).unwrap();
    clock.advance(SECOND * 2);
    assert_eq!(told.take(), [stuck(SECOND, true), stuck(SECOND * 2, false)]);
    drop(watched);
}

/// Many threads feed one thing that was reported. One of them tells of the recovery.
#[test]
fn a_recovery_is_told_once() {
    for _ in 0..100 {
        let (timer, clock) = manual();
        let (watchdog, told) = watchdog(&timer);
        let watched = watchdog.watch("it", SECOND).unwrap();
        clock.advance(SECOND);
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    watched.feed();
                });
            }
        });
        assert_eq!(told.take(), [stuck(SECOND, true), recovered(SECOND)]);
    }
}

/// The runtime is blocked until the watchdog has told so, and until a plain timeout has run. A future that is due
/// meanwhile waits for the runtime, on whichever timer it is.
#[test]
fn rule_09_it_tells_while_a_runtime_is_blocked() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let (sender, told) = mpsc::channel();
    let watchdog = Watchdog::new(&timer, move |_: &str, event| {
        if let WatchdogEvent::Stuck { first: true, .. } = event {
            sender.send(()).unwrap();
        }
    });
    let order = Record::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (watched, own) = (Arc::new(watchdog.watch("runtime", ms(50)).unwrap()), timer.clone());
        let beats = watched.clone();
        tokio::spawn(async move {
            let mut ticks = own.interval(ms(5)).unwrap();
            while ticks.tick().await.is_some() {
                beats.feed();
            }
        });
        let (ours, theirs) = (timer.sleep(ms(10)), tokio::time::sleep(ms(10)));
        let (record, other) = (order.clone(), order.clone());
        let ours = tokio::spawn(async move {
            ours.await;
            record.push("a future");
        });
        let theirs = tokio::spawn(async move {
            theirs.await;
            other.push("a future of tokio");
        });
        let (ran, plain) = mpsc::channel();
        let record = order.clone();
        let task = move || {
            record.push("a plain timeout");
            ran.send(()).unwrap();
        };
        timer.new_timeout(task, ms(10)).unwrap();
        // Whatever the machine does here, the futures have not been polled yet.
        told.recv().unwrap();
        plain.recv().unwrap();
        order.push("the watchdog");
        ours.await.unwrap();
        theirs.await.unwrap();
    });
    let order = order.take();
    assert_eq!(order[..2], ["a plain timeout", "the watchdog"]);
    assert_eq!(order.len(), 4, "{order:?}");
}

/// Shards that report beats on virtual time: one of them stops.
#[test]
fn it_tells_which_shard_is_stuck() {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let (watchdog, told) = watchdog(&timer);
    clock.run_with(async |tasks| {
        for number in 0..4 {
            let watched = watchdog.watch(format!("shard {number}"), SECOND).unwrap();
            let timer = timer.clone();
            drop(tasks.spawn(async move {
                for turn in 0.. {
                    watched.feed();
                    let blocked = number == 2 && turn == 10;
                    timer.sleep(if blocked { SECOND * 5 / 2 } else { TICK }).await;
                }
            }));
        }
        timer.sleep(SECOND * 10).await;
    });
    let told = told.take();
    assert!(told.iter().all(|(name, _)| name == "shard 2"), "{told:?}");
    let events: Vec<_> = told.into_iter().map(|(_, event)| event).collect();
    let stuck = |n, first| WatchdogEvent::Stuck { unfed_for: SECOND * n, first };
    let recovered = WatchdogEvent::Recovered { unfed_for: SECOND * 5 / 2 };
    assert_eq!(events, [stuck(1, true), stuck(2, false), recovered]);
}
