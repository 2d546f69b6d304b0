//! A segment: 1024 seats, and the wheel in which their connections are filed.
//!
//! A *seat* is a connection's place. The connection keeps it as long as it is watched or its handle
//! exists. Seats lie in *rows* of 64; a row shares one `ActivityBlock`. A *check* of a seat
//! reads its last activity, and reports or refiles its connection.
//!
//! A shard has as many segments as it needs (`segments.rs`). So it handles a bounded number of
//! connections under each hold of its lock, and a segment without used seats gives its memory back.
//! The caller tells a segment the time; it has no lock and no timer.
//!
//! The states of a seat, all under the lock of its shard:
//!
//! | place | state | transitions |
//! |---|---|---|
//! | Free | not in use | enter -> Filed |
//! | Filed | in the wheel; the connection is here | due and idle, or the timer stopped -> Out; taken -> Ended; handle dropped -> Free |
//! | Out | the callback has the connection | answered -> Filed or Ended; handle dropped -> Orphaned |
//! | Orphaned | the callback has the connection; the handle was dropped | answered -> Free |
//! | Ended | not watched any more; the handle still exists | handle dropped -> Free |
//!
//! Invariants:
//! 1. A Filed seat is in the wheel exactly once, not after the tick in which its connection may
//!    first be idle. A touch only makes that tick later, so no silence is missed. A seat that comes
//!    up too early is checked and refiled. There is one exception: if `all_at` is set, durations
//!    have become shorter, and all Filed seats are checked at that tick.
//! 2. A connection is either here or in one `Idle`, so only one pass reports it at a time.
//! 3. A row and its block are kept while one of its seats is in use. While the segment has a used
//!    seat, at most one unused row is kept too. A segment without used seats has no block, because a block
//!    keeps its shard alive, and the shard owns the segment.

use super::activity::{Activity, ActivityBlock, BLOCK, Reading, Watcher};
use super::event::{Answer, Idle, IdleEvent, Outcome, Seat};
use super::kind::IdleKind;
use super::policy::IdlePolicy;
use super::verdict::{CheckTime, Reported, Verdict, jitter_share, verdict};
use crate::base::sync::Arc;
use crate::time::tick::{NEVER, TickScale};
use crate::wheel::{HashedWheel, Key};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// The number of seats in a segment. All of them can be checked under one hold of the lock.
pub(super) const SEATS: usize = 1024;

const ROWS: usize = SEATS / BLOCK;

/// Few buckets, because there are few entries: with 1024 entries a bucket is still short.
const TICKS_PER_WHEEL: usize = 64;

/// A wheel that never had more used seats than this need not be renewed after a burst.
const FEW: usize = SEATS / 8;

pub(super) struct Segment<T> {
    origin: Instant,
    ticks: TickScale,
    /// The number of the first seat.
    first: u32,
    /// The Filed seats. It holds seat numbers plus one, which saves four bytes for each.
    wheel: HashedWheel<NonZeroU32>,
    rows: [Option<Box<Row<T>>>; ROWS],
    /// A row without used seats that is kept, for a connection that comes and goes.
    spare: Option<usize>,
    /// The number of seats that are not Free.
    used: usize,
    /// The maximum of `used` since the wheel was made.
    peak: usize,
    /// The number of seats in place Out.
    out: usize,
    /// The tick at which all Filed seats are checked; `NEVER` if no such check is requested.
    all_at: u64,
}

/// The seats of one block.
struct Row<T> {
    block: Arc<ActivityBlock>,
    /// One bit for each seat in use.
    used: u64,
    entries: [Entry<T>; BLOCK],
    reports: Reports,
}

struct Entry<T> {
    connection: Option<T>,
    policy: Option<IdlePolicy>,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    Free,
    Filed(Key),
    Out,
    Orphaned,
    Ended,
}

/// The past reports of a row's connections. Most rows have none.
#[derive(Default)]
struct Reports {
    /// One bit for each seat with a report.
    told: u64,
    by_seat: Option<Box<[Reported; BLOCK]>>,
}

