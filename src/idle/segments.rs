//! All segments of one shard.
//!
//! The shard's lock is held during every method here, so each method handles a bounded number of
//! connections, a *slice*. It handles either one segment ([`SEATS`]), or segments until [`CHECKS_PER_SLICE`]
//! connections have been checked. A caller that must handle all connections calls again, and
//! releases the lock between the calls. The caller tells the time; there is no lock and no timer
//! here.
//!
//! Invariants:
//! 1. `next` of a segment is its `next_check`. `earliest` is not after any `next`.
//! 2. `watched` is the sum of the segments' watched connections.
//! 3. `room` has the numbers of all segments with a free seat, those without memory included. A new
//!    connection goes to the first of them, so the last segments become empty after a burst.
//! 4. A segment without used seats has given its memory back, except for the `spare` one.

use super::activity::Watcher;
use super::event::{Idle, Seat};
use super::policy::IdlePolicy;
use super::segment::{Returned, SEATS, Segment};
use super::verdict::CheckTime;
use crate::base::sync::Arc;
use crate::time::tick::{NEVER, TickScale};
use std::collections::BTreeSet;
use std::time::Instant;

/// After this many checks under one hold of the lock, no further segment is begun. A check takes
/// 100 to 200 ns with cold memory and while other threads wait for the lock.
pub(super) const CHECKS_PER_SLICE: usize = 2048;

/// The most checks that confirm the next check when one connection leaves.
const CHECKS_AFTER_LEAVE: usize = 64;

/// The number of checks in one segment before confirming may continue with another segment.
const CHECKS_PER_STEP: usize = 16;

/// The most connections that one hold of the lock takes out: the largest batch.
#[cfg(all(test, not(loom)))]
pub(super) const MOST: usize = CHECKS_PER_SLICE - 1 + SEATS;

const MOST_SEGMENTS: usize = u32::MAX as usize / SEATS;

/// The most connections that one shard can watch.
pub(super) const LIMIT: usize = MOST_SEGMENTS * SEATS;

pub(super) struct Segments<T> {
    origin: Instant,
    ticks: TickScale,
    segments: Vec<SegmentSlot<T>>,
    watched: usize,
    /// The tick at which the next check is needed. It may be too early, if the connection has left,
    /// but never too late.
    earliest: u64,
    room: BTreeSet<u32>,
    /// The segment that has memory and no used seat.
    spare: Option<usize>,
    /// The segment at which the next slice begins. It rotates, so that every segment gets its turn.
    turn: usize,
    /// Empty between calls.
    due: Vec<u32>,
}

struct SegmentSlot<T> {
    /// `None` if its memory was given back.
    segment: Option<Box<Segment<T>>>,
    next: u64,
}

/// The part of one segment in the sums.
#[derive(Clone, Copy)]
struct Share {
    watched: usize,
    used: usize,
}

impl<T> Segments<T> {
    pub(super) fn new(origin: Instant, ticks: TickScale) -> Self {
        Self {
            origin,
            ticks,
            segments: Vec::new(),
            watched: 0,
            earliest: NEVER,
            room: BTreeSet::new(),
            spare: None,
            turn: 0,
            due: Vec::new(),
        }
    }

    /// The number of watched connections.
    pub(super) fn len(&self) -> usize {
        self.watched
    }

    /// The tick at which the next check is needed.
    pub(super) fn next_check(&self) -> u64 {
        self.earliest
    }

    /// Gives the connection a seat. Returns the connection if all seats are in use.
    pub(super) fn enter(
        &mut self,
        connection: T,
        policy: IdlePolicy,
        time: CheckTime,
        watcher: impl FnOnce() -> Arc<dyn Watcher>,
    ) -> Result<Seat, T> {
        let Some(at) = self.with_room() else { return Err(connection) };
        let (origin, ticks, first) = (self.origin, self.ticks, (at * SEATS) as u32);
        let made = || Box::new(Segment::new(origin, ticks, first));
        let segment = self.segments[at].segment.get_or_insert_with(made);
        let before = share(segment);
        let entered = segment.enter(connection, policy, time, watcher);
        self.note(at, before);
        entered
    }

    /// Ends a seat whose handle was dropped. Returns the connection, if it is here.
    pub(super) fn leave(&mut self, number: u32) -> Option<T> {
        self.with(segment_of(number), |segment| segment.leave(number))?
    }

    /// Changes the policy of a seat.
    pub(super) fn set_policy(&mut self, number: u32, policy: IdlePolicy, time: CheckTime) {
        self.with(segment_of(number), |segment| segment.set_policy(number, policy, time));
    }

