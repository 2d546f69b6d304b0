//! Who is watched in one shard, and when to look at whom. Told the time; no lock, no timer.
//!
//! A connection has a seat for as long as it is watched or its handle lives. What happens to a seat
//! (everything under the lock of its shard):
//!
//! | place | means | leaves it by |
//! |---|---|---|
//! | Free | not in use | enter -> Filed |
//! | Filed | in the wheel, its connection here | due and idle, or the timer gone -> Out; shed -> Ended; handle dropped -> Free |
//! | Out | its connection is with the callback | answered -> Filed or Ended; handle dropped -> Orphaned |
//! | Orphaned | with the callback, and nobody waits for it | answered -> Free |
//! | Ended | not watched any more, the handle lives | handle dropped -> Free |
//!
//! Invariants:
//! 1. A Filed seat is in the wheel exactly once, not after the tick in which its connection may
//!    first be idle. A touch moves only that instant, and only to later, so nothing is overlooked;
//!    what comes up too soon is judged again and filed again.
//! 2. A connection is either here or in one `Idle`, so it is reported by one pass at a time.
//! 3. A block is kept while one of its seats is in use.

use super::event::{Answer, Idle, IdleEvent, IdleKind, Outcome, Seat};
use super::judge::{Reported, Terms, Verdict, judge, lot};
use super::policy::IdlePolicy;
use super::pulse::{BLOCK, Block, Home, Pulse, Reading};
use crate::slab::{self, Slab};
use crate::sync::Arc;
use crate::tick::{NEVER, TickScale};
use crate::wheel::{HashedWheel, Key};
use std::collections::{BinaryHeap, HashMap};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// As many as a timer has by default.
const TICKS_PER_WHEEL: usize = 512;

/// A seat's number is filed plus one, which saves four bytes for each.
pub(super) const SEATS: usize = u32::MAX as usize - 1;

pub(super) struct Roster<T> {
    origin: Instant,
    ticks: TickScale,
    wheel: HashedWheel<NonZeroU32>,
    seats: Slab<Entry<T>>,
    blocks: Vec<Row>,
    /// Of connections that have been reported and kept: most have not.
    reported: HashMap<u32, Reported>,
    /// Seats in place Out.
    out: usize,
}

struct Entry<T> {
    connection: Option<T>,
    policy: Option<IdlePolicy>,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    /// With the slab's link to the next free seat.
    Free(u16),
    Filed(Key),
    Out,
    Orphaned,
    Ended,
}

/// The seats of one block.
#[derive(Default)]
struct Row {
    block: Option<Arc<Block>>,
    used: usize,
}

/// What comes of the answers to a batch.
pub(super) struct Returned<T> {
    /// To be reported once more: another kind is due as well.
    pub(super) again: Vec<Idle<T>>,
    /// Not watched any more; dropped outside of the lock.
    pub(super) dismissed: Vec<T>,
}

impl<T> slab::Slot for Entry<T> {
    fn fresh(_version: u32) -> Self {
        Self { connection: None, policy: None, place: Place::Free(0) }
    }

    /// Nobody keeps a seat's number past its use.
    fn version(&self) -> u32 {
        0
    }

    fn link(&self) -> u16 {
        if let Place::Free(link) = self.place { link } else { 0 }
    }

    fn set_link(&mut self, link: u16) {
        self.place = Place::Free(link);
    }
}

impl<T> Roster<T> {
    pub(super) fn new(origin: Instant, ticks: TickScale) -> Self {
        Self {
            origin,
            ticks,
            wheel: HashedWheel::new(TICKS_PER_WHEEL).expect("a small wheel of a valid size"),
            seats: Slab::with_limit(SEATS),
            blocks: Vec::new(),
            reported: HashMap::new(),
            out: 0,
        }
    }

    /// Connections that are watched.
    pub(super) fn len(&self) -> usize {
        self.wheel.len() + self.out
    }

    /// The tick at which somebody has to be looked at.
    pub(super) fn next_look(&self) -> u64 {
        self.wheel.next_expiry().unwrap_or(NEVER)
    }

    /// Gives the connection a seat; back if there is none left.
    pub(super) fn enter(
        &mut self,
        connection: T,
        policy: IdlePolicy,
        terms: Terms,
        home: impl FnOnce() -> Arc<dyn Home>,
    ) -> Result<Seat, T> {
        let Some((number, entry)) = self.seats.acquire() else { return Err(connection) };
        entry.connection = Some(connection);
        entry.policy = Some(policy);
        let block = self.occupy(number, home);
        block.pulse(number).begin(terms.now);
        let at = self.earliest(number, terms);
        self.file(number, at);
        Ok(Seat { block, number })
    }

