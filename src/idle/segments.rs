//! The segments of one shard. Told the time; no lock, no timer.
//!
//! The lock of a shard is held for all that is done here, so each method deals with a bounded number
//! of connections: with one segment ([`SEATS`]), or with segments until [`LOOKS`] connections have been
//! looked at. A caller that has to go through everybody calls again, and lets go of the lock
//! between two calls.
//!
//! Invariants:
//! 1. `next` of a segment is its `next_look`, and `earliest` is not after any `next`.
//! 2. `watched` is the sum of what the segments watch.
//! 3. `room` names the segments that have a free seat, those without memory included. The first of
//!    them takes whoever comes next, so the last ones become empty after a burst.
//! 4. A segment without a used seat has given its memory back, but for the `spare` one.

use super::event::{Idle, Seat};

use super::activity::Watcher;
use super::policy::IdlePolicy;
use super::segment::{Returned, SEATS, Segment};
use super::verdict::CheckTime;
use crate::base::sync::Arc;
use crate::time::tick::{NEVER, TickScale};
use std::collections::BTreeSet;
use std::time::Instant;

/// After so many looks in one hold of the lock no further segment is begun. Under a lock that others
/// wait for, with cold memory, a look takes 100 to 200 ns.
pub(super) const LOOKS: usize = 2048;

/// The most looks ahead that the leave of one connection costs.
const LOOKS_PAST_ONE: usize = 64;

/// Looks ahead into one segment before another one may be first.
const LOOKS_PER_STEP: usize = 16;

/// The most that one hold of the lock takes out, and so the size of a batch.
#[cfg(all(test, not(loom)))]
pub(super) const MOST: usize = LOOKS - 1 + SEATS;

const MOST_SEGMENTS: usize = u32::MAX as usize / SEATS;

/// The most connections that one shard can watch.
pub(super) const LIMIT: usize = MOST_SEGMENTS * SEATS;

pub(super) struct Segments<T> {
    origin: Instant,
    ticks: TickScale,
    segments: Vec<Held<T>>,
    watched: usize,
    /// The tick at which somebody has to be looked at. Early if who it was for has left, never late.
    earliest: u64,
    room: BTreeSet<u32>,
    /// The segment that holds memory and has no used seat.
    spare: Option<usize>,
    /// Where the next search for those who are due begins: no segment waits for ever for its turn.
    turn: usize,
    /// Empty between calls.
    due: Vec<u32>,
}

struct Held<T> {
    /// `None` while its memory is given back.
    segment: Option<Box<Segment<T>>>,
    next: u64,
}

