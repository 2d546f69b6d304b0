//! How much goes in one store call: as much as takes a moment.

use std::time::Duration;

/// The number of jobs for one call. It follows the time that the last call took, so that no call holds
/// locks or keeps others waiting for long, however slow the store is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    size: usize,
    most: usize,
}

impl Batch {
    /// A call that takes longer than twice this was too large, and one that takes less than half of it
    /// may be larger.
    const MOMENT: Duration = Duration::from_millis(100);

    pub(crate) const fn new(most: usize) -> Self {
        Self { size: most, most }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Notes how long a call for `jobs` jobs took.
    pub(crate) fn took(&mut self, jobs: usize, time: Duration) {
        if time > 2 * Self::MOMENT {
            self.size = (self.size / 2).max(1);
        } else if jobs >= self.size && time < Self::MOMENT / 2 {
            self.size = (self.size * 2).min(self.most);
        }
    }

    /// A call took too long for an answer.
    pub(crate) fn failed(&mut self) {
        self.size = (self.size / 8).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_batch_shrinks_while_calls_are_slow_and_grows_again() {
        let mut batch = Batch::new(1_000);
        batch.took(1_000, ms(150));
        assert_eq!(batch.size(), 1_000);
        batch.took(1_000, ms(300));
        assert_eq!(batch.size(), 500);
        batch.failed();
        assert_eq!(batch.size(), 62);
        (0..20).for_each(|_| batch.failed());
        assert_eq!(batch.size(), 1);
        batch.took(0, ms(1)); // says nothing of a full one
        assert_eq!(batch.size(), 1);
        (0..20).for_each(|_| batch.took(batch.size(), ms(1)));
        assert_eq!(batch.size(), 1_000);
    }
}