    /// The handle is dropped. Returns the connection, if it is here.
    pub(super) fn leave(&mut self, number: u32) -> Option<T> {
        let entry = self.seats.get_mut(number)?;
        match entry.place {
            Place::Filed(key) => {
                self.wheel.remove(key);
            }
            Place::Out => {
                entry.place = Place::Orphaned;
                self.out -= 1;
                pulse(&self.blocks, number)?.abandon();
                return None;
            }
            Place::Free(_) | Place::Orphaned | Place::Ended => {}
        }
        let connection = entry.connection.take();
        self.vacate(number);
        connection
    }

    /// From now on it is judged by another policy.
    pub(super) fn set_policy(&mut self, number: u32, policy: IdlePolicy, terms: Terms) {
        let Some(entry) = self.seats.get_mut(number) else { return };
        entry.policy = Some(policy);
        // One that is out is filed by its new policy when it comes back.
        let Place::Filed(key) = entry.place else { return };
        let at = self.earliest(number, terms);
        // If it is due later than before, the look that comes too soon sees to it.
        if self.wheel.deadline(key).is_none_or(|tick| self.tick_of(at) < tick) {
            self.wheel.remove(key);
            self.file(number, at);
        }
    }

    /// Takes out all who are idle now, and files again who has merely come up. `everybody` judges
    /// all instead of those who have come up.
    pub(super) fn take_idle(&mut self, terms: Terms, everybody: bool) -> Vec<Idle<T>> {
        let mut due = Vec::new();
        if everybody {
            due.extend(self.wheel.drain().into_iter().map(|(_, filed)| seat_of(filed)));
        } else {
            let tick = self.ticks.tick_at(terms.now);
            self.wheel.expire(tick, |_, filed| due.push(seat_of(filed)));
        }
        due.into_iter().filter_map(|number| self.look(number, terms)).collect()
    }

    /// Takes in the answers. With several kinds of silence in one policy, another may be due too.
    pub(super) fn put_back(&mut self, batch: Vec<Idle<T>>, terms: Terms) -> Returned<T> {
        let mut returned = Returned { again: Vec::new(), dismissed: Vec::new() };
        for idle in batch {
            let (number, kind) = (idle.seat.number, idle.event().kind);
            let Some(entry) = self.seats.get_mut(number) else { continue };
            if matches!(entry.place, Place::Orphaned) {
                self.vacate(number);
                returned.dismissed.push(idle.connection);
                continue;
            }
            self.out -= 1;
            let stop = idle.outcome == Outcome::Delivered(Answer::StopWatching);
            if stop || kind == IdleKind::TimerStopped {
                entry.place = Place::Ended;
                returned.dismissed.push(idle.connection);
                continue;
            }
            if idle.outcome != Outcome::Void {
                self.reported.entry(number).or_default()[kind as usize] = terms.now;
            }
            entry.connection = Some(idle.connection);
            returned.again.extend(self.look(number, terms));
        }
        returned
    }

    /// Takes out everybody who is here, because the timer is gone.
    pub(super) fn take_all(&mut self, now: u64) -> Vec<Idle<T>> {
        let filed = self.wheel.drain();
        let numbers = filed.into_iter().map(|(_, filed)| seat_of(filed));
        numbers.filter_map(|number| self.take_stopped(number, now)).collect()
    }

    /// The seats of the `n` who have been silent longest and are not paused, each with its last
    /// activity.
    pub(super) fn silent_longest(&mut self, n: usize) -> BinaryHeap<(u64, u32)> {
        let mut longest = BinaryHeap::new();
        for (number, entry) in self.seats.iter_mut() {
            let Place::Filed(_) = entry.place else { continue };
            let Some(pulse) = pulse(&self.blocks, number) else { continue };
            let Reading { paused, since: [_, _, since] } = pulse.reading();
            if paused {
                continue;
            }
            if longest.len() < n {
                longest.push((since, number));
            } else if longest.peek().is_some_and(|&(latest, _)| since < latest) {
                longest.pop();
                longest.push((since, number));
            }
        }
        longest
    }

    /// Stops watching a seat, unless it has been active after `since`.
    pub(super) fn shed(&mut self, number: u32, since: u64) -> Option<T> {
        let reading = pulse(&self.blocks, number)?.reading();
        let entry = self.seats.get_mut(number)?;
        let Place::Filed(key) = entry.place else { return None };
        if reading.paused || reading.since[2] != since {
            return None;
        }
        entry.place = Place::Ended;
        self.wheel.remove(key);
        entry.connection.take()
    }

    /// Judges one whose entry has left the wheel.
    fn look(&mut self, number: u32, terms: Terms) -> Option<Idle<T>> {
        match self.judge(number, terms)? {
            Verdict::Look(at) => {
                self.file(number, at);
                None
            }
            Verdict::Idle(event, since) => self.take_out(number, event, since),
        }
    }