/// What of a segment counts in the whole.
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

    /// Connections that are watched.
    pub(super) fn len(&self) -> usize {
        self.watched
    }

    /// The tick at which somebody has to be looked at.
    pub(super) fn next_look(&self) -> u64 {
        self.earliest
    }

    /// Gives the connection a seat; back if there is none left.
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

    /// The handle is dropped. Returns the connection, if it is here.
    pub(super) fn leave(&mut self, number: u32) -> Option<T> {
        self.with(segment_of(number), |segment| segment.leave(number))?
    }

    /// From now on it is judged by another policy.
    pub(super) fn set_policy(&mut self, number: u32, policy: IdlePolicy, time: CheckTime) {
        self.with(segment_of(number), |segment| segment.set_policy(number, policy, time));
    }

    /// Stops watching a seat, unless it has been active after `since`.
    pub(super) fn evict(&mut self, number: u32, since: u64) -> Option<T> {
        self.with(segment_of(number), |segment| segment.evict(number, since))?
    }

    /// Has all who are here judged again, at `tick`.
    pub(super) fn check_all_at(&mut self, tick: u64) {
        for at in 0..self.segments.len() {
            self.with(at, |segment| segment.check_all_at(tick));
        }
    }

    /// Takes out who is idle now, and files again who has merely come up. If that were too many for
    /// one hold of the lock, `next_look` is not after now, and the next call goes on.
    pub(super) fn take_idle(&mut self, time: CheckTime) -> Vec<Idle<T>> {
        let tick = self.ticks.tick_at(time.now);
        let (mut idle, mut looks) = (Vec::new(), 0);
        let mut due = std::mem::take(&mut self.due);
        for _ in 0..self.segments.len() {
            if looks >= LOOKS {
                break;
            }
            let at = self.turn % self.segments.len();
            self.turn = at + 1;
            if self.segments[at].next <= tick {
                let looked = self.with(at, |segment| segment.take_idle(time, &mut due, &mut idle));
                looks += looked.unwrap_or_default().max(1);
            }
        }
        self.due = due;
        self.find_earliest();
        idle
    }

    /// Makes `next_look` exact, so that nobody is woken up for who has left or was active: files those
    /// again who come up before the first who has to be looked at then. False if more than `looks`
    /// would be needed; the next call goes on.
    pub(super) fn look_ahead(&mut self, time: CheckTime, mut looks: usize) -> bool {
        let count = self.segments.len();
        let begin = (0..count).min_by_key(|&at| self.segments[at].next).unwrap_or(0);
        let mut first = NEVER;
        for at in (begin..count).chain(0..begin) {
            while looks > 0 && self.segments[at].next < first {
                if self.confirm_next(at, &mut looks, time) {
                    first = first.min(self.segments[at].next);
                }
            }
        }
        self.find_earliest();
        looks > 0
    }

    /// The one in this seat, for whom `next_look` stood, has left: finds out who is next instead.
    pub(super) fn look_past(&mut self, number: u32, time: CheckTime) {
        let former = self.earliest;
        let at = segment_of(number);
        let mut looks = LOOKS_PAST_ONE;
        self.confirm_next(at, &mut looks, time);
        // Others of this tick are neighbours, mostly.
        if self.segments.get(at).is_some_and(|held| held.next <= former) {
            return;
        }
        self.find_earliest();
        if self.earliest > former {
            self.look_ahead(time, looks);
        }
    }

    /// The tick in which a seat is looked at.
    pub(super) fn filed_at(&self, number: u32) -> Option<u64> {
        self.segments.get(segment_of(number))?.segment.as_ref()?.filed_at(number)
    }

    /// Makes the next look of one segment exact, in steps that do not go too far beyond the first look
    /// of another; true if that is done.
    fn confirm_next(&mut self, at: usize, looks: &mut usize, time: CheckTime) -> bool {
        let mut step = LOOKS_PER_STEP.min(*looks);
        *looks -= step;
        let exact = self.with(at, |segment| segment.confirm_next(&mut step, time)).unwrap_or(true);
        if exact {
            *looks += step.saturating_sub(1); // or all of them went to those who have left
        }
        exact
    }

    /// Takes in the answers to a batch.
    pub(super) fn put_back(&mut self, batch: Vec<Idle<T>>, time: CheckTime) -> Returned<T> {
        let mut returned = Returned::new();
        for idle in batch {
            let at = segment_of(idle.seat.number);
            self.with(at, |segment| segment.put_back(idle, time, &mut returned));
        }
        returned
    }

    /// Takes out who is here, because the timer is gone. Nobody is here any more if that is nobody.
    pub(super) fn take_stopped(&mut self, now: u64) -> Vec<Idle<T>> {
        let mut idle = Vec::new();
        for at in 0..self.segments.len() {
            if idle.len() >= LOOKS {
                break;
            }
            self.with(at, |segment| segment.take_all(now, &mut idle));
        }
        idle
    }

    /// Those of one segment who are not paused and have been silent at least since `latest`, each as
    /// its last activity and its seat; `None` after the last segment.
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
        self.segments.push(Held { segment: None, next: NEVER });
        self.room.insert(at as u32);
        Some(at)
    }

    /// Everything that changes a segment goes through here, or ends with `note`.
    fn with<R>(&mut self, at: usize, act: impl FnOnce(&mut Segment<T>) -> R) -> Option<R> {
        let segment = self.segments.get_mut(at)?.segment.as_mut()?;
        let before = share(segment);
        let result = act(segment);
        self.note(at, before);
        Some(result)
    }

    /// Keeps the invariants after a change to one segment.
    fn note(&mut self, at: usize, before: Share) {
        let held = &mut self.segments[at];
        let Some(segment) = &held.segment else { return };
        let after = share(segment);
        held.next = segment.next_look();
        self.earliest = self.earliest.min(held.next);
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

    /// Of two without a used seat, the last one gives its memory back.
    #[cold]
    fn emptied(&mut self, at: usize) {
        let Some(spare) = self.spare.replace(at) else { return };
        self.spare = Some(at.min(spare));
        self.segments[at.max(spare)] = Held { segment: None, next: NEVER };
        while self.segments.last().is_some_and(|held| held.segment.is_none()) {
            self.segments.pop();
            self.room.remove(&(self.segments.len() as u32));
        }
        if self.segments.len() < self.segments.capacity() / 4 {
            self.segments.shrink_to(2 * self.segments.len());
        }
    }

    fn find_earliest(&mut self) {
        self.earliest = self.segments.iter().map(|held| held.next).min().unwrap_or(NEVER);
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

    /// A handle is dropped while its connection is looked at, reported and put back: the connection
    /// is dropped once, nobody is watched at the end, and the seat is free.
    #[test]
    fn a_handle_dropped_at_any_moment_ends_it_once() {
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
