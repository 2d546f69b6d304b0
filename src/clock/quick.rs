//! The time for producers: quicker than `Instant::now`, and never behind it.
//!
//! A deadline must not be early, so a producer may take the present for later than it is, but not
//! for earlier. Each thread keeps an *anchor*: an `Instant`, and the processor's counter read just
//! before it. For the next 65,536 counts (some 30 µs) the present is the anchor plus what has been
//! counted since, at a rate that is a quarter too fast. Then the thread takes a new anchor.
//!
//! **Why it never falls behind `Instant`.** The kernel derives its monotonic clock from the same
//! counter. It may run it faster to follow the wall clock, by 11 % at most (`maxadj` in
//! kernel/time/timekeeping.c), so within 22 % of any rate it ran at before: a quarter covers that
//! without an assumption about how long the process runs, since every anchor starts anew. A counter
//! that jumps (a machine that was suspended) leaves the window, and a new anchor is taken. The
//! processor may read the counter a few instructions early; `MARGIN` is for that.
//!
//! **The price** is at most 8 µs of lateness, and nothing where timeouts are rare: then each takes
//! a new anchor, which is as exact as `Instant::now`. A thread never sees this clock go back, so
//! equal delays keep the order in which they were scheduled.

use super::counter;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts for which an anchor holds.
const WINDOW: u64 = 1 << 16;

/// Nanoseconds by which a read of the counter could come too early.
const MARGIN: u64 = 100;

/// The rate is measured over at least this long.
const CALIBRATION: Duration = Duration::from_millis(10);

/// A pair of reads is measured with only if it took no longer: nothing has come in between.
const UNDISTURBED: u64 = 1 << 13;

/// Nanoseconds in a count, plausible ones, with 32 binary places: 100 MHz to 20 GHz.
const RATES: std::ops::RangeInclusive<u128> = (1 << 32) / 20..=10 << 32;

/// Nanoseconds in a count, a quarter too many, with 32 binary places; 0 while it is not known.
/// Relaxed: the number is all there is.
static RATE: AtomicU64 = AtomicU64::new(0);

/// What the process counts from. `None` in the counter's place: it is of no use here.
static ORIGIN: OnceLock<(Instant, Option<u64>)> = OnceLock::new();

#[derive(Clone, Copy)]
struct Anchor {
    count: u64,
    nanos: u64,
    /// Counts for which it holds: 0 while there is no rate.
    window: u64,
    rate: u64,
}

thread_local! {
    static ANCHOR: Cell<Anchor> = const { Cell::new(Anchor { count: 0, nanos: 0, window: 0, rate: 0 }) };
    /// The latest time that this thread was told.
    static LATEST: Cell<u64> = const { Cell::new(0) };
}

/// Sets the process's origin. Instants before it cannot be told apart.
pub(super) fn start() {
    origin();
}

/// Nanoseconds between the process's origin and `instant`.
pub(super) fn nanos_at(instant: Instant) -> u64 {
    crate::tick::nanos(instant.saturating_duration_since(origin().0))
}

/// Nanoseconds since the process's origin: not less than `nanos_at(Instant::now())`.
#[inline]
pub(super) fn now() -> u64 {
    let anchor = ANCHOR.get();
    let since = counter::read().wrapping_sub(anchor.count);
    let now = if since < anchor.window {
        anchor.nanos + ((since * anchor.rate) >> 32)
    } else {
        take_anchor()
    };
    let now = now.max(LATEST.get());
    LATEST.set(now);
    now
}

fn origin() -> &'static (Instant, Option<u64>) {
    ORIGIN.get_or_init(|| {
        let usable = counter::drives_the_system_clock();
        let instant = Instant::now();
        (instant, usable.then(counter::read))
    })
}

#[cold]
fn take_anchor() -> u64 {
    let Some(first) = origin().1 else { return nanos_at(Instant::now()) };
    let count = counter::read();
    let nanos = nanos_at(Instant::now());
    let mut rate = RATE.load(Ordering::Relaxed);
    if rate == 0 && nanos >= CALIBRATION.as_nanos() as u64 {
        if counter::read().wrapping_sub(count) < UNDISTURBED {
            rate = rate_over(nanos, count.wrapping_sub(first)).unwrap_or(0);
            RATE.store(rate, Ordering::Relaxed);
        }
    }
    let window = if rate == 0 { 0 } else { WINDOW };
    ANCHOR.set(Anchor { count, nanos: nanos + MARGIN, window, rate });
    nanos
}

/// The rate to count with, if it took `counts` to pass `nanos`; `None` if that is absurd.
fn rate_over(nanos: u64, counts: u64) -> Option<u64> {
    let exact = (u128::from(nanos) << 32).checked_div(u128::from(counts))?;
    RATES.contains(&exact).then(|| (exact + exact / 4) as u64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    /// Reads the quick clock between two reads of `Instant`, in bursts with pauses that leave the
    /// window, until the rate is known and for 50 ms more. Returns the reads made with an anchor.
    fn compare() -> usize {
        start();
        let begin = Instant::now();
        let (mut last, mut anchored) = (0, 0);
        while begin.elapsed() < CALIBRATION + Duration::from_millis(50) {
            for _ in 0..200 {
                let before = Instant::now();
                let quick = now();
                assert!(quick >= nanos_at(before), "behind by {}", nanos_at(before) - quick);
                assert!(quick >= last, "it went back");
                last = quick;
                anchored += usize::from(ANCHOR.get().window > 0);
            }
            thread::sleep(Duration::from_micros(200));
        }
        anchored
    }

    #[test]
    fn it_is_never_behind_the_system_clock_and_never_goes_back() {
        let anchored: usize = thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(compare));
            threads.map(|thread| thread.join().unwrap()).iter().sum()
        });
        assert_eq!(anchored > 0, counter::drives_the_system_clock());
    }

    #[test]
    fn the_rate_is_a_quarter_too_fast_and_absurd_ones_are_refused() {
        let three_gigahertz = rate_over(1_000_000, 3_000_000).unwrap();
        let counted = (three_gigahertz * 12_000) >> 32;
        assert!((4_999..=5_000).contains(&counted), "{counted}");
        assert_eq!(rate_over(1_000_000, 0), None);
        assert_eq!(rate_over(1_000_000, 10), None);
        assert_eq!(rate_over(1, 1_000_000), None);
        let fastest = *RATES.end() as u64 / 4 * 5;
        assert!(WINDOW.checked_mul(fastest).is_some(), "no product overflows");
    }

    /// A thread that sees the counter jump, either way, takes a new anchor.
    #[test]
    fn a_counter_that_jumps_is_not_believed() {
        start();
        for jump in [1 << 40, (1u64 << 40).wrapping_neg(), WINDOW] {
            let count = counter::read().wrapping_add(jump);
            ANCHOR.set(Anchor { count, nanos: u64::MAX / 2, window: WINDOW, rate: 1 << 32 });
            let before = nanos_at(Instant::now());
            assert!((before..u64::MAX / 4).contains(&now()));
        }
    }
}
