//! The idle manager, on a manual clock unless a test needs real time.

mod batches;
mod callbacks;
mod checks;
mod clocks;
mod lost_checks;
mod pressure;
mod progress;
mod silence;
mod stops;

use crate::common::{Record, TICK, manual_with, ms};
use wheelwork::executor::Job;
use wheelwork::idle::{Answer, IdleEvent, IdleKind, IdlePolicy, IdleTimeouts};
use wheelwork::timer::Builder;
use wheelwork::{HashedWheelTimer, ManualClock};

/// A report: the connection, its kind, whether it is the first, and the milliseconds of silence.
type Seen = (u32, IdleKind, bool, u128);

fn seen(id: u32, event: IdleEvent) -> Seen {
    (id, event.kind, event.first, event.silent_for.as_millis())
}

/// Idle timeouts that record their events and answer `answer`.
fn recording(timer: &HashedWheelTimer, answer: Answer) -> (IdleTimeouts<u32>, Record<Seen>) {
    let events = Record::new();
    let record = events.clone();
    let idle = IdleTimeouts::new(timer, move |id: &mut u32, event| {
        record.push(seen(*id, event));
        answer
    });
    (idle, events)
}

fn both(after: u64) -> IdlePolicy {
    IdlePolicy::new().both(ms(after))
}

/// More connections than the manager deals with under one hold of a lock.
const MANY: u32 = 10_000;

/// A timer whose jobs wait until the test runs them, or drops them.
fn queueing(builder: Builder) -> (HashedWheelTimer, ManualClock, Record<Job>) {
    let jobs = Record::new();
    let queue = jobs.clone();
    let executor = move |job: Job| {
        queue.push(job);
        Ok(())
    };
    let (timer, clock) = manual_with(builder.executor(executor));
    (timer, clock, jobs)
}

/// Advances tick by tick, so that no event is late by more than one.
fn walk(clock: &ManualClock, ticks: u32) {
    (0..ticks).for_each(|_| clock.advance_in_one_jump(TICK));
}
