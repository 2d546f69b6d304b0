//! What all parts of one timer share, in two pieces:
//!
//! - The *gate* is small: the clock, whether the timer is closed, the limit, and how far the worker is (the floor and the
//!   next tick). Each chunk keeps it, even after the end of the timer.
//! - The *shared* struct is large: the chunks, the alarm, the queues, the requests to the worker and the counts. The
//!   worker and the handles to the timer keep it. Once these are gone, nobody takes what is pushed or asks for a count.
//!   So a `Link` keeps it only weakly.
//!
//! A `Link` leads from a chunk, or from the home of a thread, to both. `T` is a chunk. It is a parameter because
//! `chunk` imports this file.

use super::alarm::Alarm;
use super::limit::Limit;
use super::pending::Pending;
use super::pool::Pool;
use super::slot::Phase;
use super::table::{Table, WorkerTable};
use crate::base::logging::warning;
use crate::base::spread::core_count;
use crate::base::sync::{Arc, AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use crate::metrics::{Count, Counts, Tally};
use crate::time::Timebase;
use crate::time::tick::{DEADLINE_STEP, TickScale};
use crate::wheel::is_sweep_worth_it;
use std::sync::Weak;

/// The timer admits nothing more, and its worker ends.
const CLOSED: u8 = 1;

/// Nobody will collect the pending timeouts, so they are cancelled and not returned.
const CANCELS: u8 = 2;

/// A thread has begun to empty the slots.
const EMPTIED: u8 = 4;

/// Up to this number of dead entries, a sweep is not worth its cost. A wheel with more buckets than
/// this allows one dead entry per bucket.
pub(crate) const DEAD_ALLOWED: usize = 4096;

/// A thread checks whether a sweep is worth its cost once per this number of dead entries.
pub(crate) const DEAD_PER_CHECK: u64 = 1024;

/// A timer's clock, closing and limit. See the head.
pub(crate) struct Gate {
    pub(crate) time: Timebase,
    pub(crate) scale: TickScale,
    /// In a box, because it fills two cache lines, and most timers have none.
    limit: Option<Box<Limit>>,
    /// Whether the timer is closed, and how far it is. The head of `worker/end` has the protocol.
    closing: AtomicU8,
    /// What is scheduled from now on is not due before this time, which is just after the begin of the tick
    /// that the worker expires. So it is due in the next tick (see `worker/tick_queue`).
    floor: AtomicU64,
    /// The next tick that the worker can expire, the current one of its wheel.
    next_tick: AtomicU64,
}

/// A timer's chunks, queues, requests and counts. See the head.
pub(crate) struct Shared<T> {
    pub(crate) gate: Arc<Gate>,
    pub(crate) alarm: Alarm,
    pub(crate) pending: Pending,
    pub(crate) counts: Counts,
    pub(crate) table: Arc<Table<T>>,
    /// One for each core. The last one is that of internal timeouts.
    pub(crate) pools: Box<[Pool<T>]>,
    pub(super) sequence: Sequence,
    pub(crate) sweep: Request,
    pub(crate) release: Request,
    /// The turn of a timeout that is due by now. See `Chunk::announce_due`.
    pub(crate) due_turn: Request,
    /// The number of buckets of the wheel.
    buckets: usize,
    /// The number of entries in the wheel after the worker's last pass, without the promised looks.
    entries: AtomicUsize,
}

/// A request to the worker, which nobody need repeat.
#[derive(Default)]
pub(crate) struct Request(AtomicBool);

impl Request {
    /// Returns whether nobody has made it before. The caller then calls the worker, unless it is the worker. Release:
    /// after `begin`, the worker finds what the caller has done.
    pub(crate) fn make(&self) -> bool {
        !self.0.swap(true, Ordering::Release)
    }

    pub(crate) fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The worker does what is requested, or need not do it. A swap, so that it reads the rest after it.
    pub(crate) fn begin(&self) {
        self.0.swap(false, Ordering::Acquire);
    }
}

/// The first sequence number that no owner has. It has a cache line of its own, because all owners write it.
#[repr(align(128))]
pub(super) struct Sequence(AtomicU64);

impl Sequence {
    /// Takes the next `count` numbers, and returns the first one. Relaxed: no race depends on which thread has which.
    pub(super) fn take(&self, count: u64) -> u64 {
        self.0.fetch_add(count, Ordering::Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl Sequence {
    pub(super) fn set(&self, next: u64) {
        self.0.store(next, Ordering::Relaxed);
    }
}

/// A counted reference to what is shared. A weak one keeps the memory of what is counted: here that is the box alone.
#[allow(clippy::redundant_allocation)] // the box is freed with the last strong reference
pub(crate) type SharedRef<T> = Arc<Box<Shared<T>>>;

/// The way from a chunk, or from a thread's home, to its timer. See the head.
pub(crate) struct Link<T> {
    pub(crate) gate: Arc<Gate>,
    #[allow(clippy::redundant_allocation)] // see `SharedRef`
    shared: Weak<Box<Shared<T>>>,
}

impl<T> Clone for Link<T> {
    fn clone(&self) -> Self {
        Self { gate: self.gate.clone(), shared: self.shared.clone() }
    }
}

impl<T> Link<T> {
    pub(crate) fn to(shared: &SharedRef<T>) -> Self {
        Self { gate: shared.gate.clone(), shared: Arc::downgrade(shared) }
    }

    /// What the timer shares, unless it is gone.
    #[cold]
    pub(crate) fn shared(&self) -> Option<SharedRef<T>> {
        let shared = self.shared.upgrade();
        if shared.is_none() {
            // Pairs with the release of the last reference: the caller finds the timer closed and emptied.
            fence(Ordering::Acquire);
        }
        shared
    }

    /// Counts, while anybody can ask for the counts.
    pub(crate) fn count(&self, count: impl FnOnce(&Counts)) {
        if let Some(shared) = self.shared() {
            count(&shared.counts);
        }
    }

    /// Adds one to a count that threads share, and returns the count, or 0 if nobody can ask for it any more.
    #[cold]
    pub(crate) fn count_in(&self, tally: fn(&Counts) -> &Tally, pick: fn(&Tally) -> &Count) -> u64 {
        let Some(shared) = self.shared() else { return 0 };
        let count = pick(tally(&shared.counts));
        count.add_shared(1);
        count.get()
    }

    /// Counts a panic of user code.
    pub(crate) fn task_panicked(&self) {
        self.count(|counts| counts.worker.panicked.add_shared(1));
    }

    /// Requests a sweep if one is worth its cost. The caller has left a dead entry in the wheel and counted
    /// it; `died` is that count.
    #[inline]
    pub(crate) fn entry_died(&self, died: u64) {
        if died % DEAD_PER_CHECK == 0 {
            if let Some(shared) = self.shared() {
                shared.request_sweep();
            }
        }
    }

    /// The current time, where a panic of the clock must not reach the caller: at the end of a run. `None` if the clock
    /// panics, which is counted.
    pub(crate) fn now_contained(&self) -> Option<u64> {
        let now = self.gate.time.now_contained();
        if now.is_none() {
            if let Some(shared) = self.shared() {
                shared.clock_panicked();
            }
        }
        now
    }
}

impl<T: Send + Sync> Shared<T> {
    /// What a timer shares, and the worker's access to its chunks.
    pub(crate) fn new(
        time: Timebase,
        scale: TickScale,
        limit: Option<usize>,
        buckets: usize,
    ) -> (SharedRef<T>, WorkerTable<T>) {
        let limit = limit.map(|most| Box::new(Limit::new(most)));
        let gate = Gate {
            time,
            scale,
            limit,
            closing: AtomicU8::new(0),
            floor: AtomicU64::new(DEADLINE_STEP),
            next_tick: AtomicU64::new(1),
        };
        let (table, worker) = Table::new();
        let shared = Self {
            gate: Arc::new(gate),
            alarm: Alarm::new(),
            pending: Pending::new(),
            counts: Counts::default(),
            table,
            pools: (0..=core_count()).map(|_| Pool::new()).collect(),
            sequence: Sequence(AtomicU64::new(0)),
            sweep: Request::default(),
            release: Request::default(),
            due_turn: Request::default(),
            buckets,
            entries: AtomicUsize::new(0),
        };
        (Arc::new(Box::new(shared)), worker)
    }
}

impl<T> Shared<T> {
    /// The name of the worker's thread.
    pub(crate) fn name(&self) -> &str {
        self.alarm.parker().thread_name().unwrap_or_default()
    }

    /// The current time, where a panic of the clock must not reach the caller: on the worker. `None` if the clock
    /// panics, which is counted.
    #[inline]
    pub(crate) fn now_contained(&self) -> Option<u64> {
        let now = self.gate.time.now_contained();
        if now.is_none() {
            self.clock_panicked();
        }
        now
    }

    #[cold]
    fn clock_panicked(&self) {
        self.counts.worker.panicked.add_shared(1);
        let timer = self.name();
        warning!([timer = timer], "{timer}: the clock panicked");
    }

    /// Tells the worker of a timeout that was announced, and is due by now. Whichever park takes the token of the call
    /// sees the request, since an unpark releases. Step 2 of a producer while its timer is closed (see `worker/end`) has
    /// come before, in `Chunk::announce_moved`.
    pub(super) fn tell_due(&self) {
        self.due_turn.make();
        if !self.alarm.parker().is_current_thread() {
            self.alarm.call();
        }
    }

    /// Wakes the worker for a release, if the pool is worth one.
    pub(super) fn consider_release(&self, pool: &Pool<T>) {
        if pool.is_release_worth_it() && self.release.make() {
            self.alarm.call();
        }
    }
}

/// Requests of a sweep, by which the worker drops dead entries from the wheel. A count decides only when a sweep pays,
/// and never whether a timeout runs.
impl<T> Shared<T> {
    /// Wakes the worker for a sweep if one is worth its cost.
    fn request_sweep(&self) {
        if self.is_sweep_worth_it() && self.sweep.make() {
            self.alarm.call();
        }
    }

    /// Whether a sweep is worth its cost. False if another thread uses the list of tallies: there is
    /// another chance after `DEAD_PER_CHECK` more entries.
    fn is_sweep_worth_it(&self) -> bool {
        let pending = self.counts.try_all_pending();
        let entries = self.entries.load(Ordering::Relaxed);
        pending.is_some_and(|pending| {
            is_sweep_worth_it(entries, pending as usize, DEAD_ALLOWED.max(self.buckets))
        })
    }

    /// Stores how many entries the worker's wheel has, without the promised looks at chunks.
    pub(crate) fn set_entries(&self, entries: usize) {
        self.entries.store(entries, Ordering::Relaxed);
    }

    /// Requests a sweep if one is worth its cost. Only the worker calls it: at the end of a sweep, and when
    /// fewer timeouts are pending, or it has filed chunks again.
    pub(crate) fn consider_sweep(&self) {
        self.sweep.begin();
        if self.is_sweep_worth_it() {
            self.sweep.make();
        }
    }
}

impl Gate {
    /// A deadline that is not overdue in the tick that the worker expires.
    #[inline]
    pub(crate) fn not_overdue(&self, deadline: u64) -> u64 {
        deadline.max(self.floor.load(Ordering::Relaxed))
    }

    /// The worker begins to expire what is due by this tick. It fences afterwards.
    pub(crate) fn raise_floor(&self, tick: u64) {
        let begin = self.scale.start_of(tick);
        self.floor.store(begin.saturating_add(DEADLINE_STEP), Ordering::Relaxed);
    }

    /// The tick in which a timeout with this deadline runs: the first that does not begin before it, or the
    /// next tick that the worker can expire, if that is later. The wheel files it by the same rule.
    ///
    /// A deadline can stay in an expired tick: a series keeps its phase, and a thread may arm its slot after
    /// it has read an old floor. A manual clock that waited for the deadline itself would stand still for ever.
    pub(crate) fn tick_of(&self, deadline: u64) -> u64 {
        self.scale.tick_not_before(deadline).max(self.next_tick.load(Ordering::Relaxed))
    }

    /// The worker has expired all ticks before this one. Relaxed: a clock that has waited for the worker to
    /// catch up sees it.
    pub(crate) fn set_next_tick(&self, tick: u64) {
        self.next_tick.store(tick, Ordering::Relaxed);
    }

    /// Takes a permit for one more pending timeout, or returns the limit if that is reached.
    #[inline]
    pub(crate) fn take_permit(&self) -> Result<(), usize> {
        self.limit.as_ref().map_or(Ok(()), |limit| limit.acquire())
    }

    /// Takes a permit for one more pending timeout, even beyond the limit.
    #[inline]
    pub(crate) fn take_permit_beyond(&self) {
        self.limit.iter().for_each(|limit| limit.acquire_beyond());
    }

    /// Releases the permits of timeouts that are no longer pending. The caller counts their end afterwards:
    /// whoever sees it counted also finds the permits.
    #[inline]
    pub(crate) fn release_permits(&self, timeouts: usize) {
        self.limit.iter().for_each(|limit| limit.release(timeouts));
    }

    /// Closes the timer. Its pending timeouts will be returned.
    pub(crate) fn close(&self) {
        self.set(CLOSED);
    }

    /// Closes the timer, or has closed it before. Its pending timeouts will be cancelled.
    pub(crate) fn close_and_cancel(&self) {
        self.set(CLOSED | CANCELS);
    }

    pub(crate) fn begin_emptying(&self) {
        self.set(EMPTIED);
    }

    /// The fence is that of the closing, or of the emptying thread.
    fn set(&self, bits: u8) {
        self.closing.fetch_or(bits, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn has(&self, bit: u8) -> bool {
        self.closing.load(Ordering::Relaxed) & bit != 0
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.has(CLOSED)
    }

    /// Whether a timeout that goes on may be too late for the emptying.
    pub(crate) fn is_emptied(&self) -> bool {
        self.has(EMPTIED)
    }

    /// How the end of the timer ends its pending timeouts.
    pub(crate) fn end_of_pending(&self) -> Phase {
        if self.has(CANCELS) { Phase::Cancelled } else { Phase::Returned }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
