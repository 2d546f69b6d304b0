//! `DelayQueue`: values that each come out at their own deadline.

use super::sleep::Sleep;
use crate::timer::HashedWheelTimer;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// A queue from which each value comes out at its deadline, the earliest first. Values with the same
/// deadline come out in the order of their insertion.
///
/// One task owns the queue and awaits [`next`](Self::next). The queue has one timeout in the timer for
/// any number of values. So values need not be `Send`, and an insertion takes no lock. Insertion, reset
/// and removal are O(log n). Memory is proportional to the number of values in the queue.
///
/// A call that moves the earliest deadline also moves the wake-up of a task that has polled the queue. If
/// the call makes a value due, or empties the queue, it wakes that task.
///
/// With the feature `stream`, it is a stream. It ends when the queue is empty, and goes on after an
/// insertion.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), wheelwork::BuildError> {
/// use wheelwork::{HashedWheelTimer, future::DelayQueue};
///
/// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
/// let mut sessions = DelayQueue::new(&timer);
/// let anna = sessions.insert("anna", Duration::from_millis(2));
/// let bert = sessions.insert("bert", Duration::from_millis(4));
/// let carl = sessions.insert("carl", Duration::from_millis(6));
///
/// assert!(sessions.reset(anna, Duration::from_millis(8))); // anna was active
/// assert_eq!(sessions.remove(bert), Some("bert"));         // bert has left
/// while let Some(expired) = sessions.next().await {
///     println!("the session of {} has expired", expired.value);
/// }
/// assert_eq!(sessions.deadline(carl), None);
/// # Ok(())
/// # }
/// ```
pub struct DelayQueue<T> {
    values: BTreeMap<DelayKey, (Instant, T)>,
    /// The keys of all values by deadline.
    order: BTreeSet<(Instant, DelayKey)>,
    last_key: u64,
    /// Ends at the earliest deadline. If the queue is empty, no task waits for it.
    sleep: Sleep,
}

/// The key of a value in a [`DelayQueue`]. After its value has left the queue, it finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DelayKey(u64);

/// A value that has left a [`DelayQueue`].
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), wheelwork::BuildError> {
/// use wheelwork::future::{DelayQueue, Delayed};
///
/// # let timer = wheelwork::HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
/// let mut queue = DelayQueue::new(&timer);
/// let anna = queue.insert("anna", Duration::from_millis(1));
/// let Some(Delayed { value, key, .. }) = queue.next().await else { panic!("it has a value") };
/// assert_eq!((value, key), ("anna", anna));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delayed<T> {
    /// The value.
    pub value: T,
    /// The key that its insertion returned.
    pub key: DelayKey,
    /// The instant at which it was due.
    pub deadline: Instant,
}

impl<T> DelayQueue<T> {
    /// An empty queue on a timer. It allocates nothing.
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn new(timer: &HashedWheelTimer) -> Self {
        let sleep = timer.sleep_until(timer.started_at());
        Self { values: BTreeMap::new(), order: BTreeSet::new(), last_key: 0, sleep }
    }

    /// Inserts a value that comes out `delay` from now.
    pub fn insert(&mut self, value: T, delay: Duration) -> DelayKey {
        self.insert_at(value, self.sleep.timer().deadline_after(delay))
    }

    /// Inserts a value that comes out at an instant.
    pub fn insert_at(&mut self, value: T, deadline: Instant) -> DelayKey {
        self.last_key += 1;
        let key = DelayKey(self.last_key);
        self.values.insert(key, (deadline, value));
        self.order.insert((deadline, key));
        self.follow_earliest();
        key
    }

    /// Moves the deadline of a value to `delay` from now. False if it has left the queue.
    pub fn reset(&mut self, key: DelayKey, delay: Duration) -> bool {
        self.reset_at(key, self.sleep.timer().deadline_after(delay))
    }

    /// Moves the deadline of a value to an instant. False if it has left the queue.
    pub fn reset_at(&mut self, key: DelayKey, deadline: Instant) -> bool {
        let Some((present, _)) = self.values.get_mut(&key) else { return false };
        self.order.remove(&(*present, key));
        *present = deadline;
        self.order.insert((deadline, key));
        self.follow_earliest();
        true
    }

    /// Takes a value out. `None` if it has left the queue.
    pub fn remove(&mut self, key: DelayKey) -> Option<T> {
        let (deadline, value) = self.values.remove(&key)?;
        self.order.remove(&(deadline, key));
        self.follow_earliest();
        Some(value)
    }

    /// Takes all values out, the earliest first.
    pub fn drain(&mut self) -> Vec<Delayed<T>> {
        let order = std::mem::take(&mut self.order);
        let drained = order.into_iter().filter_map(|place| self.take(place)).collect();
        self.follow_earliest();
        drained
    }

    /// The deadline of a value. `None` if it has left the queue.
    pub fn deadline(&self, key: DelayKey) -> Option<Instant> {
        self.values.get(&key).map(|&(deadline, _)| deadline)
    }

    /// A value in the queue.
    pub fn get(&self, key: DelayKey) -> Option<&T> {
        self.values.get(&key).map(|(_, value)| value)
    }

    /// The number of values, including those that are due and have not come out yet.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether the queue has no value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Waits for the next value. Returns `None` if the queue is empty, or if the timer is stopped and no
    /// value is due. After a stop, [`drain`](Self::drain) returns the remaining values.
    ///
    /// If the future is dropped before it is ready, no value is lost.
    pub async fn next(&mut self) -> Option<Delayed<T>> {
        poll_fn(|cx| self.poll_next_due(cx)).await
    }

    /// Polls for the next value, like [`next`](Self::next).
    pub fn poll_next_due(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delayed<T>>> {
        if self.is_empty() {
            return Poll::Ready(None);
        }
        ready!(self.sleep.poll_ready(cx));
        if !self.sleep.is_elapsed() {
            return Poll::Ready(None); // the timer is stopped
        }
        let next = self.order.pop_first().and_then(|place| self.take(place));
        self.follow_earliest();
        Poll::Ready(next)
    }

    /// Whether the last poll found that the timer was stopped before the earliest deadline.
    pub fn was_stopped(&self) -> bool {
        self.sleep.was_stopped()
    }

    /// Takes out a value whose place in the order is gone.
    fn take(&mut self, (deadline, key): (Instant, DelayKey)) -> Option<Delayed<T>> {
        let (_, value) = self.values.remove(&key)?;
        Some(Delayed { value, key, deadline })
    }

    /// Sets the sleep to the earliest deadline. If the queue is empty, wakes the waiting task, whose next
    /// poll returns `None`.
    fn follow_earliest(&mut self) {
        match self.order.first() {
            Some(&(earliest, _)) if earliest == self.sleep.deadline() => {}
            Some(&(earliest, _)) => self.sleep.reset(earliest),
            None => self.sleep.wake(),
        }
    }
}

/// No value is ever pinned.
impl<T> Unpin for DelayQueue<T> {}

#[cfg(feature = "stream")]
impl<T> futures_core::Stream for DelayQueue<T> {
    type Item = Delayed<T>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Delayed<T>>> {
        self.poll_next_due(cx)
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue")
            .field("len", &self.len())
            .field("sleep", &self.sleep)
            .finish_non_exhaustive()
    }
}
