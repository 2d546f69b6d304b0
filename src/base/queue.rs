//! A queue that never refuses, and allocates only while it is long.
//!
//! Its first values lie in a ring, which is made once. Values beyond the ring lie in blocks, which the thread that
//! pushes allocates and the thread that pops frees. An allocator may give each thread a pool with a lock: then
//! the free waits for that lock, which the other thread holds while the system gives it new memory. With glibc's,
//! a worker that took in 100 million timeouts stood for up to 110 ms at one entry; with the ring, and with
//! other allocators, it does not.
//!
//! A value beyond the ring may be overtaken by later ones.

use super::sync::{ArrayQueue, SegQueue};

/// See the head.
pub(crate) struct Queue<T> {
    ring: ArrayQueue<T>,
    beyond: SegQueue<T>,
}

impl<T> Queue<T> {
    /// A queue with a ring of this many values.
    pub(crate) fn new(ring: usize) -> Self {
        Self { ring: ArrayQueue::new(ring), beyond: SegQueue::new() }
    }

    pub(crate) fn push(&self, value: T) {
        if let Err(value) = self.ring.push(value) {
            self.beyond.push(value);
        }
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.ring.pop().or_else(|| self.beyond.pop())
    }

    /// The values that the queue has now. Those that are pushed meanwhile take the place of none of them.
    pub(crate) fn drain(&self) -> impl Iterator<Item = T> + '_ {
        // Each part by its own length: else values that come into the ring would be taken in place of those beyond.
        let ring = (0..self.ring.len()).map_while(|_| self.ring.pop());
        let beyond = (0..self.beyond.len()).map_while(|_| self.beyond.pop());
        ring.chain(beyond)
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.beyond.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.beyond.is_empty()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The worker relies on it before it sleeps.
    #[test]
    fn rule_09_a_drain_takes_all_that_was_there() {
        let queue = Queue::new(2);
        (0..5).for_each(|value| queue.push(value));
        let taken: Vec<i32> = queue.drain().inspect(|_| queue.push(9)).collect();
        assert!((0..5).all(|value| taken.contains(&value)), "{taken:?}");
    }

    #[test]
    fn values_beyond_the_ring_come_too() {
        let queue = Queue::new(2);
        (0..5).for_each(|value| queue.push(value));
        assert_eq!(queue.len(), 5);
        assert_eq!(queue.pop(), Some(0));
        queue.push(5);
        let mut rest: Vec<i32> = std::iter::from_fn(|| queue.pop()).collect();
        rest.sort_unstable();
        assert_eq!(rest, [1, 2, 3, 4, 5]);
        assert!(queue.is_empty());
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::base::sync::thread;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};

    /// More values than the ring has places, while they are drained.
    #[test]
    fn rule_09_a_drain_takes_all_that_was_there() {
        loom::model(|| {
            let queue = Arc::new(Queue::new(1));
            let pushed = Arc::new(AtomicUsize::new(0));
            queue.push(0);
            let (to, done) = (queue.clone(), pushed.clone());
            let producer = thread::spawn(move || {
                for value in 1..=3 {
                    to.push(value);
                    done.store(value, Ordering::Release); // pairs with the load below
                }
            });
            let before = pushed.load(Ordering::Acquire);
            let mut taken: Vec<usize> = queue.drain().collect();
            assert!((0..=before).all(|value| taken.contains(&value)), "{before}: {taken:?}");
            producer.join().unwrap();
            taken.extend(queue.drain());
            taken.sort_unstable();
            assert_eq!(taken, [0, 1, 2, 3]);
        });
    }
}
