//! How much in the wheel is dead, and when it is worth a walk over the wheel.

/// Dead wheel entries of a shard that are not worth a walk over the wheel, if that is small.
pub(super) const STALE_ALLOWED: usize = 4096;

/// The records of a shard that are in the wheel and stand for nothing any more.
pub(super) struct Stale {
    count: usize,
    /// Those of them that came since the present walk over the wheel began.
    since_walk: usize,
    allowed: usize,
    walk_asked: bool,
}

impl Stale {
    /// A walk passes all buckets, so that fewer dead records than those are not worth one.
    pub(super) fn new(buckets: usize) -> Self {
        Self { count: 0, since_walk: 0, allowed: STALE_ALLOWED.max(buckets), walk_asked: false }
    }

    /// A record in the wheel has died.
    #[inline]
    pub(super) fn left_behind(&mut self) {
        self.count += 1;
        self.since_walk += 1;
    }

    /// Such a record has come out of the wheel.
    pub(super) fn found(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// True the first time that more is dead than `live` and a constant.
    #[inline]
    pub(super) fn wants_walk(&mut self, live: usize) -> bool {
        self.count > self.allowed + live && !std::mem::replace(&mut self.walk_asked, true)
    }

    pub(super) fn walk_asked(&self) -> bool {
        self.walk_asked
    }

    pub(super) fn begin_walk(&mut self) {
        self.since_walk = 0;
    }

    /// What was dead when the walk began is gone. True if so much has died meanwhile that it is
    /// worth another.
    pub(super) fn end_walk(&mut self, live: usize) -> bool {
        self.count = self.count.min(self.since_walk);
        self.walk_asked = false;
        self.wants_walk(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_come_out_of_the_wheel_does_not_count() {
        let mut stale = Stale::new(1);
        (0..2 * STALE_ALLOWED).for_each(|_| stale.left_behind());
        (0..STALE_ALLOWED).for_each(|_| stale.found());
        assert!(!stale.wants_walk(0) && !stale.walk_asked());
        stale.left_behind();
        assert!(!stale.wants_walk(1), "not more than is alive and the constant");
        assert!(stale.wants_walk(0) && stale.walk_asked());
        assert!(!stale.wants_walk(0), "asked once");
    }
}
