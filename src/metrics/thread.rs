//! A snapshot of each arena: who schedules, and how much.

/// A snapshot of one arena of a timer, from [`HashedWheelTimer::thread_metrics`].
///
/// An arena has the timeouts that one thread schedules. A thread that ends leaves its arena, with its
/// counts, to the next thread that schedules for the first time. An idle arena is dropped, about a second
/// after the last of its timeouts and their handles. Its counts then belong to no arena.
///
/// # Examples
///
/// Which thread schedules most?
///
/// ```
/// # use std::time::Duration;
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// # timer.new_timeout(|| (), Duration::from_secs(30))?;
/// let arenas = timer.thread_metrics();
/// if let Some(busiest) = arenas.iter().max_by_key(|arena| arena.scheduled) {
///     let name = busiest.thread.as_deref().unwrap_or("a thread that has ended");
///     println!("{name}: {} scheduled, {} slots", busiest.scheduled, busiest.slots);
/// }
/// assert_eq!(arenas.iter().map(|arena| arena.scheduled).sum::<u64>(), timer.metrics().scheduled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`HashedWheelTimer::thread_metrics`]: crate::HashedWheelTimer::thread_metrics
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadMetrics {
    /// The name of the thread that has the arena. Empty if the thread has no name. `None` if the thread
    /// has ended.
    pub thread: Option<String>,
    /// Timeouts that were put into this arena, including those that were refused afterwards because the timer
    /// was closed at that moment. Apart from these, and from arenas that were dropped, the sum is
    /// [`Metrics::scheduled`](crate::Metrics).
    pub scheduled: u64,
    /// Slots for timeouts, both used and free.
    pub slots: u64,
}
