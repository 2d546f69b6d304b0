//! A snapshot of each heap: who schedules, and how much.

use super::chunk::SLOTS;
use super::heap::Heap;

/// A snapshot of one heap of a timer, from [`HashedWheelTimer::heap_metrics`].
///
/// A heap has the timeouts that one thread schedules. A thread that ends leaves its heap, with its
/// counts, to the next thread that schedules for the first time. An idle heap is dropped, about a second
/// after the last of its timeouts and their handles. Its counts then belong to no heap.
///
/// # Examples
///
/// Which thread schedules most?
///
/// ```
/// # use std::time::Duration;
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// # timer.new_timeout(|| (), Duration::from_secs(30))?;
/// let heaps = timer.heap_metrics();
/// if let Some(busiest) = heaps.iter().max_by_key(|heap| heap.scheduled) {
///     let name = busiest.thread.as_deref().unwrap_or("a thread that has ended");
///     println!("{name}: {} scheduled, {} slots", busiest.scheduled, busiest.slots);
/// }
/// assert_eq!(heaps.iter().map(|heap| heap.scheduled).sum::<u64>(), timer.metrics().scheduled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`HashedWheelTimer::heap_metrics`]: crate::HashedWheelTimer::heap_metrics
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapMetrics {
    /// The name of the thread that has the heap. Empty if the thread has no name. `None` if the thread
    /// has ended.
    pub thread: Option<String>,
    /// Timeouts that were put into this heap, including those that were refused afterwards because the timer
    /// was closed at that moment. Apart from these, and from heaps that were dropped, the sum is
    /// [`Metrics::scheduled`](crate::Metrics).
    pub scheduled: u64,
    /// Slots for timeouts, both used and free.
    pub slots: u64,
}

impl<P> Heap<P> {
    /// A thread enters, or leaves with `None`. Models do not name threads: no race depends on a name.
    pub(super) fn set_thread(&self, name: Option<String>) {
        if cfg!(not(any(loom, shuttle))) {
            *self.thread.lock() = name;
        }
    }

    pub(super) fn metrics(&self) -> HeapMetrics {
        HeapMetrics {
            thread: self.thread.lock().clone(),
            scheduled: self.tally.scheduled.get(),
            slots: (self.chunks.lock().len() * SLOTS) as u64,
        }
    }
}
