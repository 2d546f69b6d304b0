//! The silence of a watched thing, mostly without the stalls of the worker.
//!
//! Every quarter of its limit, the worker looks at a silent thing. After a stall, this look comes late. So the
//! time between two looks counts as a quarter and a tick at most, however long it was. A stall then counts no more
//! than that, and a healthy thing has the rest of its limit to feed.
//!
//! However late each look comes, the silence is still reported, only later.

use crate::time::tick::nanos;
use std::time::Duration;

/// Times are nanoseconds since the timer's origin.
pub(super) struct Silence {
    limit: u64,
    /// From one look to the next.
    quarter: u64,
    /// The most that counts from one look to the next, which comes at the begin of a tick.
    most: u64,
    last_look: u64,
    /// When the silence began or was last reported, later by the stalls since then.
    from: u64,
}

impl Silence {
    pub(super) fn new(limit: Duration, tick: Duration) -> Self {
        let quarter = nanos(limit / 4);
        Self {
            limit: nanos(limit).max(1),
            quarter,
            most: quarter.saturating_add(nanos(tick)),
            last_look: 0,
            from: 0,
        }
    }

    /// A look at a thing that was last fed at `since`. Returns whether the limit has passed.
    pub(super) fn look(&mut self, since: u64, now: u64) -> bool {
        let unseen = now.saturating_sub(self.last_look.max(since));
        self.last_look = now;
        self.from = self.from.max(since).saturating_add(unseen.saturating_sub(self.most));
        let has_passed = now.saturating_sub(self.from) >= self.limit;
        if has_passed {
            self.from = now;
        }
        has_passed
    }

    /// The next look comes a quarter after this: a quarter after the last one, or sooner, at the limit.
    pub(super) fn next_look_from(&self) -> u64 {
        self.from.saturating_add(self.limit - self.quarter).min(self.last_look)
    }
}