/// The result of the answers to a batch.
pub(super) struct Returned<T> {
    /// Connections to report again, because another kind is due too.
    pub(super) again: Vec<Idle<T>>,
    /// Connections that are no longer watched. The caller drops them outside the lock.
    pub(super) dismissed: Vec<T>,
}

impl<T> Returned<T> {
    pub(super) fn new() -> Self {
        Self { again: Vec::new(), dismissed: Vec::new() }
    }
}

impl<T> Segment<T> {
    pub(super) fn new(origin: Instant, ticks: TickScale, first: u32) -> Self {
        Self {
            origin,
            ticks,
            first,
            wheel: new_wheel(),
            rows: [const { None }; ROWS],
            spare: None,
            used: 0,
            peak: 0,
            out: 0,
            all_at: NEVER,
        }
    }

    /// The number of watched connections.
    pub(super) fn len(&self) -> usize {
        self.wheel.len() + self.out
    }

    /// The number of seats that are not Free.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The tick at which the next check is needed.
    pub(super) fn next_check(&self) -> u64 {
        if self.wheel.is_empty() {
            return NEVER; // all of its entries are dead
        }
        self.wheel.next_expiry().unwrap_or(NEVER).min(self.all_at)
    }

    /// Gives the connection a seat. Returns the connection if all seats are in use.
    pub(super) fn enter(
        &mut self,
        connection: T,
        policy: IdlePolicy,
        time: CheckTime,
        watcher: impl FnOnce() -> Arc<dyn Watcher>,
    ) -> Result<Seat, T> {
        let has_room = |row: &Option<Box<Row<T>>>| row.as_ref().is_none_or(|row| row.used != !0);
        let Some(at) = self.rows.iter().position(has_room) else { return Err(connection) };
        let row = self.rows[at].get_or_insert_with(|| Row::new(watcher(), self.origin));
        let number = self.first + (at * BLOCK) as u32 + row.used.trailing_ones();
        row.occupy(number, connection, policy);
        row.block.activity(number).begin(time.now);
        let block = row.block.clone();
        self.used += 1;
        self.peak = self.peak.max(self.used);
        self.spare = self.spare.filter(|&spare| spare != at);
        let at = self.earliest(number, time);
        self.file(number, at);
        Ok(Seat { block, number })
    }

    /// Ends a seat whose handle was dropped. Returns the connection, if it is here.
    pub(super) fn leave(&mut self, number: u32) -> Option<T> {
        let row = self.row_mut(number)?;
        let entry = &mut row.entries[place_in_row(number)];
        match entry.place {
            Place::Filed(key) => {
                self.wheel.remove(key);
            }
            Place::Out => {
                entry.place = Place::Orphaned;
                row.block.activity(number).abandon();
                self.out -= 1;
                return None;
            }
            Place::Free | Place::Orphaned | Place::Ended => {}
        }
        self.vacate(number)
    }

    /// Changes the policy of a seat.
    pub(super) fn set_policy(&mut self, number: u32, policy: IdlePolicy, time: CheckTime) {
        let Some(entry) = self.entry_mut(number) else { return };
        entry.policy = Some(policy);
        // A connection that is out is filed by its new policy when it comes back.
        let Place::Filed(key) = entry.place else { return };
        let at = self.earliest(number, time);
        // If it is due later than before, the check at the former tick refiles it.
        if self.wheel.deadline(key).is_none_or(|tick| tick_of(self.ticks, at) < tick) {
            self.wheel.remove(key);
            self.file(number, at);
        }
    }

    /// Requests a check of all Filed seats at `tick`.
    pub(super) fn check_all_at(&mut self, tick: u64) {
        if !self.wheel.is_empty() {
            self.all_at = self.all_at.min(tick);
        }
    }

