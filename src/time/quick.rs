//! The time for threads that schedule, poll or touch: faster to read than `Instant::now`, and never behind it.
//!
//! The counter is used only where the kernel computes its monotonic clock from it (see `counter`). Elsewhere, and before
//! the counter's rate is known, this is `Instant`.
//!
//! A timeout must not be early. So a thread that computes a deadline may read a time that is too
//! late, but never one that is too early. Each thread keeps an *anchor*: an `Instant`, and a read
//! of the processor's counter just before it. For the next 65,536 counts (the *window*, about 30 µs)
//! the current time is the anchor plus the counts since, at a rate that is 30 % too fast (the
//! *surplus*). Then the thread takes a new anchor.
//!
//! **Why it is never behind `Instant`.** To follow the wall clock, the kernel may run its clock faster or slower, by
//! 11 % at most (`maxadj` in kernel/time/timekeeping.c). 1.11 / 0.89 is less than 1.3, so the surplus covers this,
//! whenever the rate was measured. Each anchor starts anew, so the argument holds over any run time. If the counter
//! jumps ahead (the machine was suspended), it leaves the window, and the thread takes a new anchor. The processor may
//! read the counter a few instructions early; `MARGIN` covers that. A rate is used only after two measurements in a
//! row agree, so a suspended machine cannot spoil it.
//!
//! **When the counter fails.** The kernel may find the counter unreliable while the process runs,
//! and does not tell us. But a thread that takes a new anchor has read both clocks, and can check
//! them against its old anchor. (A thread without an old anchor uses the pair of reads that the
//! rate was measured with.) By the argument above, a sound counter is never behind `Instant`, after
//! any time. If it is behind, or if it has gone back, the process gives up the counter for good.
//! From their next call on, all threads use `Instant`.
//!
//! A counter that runs ahead makes no timeout early, so it is kept. This is ordinary on a machine
//! that was suspended: the counter may run on while the monotonic clock stands still. A counter
//! that restarts from zero after a suspend has gone back, and is given up.
//!
//! **The remaining error** lies in the window in which the counter fails. A deadline that a thread
//! computes there, before its next anchor, may be early by as much as the counter has lost since
//! the last one. If the surplus makes up for the loss before the window ends, no check notices it.
//! A counter that stands still never ends the window; only a thread without an anchor notices that.
//!
//! **The price** is lateness: at most 30 % of the window (8 µs at 2.4 GHz), plus the time
//! that a thread is interrupted between the two reads of an anchor, at most 8,192 counts. A thread
//! that schedules rarely takes a new anchor each time, and pays nothing. A thread never sees this
//! clock go back, so equal delays keep the order in which they were scheduled.

use super::counter;
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// The number of counts for which an anchor is valid.
const WINDOW: u64 = 1 << 16;

/// Nanoseconds by which the processor may read the counter too early.
const MARGIN: u64 = 100;

/// The shortest and the longest time over which the rate is measured, in nanoseconds.
const CALIBRATION: RangeInclusive<u64> = 10_000_000..=1_000_000_000;

/// The reads of an anchor must take fewer counts than this. Otherwise the thread was interrupted
/// between them.
const UNDISTURBED: u64 = 1 << 13;

/// Plausible rates, 1 to 20 GHz: nanoseconds per count, with 32 fractional bits.
const RATES: RangeInclusive<u128> = (1 << 32) / 20..=1 << 32;

/// Nanoseconds per count, three tenths too many, with 32 fractional bits. It is 0 until it is
/// measured, and `GIVEN_UP` after the counter has failed. Relaxed: no other data depends on it.
static RATE: AtomicU64 = AtomicU64::new(0);

const GIVEN_UP: u64 = u64::MAX;

static CALIBRATOR: Mutex<Calibrator> = Mutex::new(Calibrator { base: None, last: None });

/// The instant that the process counts from, and whether the counter may be used.
static ORIGIN: OnceLock<(Instant, bool)> = OnceLock::new();

#[derive(Clone, Copy)]
struct Anchor {
    count: u64,
    nanos: u64,
    /// The number of counts for which the anchor is valid: 0 while there is no rate.
    window: u64,
    rate: u64,
}

thread_local! {
    static ANCHOR: Cell<Anchor> = const { Cell::new(Anchor { count: 0, nanos: 0, window: 0, rate: 0 }) };
    /// The latest time that `now` has returned on this thread.
    static LATEST: Cell<u64> = const { Cell::new(0) };
}

/// Returns the process's origin, which the first call sets. All instants before it count as the
/// origin.
pub(super) fn start() -> Instant {
    origin().0
}

/// Nanoseconds between the process's origin and `instant`.
pub(super) fn nanos_at(instant: Instant) -> u64 {
    crate::time::tick::nanos(instant.saturating_duration_since(origin().0))
}

