//! The count of dead entries in the wheel, and when a sweep is worth its cost.
//!
//! A record in the wheel is *dead* once it no longer stands for a timeout: the timeout was
//! cancelled, or has another record. A *sweep* goes through the whole wheel, over several passes of
//! the worker, and drops the dead records. A shard wants a sweep when its dead records outnumber
//! its live timeouts by more than a constant. So the memory of dead records stays proportional to
//! the live timeouts.

/// Dead records of a shard that are not worth a sweep, in a wheel with fewer buckets than this.
pub(super) const DEAD_ALLOWED: usize = 4096;

/// Counts the dead records of a shard in the wheel.
pub(super) struct DeadEntries {
    count: usize,
    /// The number that died since the last sweep began.
    since_sweep: usize,
    /// The constant: this many dead records are never worth a sweep.
    allowed: usize,
    sweep_wanted: bool,
}

impl DeadEntries {
    /// A sweep visits all buckets, so fewer dead records than buckets are not worth one.
    pub(super) fn new(buckets: usize) -> Self {
        Self { count: 0, since_sweep: 0, allowed: DEAD_ALLOWED.max(buckets), sweep_wanted: false }
    }

    /// Counts a record in the wheel that has died.
    #[inline]
    pub(super) fn died(&mut self) {
        self.count += 1;
        self.since_sweep += 1;
    }

    /// Counts a dead record that has left the wheel.
    pub(super) fn found(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Asks for a sweep if more records are dead than `live` plus the constant. True only for the
    /// call that asks first.
    #[inline]
    pub(super) fn wants_sweep(&mut self, live: usize) -> bool {
        self.count > self.allowed + live && !std::mem::replace(&mut self.sweep_wanted, true)
    }

    pub(super) fn sweep_wanted(&self) -> bool {
        self.sweep_wanted
    }

    pub(super) fn begin_sweep(&mut self) {
        self.since_sweep = 0;
    }

    /// Ends a sweep: the records that were dead when it began are gone. True if enough have died
    /// since to ask for another sweep.
    pub(super) fn end_sweep(&mut self, live: usize) -> bool {
        self.count = self.count.min(self.since_sweep);
        self.sweep_wanted = false;
        self.wants_sweep(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_come_out_of_the_wheel_does_not_count() {
        let mut dead = DeadEntries::new(1);
        (0..2 * DEAD_ALLOWED).for_each(|_| dead.died());
        (0..DEAD_ALLOWED).for_each(|_| dead.found());
        assert!(!dead.wants_sweep(0) && !dead.sweep_wanted());
        dead.died();
        assert!(!dead.wants_sweep(1), "not more than is alive and the constant");
        assert!(dead.wants_sweep(0) && dead.sweep_wanted());
        assert!(!dead.wants_sweep(0), "asked once");
    }
}