    /// Checks all seats that are due. Takes out the idle connections and refiles the others. Returns
    /// the number of checks. `due` must be empty, and is left empty.
    pub(super) fn take_idle(
        &mut self,
        time: CheckTime,
        due: &mut Vec<u32>,
        idle: &mut Vec<Idle<T>>,
    ) -> usize {
        let tick = self.ticks.tick_at(time.now);
        if self.all_at <= tick {
            self.all_at = NEVER;
            due.extend(self.wheel.drain().into_iter().map(|(_, filed)| seat_of(filed)));
        } else {
            self.wheel.expire(tick, |_, filed| due.push(seat_of(filed)));
        }
        let checks = due.len();
        idle.extend(due.drain(..).filter_map(|number| self.check(number, time)));
        checks
    }

    /// Makes `next_check` exact. Refiles the active connections that come up before the first silent
    /// one. Takes each check from the budget `checks`. Returns false if the budget did not suffice.
    pub(super) fn confirm_next(&mut self, checks: &mut usize, time: CheckTime) -> bool {
        if self.all_at != NEVER {
            return true;
        }
        let Self { wheel, rows, ticks, .. } = self;
        let budget = *checks;
        wheel.confirm_next(NEVER, budget, |&filed| {
            *checks = checks.saturating_sub(1);
            let number = seat_of(filed);
            match rows[row_of(number)].as_mut()?.verdict(number, time)? {
                Verdict::CheckAt(at) => Some(tick_of(*ticks, at)),
                Verdict::Idle(..) => None,
            }
        })
    }

    /// The tick in which a seat will be checked, if it is Filed.
    pub(super) fn filed_at(&self, number: u32) -> Option<u64> {
        let row = self.rows[row_of(number)].as_ref()?;
        let Place::Filed(key) = row.entries[place_in_row(number)].place else { return None };
        self.wheel.deadline(key)
    }

    /// Takes back a reported connection with its answer. If its policy has several kinds of
    /// silence, another kind may be due too.
    pub(super) fn put_back(&mut self, idle: Idle<T>, time: CheckTime, returned: &mut Returned<T>) {
        let (number, kind) = (idle.seat.number, idle.event().kind);
        let Some(row) = self.row_mut(number) else { return };
        let entry = &mut row.entries[place_in_row(number)];
        if matches!(entry.place, Place::Orphaned) {
            self.vacate(number);
            returned.dismissed.push(idle.connection);
            return;
        }
        let stop = idle.outcome == Outcome::Delivered(Answer::StopWatching);
        if stop || kind == IdleKind::TimerStopped {
            entry.place = Place::Ended;
            self.out -= 1;
            returned.dismissed.push(idle.connection);
            return;
        }
        if idle.outcome != Outcome::Void {
            row.reports.note(number, kind, time.now);
        }
        entry.connection = Some(idle.connection);
        self.out -= 1;
        returned.again.extend(self.check(number, time));
    }

    /// Takes out all connections that are here, because the timer has stopped.
    pub(super) fn take_all(&mut self, now: u64, idle: &mut Vec<Idle<T>>) {
        let filed = self.wheel.drain();
        let numbers = filed.into_iter().map(|(_, filed)| seat_of(filed));
        idle.extend(numbers.filter_map(|number| self.take_stopped(number, now)));
    }

    /// The connections that are not paused and have been silent since `latest` or longer. Each is
    /// given by its last activity and its seat.
    pub(super) fn silent_since(&self, latest: u64) -> Vec<(u64, u32)> {
        let mut silent = Vec::new();
        for (row, first) in self.rows.iter().zip((self.first..).step_by(BLOCK)) {
            let Some(row) = row else { continue };
            for (entry, number) in row.entries.iter().zip(first..) {
                let Place::Filed(_) = entry.place else { continue };
                let Reading { paused, since: [_, _, since] } = row.block.activity(number).reading();
                if !paused && since <= latest {
                    silent.push((since, number));
                }
            }
        }
        silent
    }

