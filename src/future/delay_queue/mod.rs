//! `DelayQueue`: values that each come out at their own deadline.
//!
//! A value is *new* after its insertion. The next poll at the latest makes it *near* or *distant* (see `order`). The
//! distant ones lie in a wheel, whose tick is the timer's. They are in no order within a tick. The near ones
//! are ordered by deadline.
//!
//! Rules:
//!
//! 1. **During a poll, all values that are due up to `reached` are near.** So the first near one comes out
//!    next. A poll begins by filing the new ones, and moves the wheel's values to the near ones when their
//!    tick has begun.
//! 2. **The sleep ends at `wake_at`.** If a task waits, no value is due before `wake_at`.
//! 3. **A removal or a later deadline may leave an entry in the wheel.** Its tick still bounds
//!    `wake_at`. The task is then woken at that tick, finds nothing due, and waits for the next entry.
//! 4. **A queue that has been small since it was empty has no wheel.** All of its values are near or new, so it
//!    never wakes the task too early, and costs little memory.

mod order;

use self::order::Order;
use super::sleep::Sleep;
use crate::timer::HashedWheelTimer;
use crate::wheel::Key;
use crate::wheel::slab::{MOST_CHUNKS, Slab};
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// A queue from which each value comes out at its deadline, the earliest first. Values with the same
/// deadline come out in the order of their insertion.
///
/// One task owns the queue and awaits [`next`](Self::next). The queue has one timeout in the timer for
/// any number of values. So values need not be `Send`, and an insertion takes no lock. Memory is
/// proportional to the number of values in the queue. Of a larger number in the past, half a byte for each value stays.
///
/// Insertion, reset and removal are O(1), amortised. Only among the k values that are due in the current
/// tick of the timer, and in a queue of at most 64 values, they are O(log k). A value comes out in
/// O(log k). After a [`peek`](Self::peek), the values up to the tick of the first one count like those of the
/// current tick.
///
/// A call that makes a value the earliest also moves the wake-up of a task that has polled the queue. If
/// the call makes a value due, or empties the queue, it wakes that task. Once a queue has had more than 64
/// values, and until it is empty, each removal or later deadline may wake the task once too early. The task
/// finds nothing due and continues to wait.
///
/// Deadlines count in nanoseconds from the timer's [start](HashedWheelTimer::started_at). An earlier instant
/// counts as the start. A deadline more than 584 years after the start never comes.
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
    values: Slab<Entry<T>>,
    /// The number of insertions.
    insertions: u64,
    order: Order,
    /// A time that the clock has reached.
    reached: u64,
    wake_at: u64,
    /// If the queue is empty, no task waits for it.
    sleep: Sleep,
    stopped: bool,
}

struct Entry<T> {
    /// The number of the insertion. Never used again, so an old key finds nothing.
    sequence: u64,
    /// In nanoseconds after the timer's start.
    deadline: u64,
    value: T,
}

impl<T> Entry<T> {
    fn key(&self, slot: Key) -> DelayKey {
        DelayKey { sequence: self.sequence, index: slot.index }
    }
}

