//! The real load, small. No test depends on the machine's speed.

use super::{BUCKETS, Load, Size};
use crate::history::History;
use std::time::{Duration, Instant};

const SMALL: Size = Size { requests: 2000, connections: 200 };

/// Waits until `holds`. Fails the test after a minute.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "never came: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn counted(load: &Load) -> u64 {
    load.fill.counts().iter().copied().map(u64::from).sum()
}

#[test]
fn the_strip_counts_exactly_the_pending_timeouts() {
    let mut load = Load::start(SMALL).expect("a timer");
    eventually("requests", || counted(&load) > 500);
    load.end_threads();
    // While one expires, it may have left one count and not the other.
    eventually("the same", || counted(&load) == load.timer.pending_timeouts() as u64);
    let left = load.timer.stop().expect("a stop");
    assert_eq!(counted(&load), left.len() as u64);
}

#[test]
fn a_burst_runs_whole_and_never_early() {
    let load = Load::start(SMALL).expect("a timer");
    load.burst().expect("it runs");
    eventually("its report", || load.news().contains(" ran, "));
    assert!(load.news().starts_with("burst: 100,000 ran, 0 of them early"), "{}", load.news());
    let most = load.fill.counts().into_iter().max();
    assert!(most < Some(super::trouble::BURST), "it has left its bucket: {most:?}");
}

#[test]
fn a_stall_and_a_storm_report_what_came_of_them() {
    let load = Load::start(SMALL).expect("a timer");
    load.stall().expect("it runs");
    eventually("its report", || load.news().contains("caught up"));
    load.storm().expect("threads");
    eventually("its report", || load.news().contains("1,000,000 scheduled and cancelled"));
}

#[test]
fn silent_connections_are_closed_and_replaced() {
    let load = Load::start(SMALL).expect("a timer");
    let all = SMALL.connections as usize;
    eventually("all connections", || load.connections.watched() == all);
    eventually("a silent one", || load.connections.closed() > 0);
    eventually("a new one instead", || load.connections.watched() == all);
    eventually("each has its age", || load.connections.ages().iter().sum::<u64>() == all as u64);
    assert_eq!(load.connections.wrong(), 0);
}

#[test]
fn a_screen_shows_the_rates_of_the_load() {
    let (load, mut history) = (Load::start(SMALL).expect("a timer"), History::default());
    history.take(&load);
    let before = load.timer.metrics();
    eventually("events of each kind", || {
        let metrics = load.timer.metrics();
        metrics.scheduled > before.scheduled
            && metrics.cancelled > before.cancelled
            && metrics.rescheduled > before.rescheduled
    });
    eventually("both threads", || {
        let names = load.timer.thread_metrics();
        ["api 1", "api 2"].iter().all(|name| names.iter().any(|of| of.thread == *name))
    });
    history.take(&load);
    let screen = history.screen(&load);
    let rate = |name| screen.rates.iter().find(|rate| rate.name == name).map(|rate| rate.now);
    assert!(rate("scheduled") > Some(0) && rate("cancelled") > Some(0));
    assert_eq!((screen.buckets.len(), screen.hand < BUCKETS), (BUCKETS, true));
    let threads: Vec<_> = screen.threads.iter().map(|of| of.thread.as_str()).collect();
    assert!(threads.contains(&"api 1") && threads.contains(&"api 2"), "{threads:?}");
}
