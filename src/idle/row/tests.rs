//! The remembered reports.

use super::super::activity::NoWatcher;
use super::super::policy::{IdlePolicy, Scale};
use super::*;
use std::time::Duration;

const AFTER: u64 = 10;

/// A row with connections in its first `n` seats, active at time 1.
fn row_of(n: u32) -> Box<Row<u32>> {
    let mut row = Row::new(Arc::new(NoWatcher), Instant::now());
    let policy = IdlePolicy::new().both(Duration::from_nanos(AFTER));
    (0..n).for_each(|number| row.occupy(number, number, policy.clone(), 1));
    row
}

/// The verdict on a seat, whose report is noted if it is idle.
fn report(row: &mut Row<u32>, number: u32, now: u64) -> bool {
    let verdict = row.verdict(number, CheckTime { now, scale: Scale::ONE });
    let Some(Verdict::Idle(event, _)) = verdict else { return false };
    row.note_report(number, event.kind, now);
    true
}

fn remembered(row: &Row<u32>) -> Vec<u32> {
    (0..BLOCK as u32).filter(|&number| row.reports.of(number).is_some()).collect()
}

#[test]
fn a_report_is_forgotten_after_activity() {
    let mut row = row_of(2);
    assert!(report(&mut row, 0, 11) && report(&mut row, 1, 11));
    assert_eq!(remembered(&row), [0, 1]);
    row.activity(0).touch(15);
    assert!(!report(&mut row, 0, 21) && report(&mut row, 1, 21));
    assert_eq!(remembered(&row), [1]);
    row.activity(1).touch(25);
    assert!(!report(&mut row, 1, 31) && remembered(&row).is_empty());
    assert!(row.reports.silences.is_none());
}

/// The seat's next connection has not been reported.
#[test]
fn a_report_is_forgotten_with_its_connection() {
    let mut row = row_of(2);
    assert!(report(&mut row, 0, 11) && report(&mut row, 1, 11));
    assert_eq!(row.vacate(0), Some(0));
    assert_eq!(remembered(&row), [1]);
    assert_eq!(row.vacate(1), Some(1));
    assert!(row.reports.silences.is_none());
}

#[test]
fn a_write_that_waits_counts_only_from_the_policy_that_asks_for_it() {
    let mut row = row_of(2);
    let waits_since = |row: &Row<u32>| row.block.reading(1).silent_since(IdleKind::WaitingWrite);
    let waiting_write = IdlePolicy::new().waiting_write(Duration::from_nanos(AFTER));
    row.set_policy(0, waiting_write.clone(), 1); // the neighbour has the words made
    row.block.record_waiting_write(1, || 2);
    row.set_policy(1, waiting_write.clone(), 7);
    assert_eq!(waits_since(&row), None, "until the next attempt");
    row.block.record_waiting_write(1, || 8);
    row.set_policy(1, waiting_write.jitter(Duration::from_nanos(1)), 9);
    assert_eq!(waits_since(&row), Some(8), "it was on already");
}