/// The key of a value in a [`DelayQueue`]. After its value has left the queue, it finds nothing. Keys are
/// ordered by insertion.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// use std::collections::HashMap;
/// use wheelwork::future::{DelayKey, DelayQueue};
///
/// let mut expiry = DelayQueue::new(&timer);
/// let mut sessions: HashMap<&str, DelayKey> = HashMap::new();
/// let minute = Duration::from_secs(60);
/// sessions.insert("ada", expiry.insert("ada", minute));
/// assert!(expiry.reset(sessions["ada"], minute)); // a request has come
/// assert!(expiry.remove(sessions["ada"]).is_some()); // a logout
/// assert!(expiry.remove(sessions["ada"]).is_none()); // the key finds nothing now
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DelayKey {
    sequence: u64,
    index: u32,
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        Self {
            values: Slab::with_limit(MOST_CHUNKS),
            insertions: 0,
            order: Order::new(timer.gate().scale),
            reached: 0,
            wake_at: 0,
            sleep: timer.sleep_until(timer.started_at()),
            stopped: false,
        }
    }

    /// Inserts a value that comes out `delay` from now.
    ///
    /// # Panics
    ///
    /// If the queue already has 2^32 - 64 values.
    pub fn insert(&mut self, value: T, delay: Duration) -> DelayKey {
        self.admit(value, self.deadline_after(delay))
    }

    /// Inserts a value that comes out at an instant.
    ///
    /// # Panics
    ///
    /// If the queue already has 2^32 - 64 values.
    pub fn insert_at(&mut self, value: T, deadline: Instant) -> DelayKey {
        self.admit(value, self.nanos_at(deadline))
    }

    /// Moves the deadline of a value to `delay` from now. False if it has left the queue.
    pub fn reset(&mut self, key: DelayKey, delay: Duration) -> bool {
        self.move_to(key, self.deadline_after(delay))
    }

    /// Moves the deadline of a value to an instant. False if it has left the queue.
    pub fn reset_at(&mut self, key: DelayKey, deadline: Instant) -> bool {
        self.move_to(key, self.nanos_at(deadline))
    }

    /// Takes a value out. `None` if it has left the queue.
    pub fn remove(&mut self, key: DelayKey) -> Option<T> {
        let Entry { deadline, value, .. } = self.values.remove(self.slot(key)?)?;
        self.order.remove_near(key, deadline);
        self.order.sweep_if_worth_it(&self.values);
        if self.is_empty() {
            self.order.clear();
            self.sleep.wake();
        } else if deadline == self.wake_at {
            self.follow_earliest();
        }
        Some(value)
    }

    /// Takes all values out, the earliest first.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let mut queue = wheelwork::future::DelayQueue::new(&timer);
    /// queue.insert("later", Duration::from_secs(60));
    /// queue.insert("sooner", Duration::from_secs(30));
    /// let values: Vec<_> = queue.drain().into_iter().map(|delayed| delayed.value).collect();
    /// assert_eq!(values, ["sooner", "later"]);
    /// assert!(queue.is_empty());
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn drain(&mut self) -> Vec<Delayed<T>> {
        let entries = self.values.iter().map(|(slot, entry)| (entry.deadline, entry.key(slot)));
        let mut keys: Vec<_> = entries.collect();
        keys.sort_unstable();
        let drained = keys.into_iter().filter_map(|(_, key)| self.take(key)).collect();
        self.order.clear();
        self.sleep.wake();
        drained
    }

    /// The deadline of a value. `None` if it has left the queue.
    pub fn deadline(&self, key: DelayKey) -> Option<Instant> {
        self.entry(key).map(|entry| self.instant_at(entry.deadline))
    }

    /// A value in the queue.
    pub fn get(&self, key: DelayKey) -> Option<&T> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The value that comes out next, with its key and its deadline. `None` if the queue is empty.
    ///
    /// In a queue of more than 64 values, this orders the values of the earliest tick, as a poll would do in that
    /// tick: O(k log k) for k values, and O(1) if nothing has changed since. Until that tick comes, a
    /// new value that is due before its end is ordered too, in O(log k).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let mut queue = wheelwork::future::DelayQueue::new(&timer);
    /// queue.insert("later", Duration::from_secs(60));
    /// let sooner = queue.insert("sooner", Duration::from_secs(30));
    /// let (key, deadline, value) = queue.peek().expect("it has two values");
    /// assert_eq!((key, *value), (sooner, "sooner"));
    /// assert_eq!(queue.next_deadline(), Some(deadline));
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn peek(&mut self) -> Option<(DelayKey, Instant, &T)> {
        self.file_new();
        self.order.find_first(&self.values);
        let key = self.order.first()?;
        let entry = self.entry(key)?;
        Some((key, self.instant_at(entry.deadline), &entry.value))
    }

    /// The deadline of the value that comes out next: that of [`peek`](Self::peek), at the same cost.
    pub fn next_deadline(&mut self) -> Option<Instant> {
        self.peek().map(|(_, deadline, _)| deadline)
    }

    /// All values, each with its key and its deadline, in no particular order.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let mut queue = wheelwork::future::DelayQueue::new(&timer);
    /// queue.insert("value", Duration::from_secs(60));
    /// assert!(queue.iter().all(|(key, _, &value)| queue.get(key) == Some(&value)));
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (DelayKey, Instant, &T)> {
        self.values
            .iter()
            .map(|(slot, entry)| (entry.key(slot), self.instant_at(entry.deadline), &entry.value))
    }

    /// The number of values, including those that are due and have not come out yet.
    pub fn len(&self) -> usize {
        self.values.used()
    }

    /// Whether the queue has no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the next value. Returns `None` if the queue is empty, or if the timer is stopped and no
    /// value is due. After a stop, [`drain`](Self::drain) returns the remaining values.
    ///
    /// After a `None`, the next call returns at once too. So a loop waits for something else then, such as an insertion.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, no value is lost.
    pub async fn next(&mut self) -> Option<Delayed<T>> {
        poll_fn(|cx| self.poll_next_due(cx)).await
    }

    /// Polls for the next value, like [`next`](Self::next).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use std::task::{Context, Poll};
    /// use wheelwork::future::DelayQueue;
    ///
    /// /// A part of a future that also polls a socket.
    /// fn poll_expired(queue: &mut DelayQueue<u64>, cx: &mut Context<'_>) {
    ///     while let Poll::Ready(Some(expired)) = queue.poll_next_due(cx) {
    ///         println!("session {} has expired", expired.value);
    ///     }
    /// }
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// # let mut queue = DelayQueue::new(&timer);
    /// # queue.insert(7, Duration::from_secs(60));
    /// # poll_expired(&mut queue, &mut Context::from_waker(std::task::Waker::noop()));
    /// # assert_eq!(queue.len(), 1);
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn poll_next_due(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delayed<T>>> {
        self.stopped = false;
        self.file_new();
        let mut next = self.take_due();
        while next.is_none() && !self.is_empty() {
            let now = self.sleep.gate().time.now_or_later();
            self.order.gather(&self.values, now);
            self.follow_earliest();
            ready!(self.sleep.poll_ready(cx));
            if !self.sleep.is_elapsed() {
                self.stopped = true;
                break;
            }
            self.reached = self.nanos_at(self.sleep.gate().time.now_instant()).max(self.wake_at);
            self.order.gather(&self.values, self.reached);
            next = self.take_due();
        }
        Poll::Ready(next)
    }

    /// Whether the last poll found that the timer was stopped before the earliest deadline.
    pub fn was_stopped(&self) -> bool {
        self.stopped
    }

    fn admit(&mut self, value: T, deadline: u64) -> DelayKey {
        self.make_room();
        self.insertions += 1;
        let entry = Entry { sequence: self.insertions, deadline, value };
        let (slot, token) = self.values.insert(entry).expect("fewer than 2^32 - 64 values");
        self.order.add(token);
        if deadline < self.wake_at {
            self.wake(deadline);
        }
        DelayKey { sequence: self.insertions, index: slot.index }
    }

    fn move_to(&mut self, key: DelayKey, deadline: u64) -> bool {
        self.make_room();
        let slot = self.slot(key);
        let Some(entry) = slot.and_then(|slot| self.values.get_mut(slot)) else { return false };
        let before = std::mem::replace(&mut entry.deadline, deadline);
        // Otherwise it is new, or its entry in the wheel comes out too early. Then it is filed by its deadline.
        let is_too_late = self.order.is_distant(before) && deadline < before;
        if is_too_late || self.order.remove_near(key, before) {
            let refiled = self.values.refile(key.index);
            self.order.sweep_if_worth_it(&self.values);
            refiled.into_iter().for_each(|token| self.order.add(token));
        }
        if deadline < self.wake_at {
            self.wake(deadline);
        } else if before == self.wake_at {
            self.follow_earliest();
        }
        true
    }

    /// Makes room for a new value.
    fn make_room(&mut self) {
        if self.order.is_full() {
            self.file_new();
        }
    }

    /// The slot of a value that is in the queue.
    fn slot(&self, key: DelayKey) -> Option<Key> {
        let (slot, entry) = self.values.at(key.index)?;
        (entry.sequence == key.sequence).then_some(slot)
    }

    fn entry(&self, key: DelayKey) -> Option<&Entry<T>> {
        self.values.get(self.slot(key)?)
    }

    /// Takes out the earliest value, if it is due by `reached`.
    fn take_due(&mut self) -> Option<Delayed<T>> {
        let key = self.order.pop_due(self.reached)?;
        let due = self.take(key);
        if self.is_empty() {
            self.order.clear();
        }
        due
    }

    /// Takes out a value that is not in the order any more, or whose order will be cleared.
    fn take(&mut self, key: DelayKey) -> Option<Delayed<T>> {
        let Entry { deadline, value, .. } = self.values.remove(self.slot(key)?)?;
        Some(Delayed { value, key, deadline: self.instant_at(deadline) })
    }

    /// Moves the new values to the near and the distant ones.
    fn file_new(&mut self) {
        if self.order.has_new() {
            // After a panic of the clock, an earlier time does as well.
            let time = &self.sleep.gate().time;
            self.order.file_new(&self.values, || time.now_contained().unwrap_or(self.reached));
        }
    }

    fn follow_earliest(&mut self) {
        self.file_new();
        let earliest = self.order.earliest();
        if earliest != self.wake_at {
            self.wake(earliest);
        }
    }

    /// Moves the wake-up. Wakes the waiting task if that time has come.
    fn wake(&mut self, at: u64) {
        self.wake_at = at;
        self.sleep.reset_to(at);
    }

    #[inline]
    fn deadline_after(&self, delay: Duration) -> u64 {
        self.sleep.gate().time.poll_deadline_after(delay)
    }

    fn nanos_at(&self, instant: Instant) -> u64 {
        self.sleep.gate().time.nanos_at(instant)
    }

    fn instant_at(&self, nanos: u64) -> Instant {
        self.sleep.gate().time.instant_at(nanos)
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