    /// Stops watching a connection and returns it, unless it was active after `since` or is paused.
    pub(super) fn take_if_silent_since(&mut self, number: u32, since: u64) -> Option<T> {
        let reading = self.activity(number)?.reading();
        let entry = self.entry_mut(number)?;
        let Place::Filed(key) = entry.place else { return None };
        if reading.paused || reading.since[2] != since {
            return None;
        }
        entry.place = Place::Ended;
        let connection = entry.connection.take();
        self.wheel.remove(key);
        connection
    }

    /// Checks a seat whose entry has left the wheel. Refiles it, or takes out its connection if
    /// that is idle.
    fn check(&mut self, number: u32, time: CheckTime) -> Option<Idle<T>> {
        match self.verdict(number, time)? {
            Verdict::CheckAt(at) => {
                self.file(number, at);
                None
            }
            Verdict::Idle(event, since) => self.take_out(number, event, since),
        }
    }

    fn verdict(&mut self, number: u32, time: CheckTime) -> Option<Verdict> {
        self.row_mut(number)?.verdict(number, time)
    }

    /// The earliest time at which the connection may be idle.
    fn earliest(&mut self, number: u32, time: CheckTime) -> u64 {
        match self.verdict(number, time) {
            Some(Verdict::CheckAt(at)) => at,
            Some(Verdict::Idle(..)) | None => time.now,
        }
    }

    fn take_stopped(&mut self, number: u32, now: u64) -> Option<Idle<T>> {
        let since = self.activity(number)?.reading().since[2];
        let silent_for = Duration::from_nanos(now.saturating_sub(since));
        let event = IdleEvent { kind: IdleKind::TimerStopped, first: true, silent_for };
        self.take_out(number, event, since)
    }

    fn take_out(&mut self, number: u32, event: IdleEvent, since: u64) -> Option<Idle<T>> {
        let row = self.row_mut(number)?;
        let entry = &mut row.entries[place_in_row(number)];
        let connection = entry.connection.take()?;
        entry.place = Place::Out;
        let block = row.block.clone();
        self.out += 1;
        Some(Idle::new(connection, event, Seat { block, number }, since))
    }

    fn file(&mut self, number: u32, at: u64) {
        if self.wheel.is_empty() {
            self.all_at = NEVER; // the seats to be checked have left
        }
        self.file_under(number, tick_of(self.ticks, at));
    }

    fn file_under(&mut self, number: u32, tick: u64) {
        let key = self.wheel.insert(tick, NonZeroU32::MIN.saturating_add(number));
        if let Some(entry) = self.entry_mut(number) {
            entry.place = Place::Filed(key);
        }
    }

    /// Frees a seat. Returns the connection, if it is here.
    fn vacate(&mut self, number: u32) -> Option<T> {
        let row = self.row_mut(number)?;
        let connection = row.vacate(number);
        let is_empty = row.used == 0;
        self.used -= 1;
        if is_empty {
            self.emptied(row_of(number));
        }
        if self.peak > FEW && self.used <= self.peak / 8 {
            self.renew_wheel();
        }
        connection
    }

    /// Refiles the seats that are left after a burst in a new wheel, which has not grown.
    #[cold]
    fn renew_wheel(&mut self) {
        let mut former = std::mem::replace(&mut self.wheel, new_wheel());
        // The new wheel is empty. It must know the time before entries are filed, because their
        // rounds are counted from it.
        self.wheel.expire(former.current_tick().saturating_sub(1), |_, _| ());
        self.peak = self.used;
        for (tick, filed) in former.drain() {
            self.file_under(seat_of(filed), tick);
        }
    }

    /// Called when row `at` has no used seat left. If two rows have none, the last one is dropped.
    /// If the whole segment has none, all rows are dropped (invariant 3).
    fn emptied(&mut self, at: usize) {
        if self.used == 0 {
            self.rows = [const { None }; ROWS];
            self.spare = None;
            return;
        }
        let Some(spare) = self.spare.replace(at) else { return };
        self.spare = Some(at.min(spare));
        self.rows[at.max(spare)] = None;
    }