    /// Stops watching a connection and returns it, unless it was active after `since` or is paused.
    pub(super) fn take_if_silent_since(&mut self, number: u32, since: u64) -> Option<T> {
        self.with(segment_of(number), |segment| segment.take_if_silent_since(number, since))?
    }

    /// Requests a check of all connections that are here, at `tick`.
    pub(super) fn check_all_at(&mut self, tick: u64) {
        for at in 0..self.segments.len() {
            self.with(at, |segment| segment.check_all_at(tick));
        }
    }

    /// Checks one slice of the due connections. Takes out the idle ones and refiles the others. If
    /// more are left, `next_check` is not after now, and the next call continues.
    pub(super) fn take_idle(&mut self, time: CheckTime) -> Vec<Idle<T>> {
        let tick = self.ticks.tick_at(time.now);
        let (mut idle, mut checks) = (Vec::new(), 0);
        let mut due = std::mem::take(&mut self.due);
        for _ in 0..self.segments.len() {
            if checks >= CHECKS_PER_SLICE {
                break;
            }
            let at = self.turn % self.segments.len();
            self.turn = at + 1;
            if self.segments[at].next <= tick {
                let checked = self.with(at, |segment| segment.take_idle(time, &mut due, &mut idle));
                checks += checked.unwrap_or_default().max(1);
            }
        }
        self.due = due;
        self.find_earliest();
        idle
    }

    /// Makes `next_check` exact, so that no wake-up comes for a connection that has left or was active.
    /// Refiles the active connections that come up before the first silent one. Returns false if
    /// a budget of `checks` did not suffice; the next call continues.
    pub(super) fn confirm_next_check(&mut self, time: CheckTime, mut checks: usize) -> bool {
        let count = self.segments.len();
        let begin = (0..count).min_by_key(|&at| self.segments[at].next).unwrap_or(0);
        let mut first = NEVER;
        for at in (begin..count).chain(0..begin) {
            while checks > 0 && self.segments[at].next < first {
                if self.confirm_next(at, &mut checks, time) {
                    first = first.min(self.segments[at].next);
                }
            }
        }
        self.find_earliest();
        checks > 0
    }

    /// Confirms the next check after the connection in this seat has left, if `next_check` was for it.
    pub(super) fn confirm_after_leave(&mut self, number: u32, time: CheckTime) {
        let former = self.earliest;
        let at = segment_of(number);
        let mut checks = CHECKS_AFTER_LEAVE;
        self.confirm_next(at, &mut checks, time);
        // Other connections of this tick are mostly in the same segment.
        if self.segments.get(at).is_some_and(|slot| slot.next <= former) {
            return;
        }
        self.find_earliest();
        if self.earliest > former {
            self.confirm_next_check(time, checks);
        }
    }

    /// The tick in which a seat will be checked, if it is Filed.
    pub(super) fn filed_at(&self, number: u32) -> Option<u64> {
        self.segments.get(segment_of(number))?.segment.as_ref()?.filed_at(number)
    }

    /// Does one step towards an exact `next_check` of one segment. Steps are small, because another
    /// segment may come first meanwhile. Returns true if it is exact.
    fn confirm_next(&mut self, at: usize, checks: &mut usize, time: CheckTime) -> bool {
        let mut step = CHECKS_PER_STEP.min(*checks);
        *checks -= step;
        let exact = self.with(at, |segment| segment.confirm_next(&mut step, time)).unwrap_or(true);
        if exact {
            *checks += step.saturating_sub(1);
        }
        // Otherwise the whole step is used up: `step` does not count the checks of dead entries.
        exact
    }

    /// Takes back a batch of reported connections with their answers.
    pub(super) fn put_back(&mut self, batch: Vec<Idle<T>>, time: CheckTime) -> Returned<T> {
        let mut returned = Returned::new();
        for idle in batch {
            let at = segment_of(idle.seat.number);
            self.with(at, |segment| segment.put_back(idle, time, &mut returned));
        }
        returned
    }

    /// Takes out one slice of all connections, because the timer has stopped. An empty slice means
    /// that none is left.
    pub(super) fn take_stopped(&mut self, now: u64) -> Vec<Idle<T>> {
        let mut idle = Vec::new();
        for at in 0..self.segments.len() {
            if idle.len() >= CHECKS_PER_SLICE {
                break;
            }
            self.with(at, |segment| segment.take_all(now, &mut idle));
        }
        idle
    }