/// Nanoseconds since the process's origin. Never less than `nanos_at(Instant::now())`.
#[inline]
pub(super) fn now() -> u64 {
    let anchor = ANCHOR.get();
    let now = match since(anchor) {
        Some(counts) => anchor.nanos + ((counts * anchor.rate) >> 32),
        None => take_anchor(),
    };
    let now = now.max(LATEST.get());
    LATEST.set(now);
    now
}

/// The counts since `anchor`, if it is still valid.
#[inline]
fn since(anchor: Anchor) -> Option<u64> {
    if anchor.window == 0 || is_given_up() {
        return None; // there may be no counter to read
    }
    Some(counter::read().wrapping_sub(anchor.count)).filter(|&counts| counts < anchor.window)
}

fn origin() -> &'static (Instant, bool) {
    ORIGIN.get_or_init(|| (Instant::now(), counter::drives_the_system_clock()))
}

#[inline]
fn is_given_up() -> bool {
    RATE.load(Ordering::Relaxed) == GIVEN_UP
}

#[cold]
fn take_anchor() -> u64 {
    if !origin().1 || is_given_up() {
        return nanos_at(Instant::now());
    }
    let count = counter::read();
    let nanos = nanos_at(Instant::now());
    let until = counter::read();
    if last_anchor().is_some_and(|last| last.is_behind(nanos, until)) {
        RATE.store(GIVEN_UP, Ordering::Relaxed);
    } else {
        ANCHOR.set(anchor(count, nanos, until, rate));
    }
    nanos
}

/// This thread's last anchor. If it has none, an anchor from the reads that the rate was measured
/// with.
fn last_anchor() -> Option<Anchor> {
    let last = ANCHOR.get();
    if last.window > 0 {
        return Some(last);
    }
    let rate = Some(RATE.load(Ordering::Relaxed)).filter(|&rate| rate != 0 && rate != GIVEN_UP)?;
    // If another thread holds the lock, this thread checks the counter at its next anchor.
    let (count, nanos) = CALIBRATOR.try_lock().ok()?.base?;
    Some(anchor(count, nanos, count, |_, _| rate))
}

impl Anchor {
    /// Whether the counter has lost time since this anchor. `nanos` is an `Instant` that was read
    /// before the counter showed `until`. The counter has lost time if this anchor and `until` give
    /// an earlier time than `nanos`.
    fn is_behind(self, nanos: u64, until: u64) -> bool {
        let counts = until.wrapping_sub(self.count);
        let passed = (u128::from(counts) * u128::from(self.rate)) >> 32;
        let went_back = counts > u64::MAX / 2;
        went_back || u128::from(self.nanos) + passed < u128::from(nanos)
    }
}

/// Makes an anchor. The counter showed `count` before the `Instant` was read, and `until` after.
fn anchor(count: u64, nanos: u64, until: u64, rate: impl FnOnce(u64, u64) -> u64) -> Anchor {
    let disturbed = until.wrapping_sub(count) >= UNDISTURBED;
    let rate = if disturbed { 0 } else { rate(count, nanos) };
    let window = if rate == 0 { 0 } else { WINDOW };
    Anchor { count, nanos: nanos + MARGIN, window, rate }
}

/// The rate. If it is not known yet, this pair of reads is used to measure it; 0 if that does not
/// suffice.
fn rate(count: u64, nanos: u64) -> u64 {
    let known = RATE.load(Ordering::Relaxed);
    if known == GIVEN_UP {
        return 0;
    }
    if known != 0 {
        return known;
    }
    // If another thread holds the lock, that thread measures.
    let measured = CALIBRATOR.try_lock().ok().and_then(|mut c| c.measure(count, nanos));
    let Some(measured) = measured else { return 0 };
    // Fails if another thread has stored a rate, or has given the counter up.
    match RATE.compare_exchange(0, measured, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => measured,
        Err(_) => 0,
    }
}

/// Measures the rate until two measurements in a row agree.
struct Calibrator {
    base: Option<(u64, u64)>,
    last: Option<u64>,
}

impl Calibrator {
    /// The rate to count with, if this pair of reads completes the measurement.
    fn measure(&mut self, count: u64, nanos: u64) -> Option<u64> {
        let (base_count, base_nanos) = *self.base.get_or_insert((count, nanos));
        let passed = nanos.saturating_sub(base_nanos);
        if passed < *CALIBRATION.start() {
            return None;
        }
        self.base = Some((count, nanos));
        let measured = rate_over(passed, count.wrapping_sub(base_count));
        let measured = measured.filter(|_| CALIBRATION.contains(&passed));
        let last = std::mem::replace(&mut self.last, measured)?;
        measured.filter(|rate| rate.abs_diff(last) < last / 100)
    }
}

/// The rate to count with, if `counts` were counted in `nanos`. `None` if that is not plausible.
fn rate_over(nanos: u64, counts: u64) -> Option<u64> {
    let exact = (u128::from(nanos) << 32).checked_div(u128::from(counts))?;
    RATES.contains(&exact).then(|| (exact * 13 / 10) as u64)
}

#[cfg(all(test, not(loom)))]
mod tests;
