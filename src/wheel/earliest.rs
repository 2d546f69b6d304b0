//! The earliest tick of each bucket, and the earliest of all.
//!
//! It is a tournament tree. With n buckets (rounded up to a power of two), leaf n + i belongs to
//! bucket i. Each inner node holds the lesser value of its two children, so node 1 holds the least
//! of all. Reading the least is O(1). Lowering a leaf stops at the first ancestor that is already
//! as low; raising one is O(log n).
//!
//! A leaf may be too low, because its earliest timeout was cancelled. It is never too high. So the
//! timer may check a bucket needlessly, but it is never late.

/// The value of an empty bucket.
pub(super) const NOTHING: u64 = u64::MAX;

pub(super) struct Earliest {
    nodes: Vec<u64>,
}

impl Earliest {
    pub(super) fn new(buckets: usize) -> Result<Self, std::collections::TryReserveError> {
        let leaves = buckets.next_power_of_two();
        let mut nodes = Vec::new();
        nodes.try_reserve_exact(2 * leaves)?;
        nodes.resize(2 * leaves, NOTHING);
        Ok(Self { nodes })
    }

    #[inline]
    pub(super) fn least(&self) -> u64 {
        self.nodes[1]
    }

    /// Lowers a bucket's earliest tick to `tick`, if that is less. Returns the value before.
    #[inline]
    pub(super) fn lower(&mut self, bucket: usize, tick: u64) -> u64 {
        let mut node = self.nodes.len() / 2 + bucket;
        let before = self.nodes[node];
        while node > 0 && self.nodes[node] > tick {
            self.nodes[node] = tick;
            node /= 2;
        }
        before
    }

    /// Sets a bucket's earliest tick.
    pub(super) fn set(&mut self, bucket: usize, tick: u64) {
        let mut node = self.nodes.len() / 2 + bucket;
        self.nodes[node] = tick;
        while node > 1 {
            node /= 2;
            let least = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if self.nodes[node] == least {
                break;
            }
            self.nodes[node] = least;
        }
    }
}

#[cfg(test)]
mod tests;
