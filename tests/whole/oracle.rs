//! What holds at a quiet moment: no thread of the program runs, and the workers have nothing to do.

use crate::env::{self, Patience};
use crate::ledger::{End, Ledger};
use crate::naps::Nap;
use crate::play::World;
use crate::program::nanos;
use crate::rogue;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::metrics::Metrics;

/// The slots of a chunk.
const SLOTS: u64 = 62;

/// Chunks that a timer may keep without a timeout: those for the next burst, and a quarter of its pools. Each thread keeps
/// its own besides.
const KEPT: u64 = 20;

/// The worker releases vacant chunks at most once in this time.
const RELEASED_WITHIN: Duration = Duration::from_secs(1);

pub fn check(world: &World) {
    world.check_complaints();
    rogue::end_jobs(world);
    for (number, ledger) in world.ledgers.iter().enumerate() {
        let complain = |what: String| world.fail(&format!("timer {number}: {what}"));
        match world.timer(number) {
            Some(timer) if timer.is_stopped() => {
                check_ended(world, number, ledger);
                check_counts(world, number, ledger, &timer).unwrap_or_else(complain);
                check_stopped_memory(ledger, &timer).unwrap_or_else(complain);
            }
            Some(timer) => {
                let running = || check_running(world, number, ledger, &timer);
                check_at_rest(world, &timer, running).unwrap_or_else(complain);
                if !world.size.rogue && check_memory(ledger, &timer).is_err() {
                    world.clock.advance_in_one_jump(RELEASED_WITHIN);
                    let memory = || running().and_then(|()| check_memory(ledger, &timer));
                    check_at_rest(world, &timer, memory).unwrap_or_else(complain);
                }
            }
            None => {
                let links = std::mem::take(&mut *world.links.lock().unwrap());
                let (its, others) = links.into_iter().partition(|link| link.timer == number);
                *world.links.lock().unwrap() = others;
                drop::<Vec<_>>(its); // they keep the timer
                check_ended(world, number, ledger);
            }
        }
        ledger.live.lock().unwrap().retain(|entry| !entry.has_ended());
    }
    world.check_complaints();
}

/// Checks while the worker sleeps. A worker that was woken, and has not run since, counts as asleep. So a
/// complaint must stand for a while, or recur for longer: at the pace of real time, the worker wakes up in each tick.
fn check_at_rest(
    world: &World,
    timer: &HashedWheelTimer,
    check: impl Fn() -> Result<(), String>,
) -> Result<(), String> {
    let (mut patience, mut result) = (Patience::default(), Ok(()));
    env::comes(|| {
        world.wait_until("the worker sleeps", || timer.asleep_until().is_some());
        let wakeups = timer.metrics().wakeups;
        result = check();
        let woke = timer.metrics().wakeups != wakeups;
        if woke {
            patience = Patience::default();
        }
        result.is_ok() || !woke && patience.is_over()
    });
    result
}

fn check_running(
    world: &World,
    number: usize,
    ledger: &Ledger,
    timer: &HashedWheelTimer,
) -> Result<(), String> {
    rogue::end_jobs(world);
    let Some(until) = timer.asleep_until() else { return Err("the worker woke up".to_owned()) };
    let (now, until) = (world.now(), ledger.start.saturating_add(nanos(until)));
    if until <= now {
        return Err(format!("the worker sleeps until {until}, and it is {now}"));
    }
    let late = |what: String, due_by: u64| {
        Err(format!(
            "liveness: the worker sleeps until {until}, and {what} is due at {due_by}; it is {now}"
        ))
    };
    let live = ledger.live.lock().unwrap().clone();
    for entry in live.iter().filter(|entry| !entry.has_ended()) {
        let due_by = entry.due_by(ledger, now);
        if due_by < until {
            return late(entry.describe(), due_by);
        }
    }
    for nap in world.sleeps.lock().unwrap().iter().filter(|nap| nap.timer == Some(number)) {
        let due_by = ledger.due_by(nap.latest, nap.from);
        if nap.waits() && due_by < until {
            return late(format!("a sleep until {}", nap.latest), due_by);
        }
    }
    for link in world.links.lock().unwrap().iter().filter(|link| link.timer == number) {
        if let Some(due_by) = link.due_by(ledger, now).filter(|&due_by| due_by < until) {
            return late(link.describe(), due_by);
        }
    }
    check_counts(world, number, ledger, timer)
}