    /// The connections of segment `at` that are not paused and have been silent since `latest` or
    /// longer. Each is given by its last activity and its seat. `None` after the last segment.
    pub(super) fn silent_since(&self, latest: u64, at: usize) -> Option<Vec<(u64, u32)>> {
        let segment = &self.segments.get(at)?.segment;
        Some(segment.as_ref().map(|segment| segment.silent_since(latest)).unwrap_or_default())
    }

    /// A segment with a free seat.
    fn with_room(&mut self) -> Option<usize> {
        if let Some(&first) = self.room.first() {
            return Some(first as usize);
        }
        let at = self.segments.len();
        if at == MOST_SEGMENTS {
            return None;
        }
        self.segments.push(SegmentSlot { segment: None, next: NEVER });
        self.room.insert(at as u32);
        Some(at)
    }

    /// Runs `act` on a segment and keeps the invariants. Every other change of a segment ends with
    /// `note`.
    fn with<R>(&mut self, at: usize, act: impl FnOnce(&mut Segment<T>) -> R) -> Option<R> {
        let segment = self.segments.get_mut(at)?.segment.as_mut()?;
        let before = share(segment);
        let result = act(segment);
        self.note(at, before);
        Some(result)
    }

    /// Restores the invariants after a change of one segment. `before` is its share before the
    /// change.
    fn note(&mut self, at: usize, before: Share) {
        let slot = &mut self.segments[at];
        let Some(segment) = &slot.segment else { return };
        let after = share(segment);
        slot.next = segment.next_check();
        self.earliest = self.earliest.min(slot.next);
        self.watched = self.watched + after.watched - before.watched;
        if before.used == after.used {
            return;
        }
        if after.used == SEATS {
            self.room.remove(&(at as u32));
        } else if before.used == SEATS {
            self.room.insert(at as u32);
        }
        if self.spare == Some(at) {
            self.spare = None;
        } else if after.used == 0 {
            self.emptied(at);
        }
    }

    /// Called when segment `at` has no used seat left. If two segments have none, the last one
    /// gives its memory back.
    #[cold]
    fn emptied(&mut self, at: usize) {
        let Some(spare) = self.spare.replace(at) else { return };
        self.spare = Some(at.min(spare));
        self.segments[at.max(spare)] = SegmentSlot { segment: None, next: NEVER };
        while self.segments.last().is_some_and(|slot| slot.segment.is_none()) {
            self.segments.pop();
            self.room.remove(&(self.segments.len() as u32));
        }
        if self.segments.len() < self.segments.capacity() / 4 {
            self.segments.shrink_to(2 * self.segments.len());
        }
    }

    fn find_earliest(&mut self) {
        self.earliest = self.segments.iter().map(|slot| slot.next).min().unwrap_or(NEVER);
    }
}

fn share<T>(segment: &Segment<T>) -> Share {
    Share { watched: segment.len(), used: segment.used() }
}

fn segment_of(number: u32) -> usize {
    number as usize / SEATS
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod model {
    use super::super::segment::NoWatcher;
    use super::*;
    use crate::base::sync::{AtomicUsize, Mutex, Ordering};
    use loom::thread;
    use std::num::NonZeroU64;
    use std::time::Duration;

    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A handle is dropped while its connection is checked, reported and put back. The connection
    /// is dropped once. At the end no connection is watched and the seat is free.
    #[test]
    fn a_connection_is_dropped_once_whenever_its_handle_is_dropped() {
        crate::base::sync::check(|| {
            let drops = Arc::new(AtomicUsize::new(0));
            let ticks = TickScale::new(NonZeroU64::MIN);
            let segment = Arc::new(Mutex::new(Segments::new(Instant::now(), ticks)));
            let at = |now| CheckTime { now, scale: super::super::policy::Scale::ONE };
            let policy = IdlePolicy::new().all(Duration::from_nanos(5));
            let entered =
                segment.lock().enter(Counted(drops.clone()), policy, at(1), || Arc::new(NoWatcher));
            let Ok(Seat { number, block }) = entered else { panic!("there is a seat") };
            let checker = thread::spawn({
                let segment = segment.clone();
                move || {
                    let batch = segment.lock().take_idle(at(9));
                    let silent = batch.iter().filter(|idle| idle.is_still_silent()).count();
                    assert!(silent <= 1);
                    let returned = segment.lock().put_back(batch, at(9));
                    assert!(returned.again.is_empty());
                    drop(returned.dismissed);
                }
            });
            block.activity(number).touch(8);
            let left = segment.lock().leave(number);
            drop(left);
            checker.join().unwrap();
            assert_eq!(drops.load(Ordering::Relaxed), 1);
            let segment = segment.lock();
            assert_eq!((segment.len(), segment.spare), (0, Some(0)));
        });
    }
}