    fn judge(&mut self, number: u32, terms: Terms) -> Option<Verdict> {
        let reading = pulse(&self.blocks, number)?.reading();
        let policy = self.seats.get(number)?.policy.as_ref()?;
        let reported = self.reported.get(&number).copied();
        let active_after =
            |reported| reading.since.iter().zip(reported).all(|(&since, then)| since >= then);
        if reported.is_some_and(active_after) {
            self.reported.remove(&number); // it has no say any more
        }
        Some(judge(policy.limits(), reading, reported.unwrap_or_default(), lot(number), terms))
    }

    /// When it may first be idle.
    fn earliest(&mut self, number: u32, terms: Terms) -> u64 {
        match self.judge(number, terms) {
            Some(Verdict::Look(at)) => at,
            Some(Verdict::Idle(..)) | None => terms.now,
        }
    }

    fn take_stopped(&mut self, number: u32, now: u64) -> Option<Idle<T>> {
        let since = pulse(&self.blocks, number)?.reading().since[2];
        let silent_for = Duration::from_nanos(now.saturating_sub(since));
        let event = IdleEvent { kind: IdleKind::TimerStopped, first: true, silent_for };
        self.take_out(number, event, since)
    }

    fn take_out(&mut self, number: u32, event: IdleEvent, since: u64) -> Option<Idle<T>> {
        let block = self.blocks.get(row(number))?.block.clone()?;
        let entry = self.seats.get_mut(number)?;
        let connection = entry.connection.take()?;
        entry.place = Place::Out;
        self.out += 1;
        Some(Idle::new(connection, event, Seat { block, number }, since))
    }

    fn file(&mut self, number: u32, at: u64) {
        let tick = self.tick_of(at);
        let Some(entry) = self.seats.get_mut(number) else { return };
        entry.place = Place::Filed(self.wheel.insert(tick, NonZeroU32::MIN.saturating_add(number)));
    }

    fn tick_of(&self, at: u64) -> u64 {
        if at == NEVER { NEVER } else { self.ticks.tick_not_before(at) }
    }

    fn occupy(&mut self, number: u32, home: impl FnOnce() -> Arc<dyn Home>) -> Arc<Block> {
        if self.blocks.len() <= row(number) {
            self.blocks.resize_with(row(number) + 1, Row::default);
        }
        let row = &mut self.blocks[row(number)];
        row.used += 1;
        let origin = self.origin;
        row.block.get_or_insert_with(|| Arc::new(Block::new(home(), origin))).clone()
    }

    fn vacate(&mut self, number: u32) {
        if let Some(entry) = self.seats.get_mut(number) {
            *entry = slab::Slot::fresh(0);
        }
        self.reported.remove(&number);
        self.seats.release(number);
        let row = &mut self.blocks[row(number)];
        row.used -= 1;
        if row.used == 0 {
            row.block = None;
        }
    }
}

fn seat_of(filed: NonZeroU32) -> u32 {
    filed.get() - 1
}

fn row(number: u32) -> usize {
    number as usize / BLOCK
}

fn pulse(blocks: &[Row], number: u32) -> Option<&Pulse> {
    Some(blocks.get(row(number))?.block.as_ref()?.pulse(number))
}

/// A home for blocks whose handles ask it nothing.
#[cfg(test)]
struct Nowhere;

#[cfg(test)]
impl Home for Nowhere {
    fn now(&self) -> Instant {
        Instant::now()
    }
    fn leave(&self, _seat: u32) {}
    fn set_policy(&self, _seat: u32, _policy: IdlePolicy) {}
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::{AtomicUsize, Mutex, Ordering};
    use loom::thread;
    use std::num::NonZeroU64;

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
        crate::sync::check(|| {
            let drops = Arc::new(AtomicUsize::new(0));
            let ticks = TickScale::new(NonZeroU64::MIN);
            let roster = Arc::new(Mutex::new(Roster::new(Instant::now(), ticks)));
            let at = |now| Terms { now, scale: super::super::policy::Scale::ONE };
            let policy = IdlePolicy::new().all(Duration::from_nanos(5));
            let entered =
                roster.lock().enter(Counted(drops.clone()), policy, at(1), || Arc::new(Nowhere));
            let Ok(Seat { number, block }) = entered else { panic!("there is a seat") };
            let checker = thread::spawn({
                let roster = roster.clone();
                move || {
                    let batch = roster.lock().take_idle(at(9), false);
                    let silent = batch.iter().filter(|idle| idle.is_still_silent()).count();
                    assert!(silent <= 1);
                    let returned = roster.lock().put_back(batch, at(9));
                    assert!(returned.again.is_empty());
                    drop(returned.dismissed);
                }
            });
            block.pulse(number).touch(8);
            let left = roster.lock().leave(number);
            drop(left);
            checker.join().unwrap();
            assert_eq!(drops.load(Ordering::Relaxed), 1);
            let roster = roster.lock();
            assert_eq!((roster.len(), roster.seats.used()), (0, 0));
        });
    }
}
