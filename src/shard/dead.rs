//! How much in the wheel is dead, and when it is worth a walk over the wheel.

/// Dead wheel entries of a shard that are not worth a walk over the wheel, if that is small.
pub(super) const DEAD_ALLOWED: usize = 4096;

/// The records of a shard that are in the wheel and stand for nothing any more.
pub(super) struct DeadEntries {
    count: usize,
    /// Those of them that came since the present walk over the wheel began.
    since_sweep: usize,
    allowed: usize,
    sweep_wanted: bool,
}

impl DeadEntries {
    /// A walk passes all buckets, so that fewer dead records than those are not worth one.
    pub(super) fn new(buckets: usize) -> Self {
        Self { count: 0, since_sweep: 0, allowed: DEAD_ALLOWED.max(buckets), sweep_wanted: false }
    }

    /// A record in the wheel has died.
    #[inline]
    pub(super) fn died(&mut self) {
        self.count += 1;
        self.since_sweep += 1;
    }

    /// Such a record has come out of the wheel.
    pub(super) fn found(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// True the first time that more is dead than `live` and a constant.
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

    /// What was dead when the walk began is gone. True if so much has died meanwhile that it is
    /// worth another.
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