    fn row_mut(&mut self, number: u32) -> Option<&mut Row<T>> {
        self.rows[row_of(number)].as_deref_mut()
    }

    fn entry_mut(&mut self, number: u32) -> Option<&mut Entry<T>> {
        Some(&mut self.row_mut(number)?.entries[place_in_row(number)])
    }

    fn activity(&self, number: u32) -> Option<&Activity> {
        Some(self.rows[row_of(number)].as_ref()?.block.activity(number))
    }
}

impl<T> Row<T> {
    fn new(watcher: Arc<dyn Watcher>, origin: Instant) -> Box<Self> {
        Box::new(Self {
            block: Arc::new(ActivityBlock::new(watcher, origin)),
            used: 0,
            entries: std::array::from_fn(|_| Entry::free()),
            reports: Reports::default(),
        })
    }

    fn occupy(&mut self, number: u32, connection: T, policy: IdlePolicy) {
        self.used |= bit(number);
        let entry = &mut self.entries[place_in_row(number)];
        entry.connection = Some(connection);
        entry.policy = Some(policy);
    }

    fn vacate(&mut self, number: u32) -> Option<T> {
        self.used &= !bit(number);
        self.reports.forget(number);
        let entry = &mut self.entries[place_in_row(number)];
        std::mem::replace(entry, Entry::free()).connection
    }

    fn verdict(&mut self, number: u32, time: CheckTime) -> Option<Verdict> {
        let reading = self.block.activity(number).reading();
        let reported = self.reports.of(number);
        let active_after =
            |reported| reading.since.iter().zip(reported).all(|(&since, then)| since >= then);
        if reported.is_some_and(active_after) {
            self.reports.forget(number); // it has no effect any more
        }
        let policy = self.entries[place_in_row(number)].policy.as_ref()?;
        Some(verdict(
            policy.limits(),
            reading,
            reported.unwrap_or_default(),
            jitter_share(number),
            time,
        ))
    }
}

impl<T> Entry<T> {
    fn free() -> Self {
        Self { connection: None, policy: None, place: Place::Free }
    }
}

impl Reports {
    fn of(&self, number: u32) -> Option<Reported> {
        let by_seat = self.by_seat.as_ref().filter(|_| self.told & bit(number) != 0)?;
        Some(by_seat[place_in_row(number)])
    }

    fn note(&mut self, number: u32, kind: IdleKind, now: u64) {
        self.told |= bit(number);
        let by_seat = self.by_seat.get_or_insert_with(|| Box::new([Reported::default(); BLOCK]));
        by_seat[place_in_row(number)][kind as usize] = now;
    }

    fn forget(&mut self, number: u32) {
        self.told &= !bit(number);
        match &mut self.by_seat {
            Some(by_seat) if self.told != 0 => by_seat[place_in_row(number)] = Reported::default(),
            by_seat => *by_seat = None,
        }
    }
}

fn new_wheel() -> HashedWheel<NonZeroU32> {
    HashedWheel::new(TICKS_PER_WHEEL).expect("a small wheel of a valid size")
}

fn seat_of(filed: NonZeroU32) -> u32 {
    filed.get() - 1
}

/// The tick in which a connection is checked that may be idle from `at` on.
fn tick_of(ticks: TickScale, at: u64) -> u64 {
    if at == NEVER { NEVER } else { ticks.tick_not_before(at) }
}

fn row_of(number: u32) -> usize {
    number as usize % SEATS / BLOCK
}

fn place_in_row(number: u32) -> usize {
    number as usize % BLOCK
}

fn bit(number: u32) -> u64 {
    1 << place_in_row(number)
}

/// A watcher for tests whose handles never call it.
#[cfg(test)]
pub(super) struct NoWatcher;

#[cfg(test)]
impl Watcher for NoWatcher {
    fn now(&self) -> u64 {
        0
    }
    fn leave(&self, _seat: u32) {}
    fn set_policy(&self, _seat: u32, _policy: IdlePolicy) {}
}

#[cfg(all(test, not(loom)))]
mod tests;