/// Everything of a timer that has been stopped, or has no handle any more, has ended.
fn check_ended(world: &World, number: usize, ledger: &Ledger) {
    world.wait_until("every timeout has ended", || {
        rogue::end_jobs(world);
        ledger.live.lock().unwrap().iter().all(|entry| entry.has_ended())
    });
    let waits = |nap: &Nap| nap.timer == Some(number) && nap.waits();
    world.wait_until("every sleep is woken", || !world.sleeps.lock().unwrap().iter().any(waits));
    world.wait_until("every connection is reported", || {
        rogue::end_jobs(world);
        let links = world.links.lock().unwrap();
        !links.iter().any(|link| link.timer == number && link.is_watched())
    });
}

/// The counts are exact.
fn check_counts(
    world: &World,
    number: usize,
    ledger: &Ledger,
    timer: &HashedWheelTimer,
) -> Result<(), String> {
    let metrics = timer.metrics();
    let wrong = differences(world, number, ledger, &metrics);
    let pending = timer.pending_timeouts() as u64;
    if wrong.is_empty() && pending == metrics.pending {
        return Ok(());
    }
    let ends = [End::Ran, End::Cancelled, End::Returned, End::Unknown, End::Refused]
        .map(|end| (end, ledger.ended(end)));
    Err(format!("counts: {wrong:?}; pending {pending}; {ends:?}; {metrics:?}"))
}

/// The counts that are not what the program did: each with the count, and with what it must be.
fn differences(
    world: &World,
    number: usize,
    ledger: &Ledger,
    m: &Metrics,
) -> Vec<(&'static str, u64, u64)> {
    let live = ledger.live.lock().unwrap().iter().filter(|entry| !entry.has_ended()).count() as u64;
    let waits = |nap: &&Nap| nap.timer == Some(number) && nap.waits();
    let waiting = world.sleeps.lock().unwrap().iter().filter(waits).count() as u64;
    let [ran, cancelled, returned, unknown, refused] =
        [End::Ran, End::Cancelled, End::Returned, End::Unknown, End::Refused]
            .map(|end| ledger.ended(end));
    let accepted = ledger.accepted.load(SeqCst);
    let ended = m.expired - m.rearmed;
    let mut all = vec![(
        "conserved",
        m.scheduled + m.rearmed,
        m.expired + m.cancelled + m.returned + m.pending,
    )];
    // Bad code panics within the calls that the ledger counts, and not all futures are known.
    if !world.size.rogue {
        all.push(("pending", m.pending, live + waiting));
        all.push(("panicked", m.panicked, 0));
    }
    let mut within = vec![
        ("rearmed", m.rearmed, ledger.went_on.load(SeqCst)), // or was not to go on after all
        ("run", ran, ended),
        ("cancelled", cancelled, m.cancelled),
        ("returned", returned, m.returned),
        ("scheduled", accepted, m.scheduled),
        ("rejected", refused, m.rejected),
        ("rescheduled", ledger.rescheduled.load(SeqCst), m.rescheduled),
    ];
    // Sleeps are counted too, and refused by a stopped timer.
    if !world.size.rogue && !ledger.slept.load(SeqCst) {
        all.push(("scheduled", m.scheduled, accepted));
        all.push(("rejected", m.rejected, refused));
        all.push(("rescheduled", m.rescheduled, ledger.rescheduled.load(SeqCst)));
        let known = ran + cancelled + returned + unknown;
        all.push(("ended", ended + m.cancelled + m.returned, known));
        if m.rearmed == 0 {
            within.extend(ledger.limit.map(|limit| ("within the limit", m.pending, limit as u64)));
        }
    }
    all.retain(|(_, is, must)| is != must);
    within.retain(|(_, is, most)| is > most);
    all.into_iter().chain(within).collect()
}

/// Memory is proportional to the live timeouts.
fn check_memory(ledger: &Ledger, timer: &HashedWheelTimer) -> Result<(), String> {
    let (metrics, threads) = (timer.metrics(), timer.thread_metrics().len() as u64);
    let (chunks, used) = (metrics.slots / SLOTS, metrics.pending + ledger.held.load(SeqCst));
    // Each thread may be the only one of its pool.
    if chunks <= (KEPT + 1) * (threads + 1) + 2 * used {
        return Ok(());
    }
    Err(format!("memory: {chunks} chunks, for {used} timeouts and handles of {threads} threads"))
}

/// A stopped timer takes no more memory, whoever comes.
fn check_stopped_memory(ledger: &Ledger, timer: &HashedWheelTimer) -> Result<(), String> {
    let slots = timer.metrics().slots;
    let at_end = *ledger.slots_at_end.lock().unwrap().get_or_insert(slots);
    if slots <= at_end {
        return Ok(());
    }
    Err(format!("memory: a stopped timer has {slots} slots, and had {at_end}"))
}
