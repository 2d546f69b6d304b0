//! All seats of one shard, and the filing of their checks.
//!
//! A *check* of a seat reads its last activity, and reports or refiles its connection. The filing holds
//! a token for each seat that is Filed (see `row`): the number of the seat, with a version. If the seat
//! is filed again or leaves this stage, its previous token is dead.
//!
//! The shard's lock is held during every method here, so each method handles a bounded number of
//! connections, a *slice*. A caller that must handle all connections calls again, and releases the lock
//! between the calls. The caller tells the time; there is no lock and no timer here.
//!
//! Invariants:
//! 1. A Filed seat has a token under a tick that is not after the one in which its connection may first
//!    be idle. A touch only makes that tick later, so no silence is missed. A seat that comes up too
//!    early is checked and refiled. There are two exceptions: a connection that can never be idle has no
//!    token, and if durations have become shorter, the seats from row `walk` on are still to be checked.
//! 2. `room` has the numbers of all rows with a free seat, those without memory included. A new
//!    connection goes to the first of them, so the last rows become empty after a burst.
//! 3. Each row has a used seat. If no seat is used, there is no `spare` row either: a row's block keeps
//!    its shard alive, and the shard owns the row.

#[cfg(test)]
use super::activity::NoWatcher;
use super::activity::{BLOCK, Watcher};
use super::event::{Answer, Idle, IdleEvent, Seat};
use super::kind::IdleKind;
use super::policy::IdlePolicy;
use super::row::{Row, Stage};
use super::verdict::{CheckTime, Verdict};
use crate::base::sync::Arc;
use crate::time::tick::{NEVER, TickScale};
use crate::wheel::{Due, Filing, Hashed, NextLive, Standing, Token, is_sweep_worth_it};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The most checks under one hold of the lock, up to the end of a row. A check takes 100 to 200 ns with
/// cold memory and while other threads wait for the lock.
pub(super) const CHECKS_PER_SLICE: usize = 2048;

/// The most checks that confirm the next check when one connection leaves. They suffice for as many dead
/// tokens as a sweep leaves beside few connections.
pub(super) const CHECKS_AFTER_LEAVE: usize = DEAD_ALLOWED;

/// The most entries that a sweep checks when one connection leaves.
const SWEPT_AFTER_LEAVE: usize = 1024;

/// The rows whose silent connections are listed under one hold of the lock.
const ROWS_PER_LIST: usize = 16;

const TICKS_PER_WHEEL: usize = 256;

/// Up to this many dead entries, a sweep is never worth its cost.
const DEAD_ALLOWED: usize = 256;

const MOST_ROWS: usize = u32::MAX as usize / BLOCK;

/// The number of versions. A prime, so that no round number of connections that are filed in turn meets its own dead
/// tokens: no sweep would drop these.
const VERSIONS: u16 = 65_521;

/// The most connections that one shard can watch.
pub(super) const LIMIT: usize = MOST_ROWS * BLOCK;

pub(super) struct Seats<T> {
    origin: Instant,
    ticks: TickScale,
    rows: Vec<Option<Box<Row<T>>>>,
    room: BTreeSet<u32>,
    filing: Filing<Hashed>,
    /// A row that was taken away, for the next one that is needed.
    spare: Option<Box<Row<T>>>,
    /// The version of the last token. A dead token that has the version of a live one costs a check.
    version: u16,
    /// The earliest live token, as far as it is known.
    next: Option<Due>,
    /// The row at which a check of all connections continues.
    walk: Option<usize>,
    /// The row at which the next slice of stopped connections begins.
    turn: usize,
    filed: usize,
    out: usize,
}

impl<T> Seats<T> {
    pub(super) fn new(origin: Instant, ticks: TickScale) -> Self {
        Self {
            origin,
            ticks,
            rows: Vec::new(),
            room: BTreeSet::new(),
            filing: new_filing(),
            spare: None,
            version: 0,
            next: None,
            walk: None,
            turn: 0,
            filed: 0,
            out: 0,
        }
    }

    /// The number of watched connections.
    pub(super) fn len(&self) -> usize {
        self.filed + self.out
    }

    /// The tick at which the next check is needed. It may be too early, if the connection has left, but
    /// never too late.
    pub(super) fn next_check(&self) -> u64 {
        if self.walk.is_some() {
            return 0;
        }
        let next = self.filing.next_expiry().filter(|_| self.filed > 0);
        next.unwrap_or(NEVER)
    }

    /// Whether the next check is for the connection in this seat.
    pub(super) fn is_next(&self, number: u32) -> bool {
        self.next.is_some_and(|next| next.token.index == number)
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
        let Self { spare, origin, .. } = self;
        let made = || spare.take().unwrap_or_else(|| Row::new(watcher(), *origin));
        let row = self.rows[at].get_or_insert_with(made);
        let number = (at * BLOCK) as u32 + row.first_free();
        row.occupy(number, connection, policy, time.now);
        if row.is_full() {
            self.room.remove(&(at as u32));
        }
        let block = row.block.clone();
        if self.filed == 0 {
            self.walk = None; // the seats to be checked have left
        }
        self.filed += 1;
        let at = self.earliest(number, time);
        self.file(number, at);
        Ok(Seat { block, number })
    }

    /// Ends a seat whose handle was dropped. Returns the connection, if it is here.
    pub(super) fn leave(&mut self, number: u32) -> Option<T> {
        let row = self.row_mut(number)?;
        match row.occupant_mut(number).stage {
            Stage::Filed => self.filed -= 1,
            Stage::Out => {
                row.occupant_mut(number).stage = Stage::Orphaned;
                row.activity(number).abandon();
                self.out -= 1;
                return None;
            }
            Stage::Free | Stage::Orphaned | Stage::Ended => {}
        }
        self.vacate(number)
    }

    /// Changes the policy of a seat.
    pub(super) fn set_policy(&mut self, number: u32, policy: IdlePolicy, time: CheckTime) {
        let before = self.earliest(number, time);
        let Some(row) = self.row_mut(number) else { return };
        row.set_policy(number, policy, time.now);
        let occupant = row.occupant_mut(number);
        // A connection that is out is filed by its new policy when it comes back.
        if occupant.stage != Stage::Filed {
            return;
        }
        let at = self.earliest(number, time);
        // If it is due later than before, the check at the previous tick refiles it.
        if at < before {
            self.file(number, at);
            self.sweep();
        }
    }

    /// Stops watching a connection and returns it, unless it was active after `since` or is paused.
    pub(super) fn take_if_silent_since(&mut self, number: u32, since: u64) -> Option<T> {
        let row = self.row_mut(number)?;
        let reading = row.block.reading(number);
        let occupant = row.occupant_mut(number);
        let silent_since = reading.silent_since(IdleKind::Both);
        if occupant.stage != Stage::Filed || silent_since != Some(since) {
            return None;
        }
        occupant.stage = Stage::Ended;
        let connection = occupant.connection.take();
        self.filed -= 1;
        self.sweep();
        connection
    }

    /// Requests a check of all connections that are here. Returns the previous filing, which the caller
    /// drops outside the lock.
    pub(super) fn check_all(&mut self) -> Option<Filing<Hashed>> {
        if self.filed == 0 {
            return None;
        }
        // All seats are filed anew. An empty filing must know the time before.
        let tick_now = self.filing.current_tick().saturating_sub(1);
        let previous = std::mem::replace(&mut self.filing, new_filing());
        self.filing.pop(tick_now);
        self.next = None;
        self.walk = Some(0);
        Some(previous)
    }

    /// Checks one slice of the due connections. Takes out the idle ones and refiles the others. If
    /// more are left, `next_check` is not after now, and the next call continues.
    pub(super) fn take_idle(&mut self, time: CheckTime) -> Vec<Idle<T>> {
        let mut idle = Vec::new();
        let mut checks = self.walk_on(time, &mut idle);
        let tick_now = self.ticks.tick_at(time.now);
        self.next = None;
        while checks < CHECKS_PER_SLICE {
            let Some(Due { token, .. }) = self.filing.pop(tick_now) else { break };
            checks += 1;
            if live_row(&mut self.rows, token).is_some() {
                idle.extend(self.check(token.index, time));
            }
        }
        idle
    }

    /// Continues a check of all connections for one slice. Returns the number of checks.
    fn walk_on(&mut self, time: CheckTime, idle: &mut Vec<Idle<T>>) -> usize {
        let mut checks = 0;
        while let Some(at) = self.walk.filter(|_| checks < CHECKS_PER_SLICE) {
            self.walk = Some(at + 1).filter(|&next| next < self.rows.len());
            for number in self.filed_in(at) {
                checks += 1;
                idle.extend(self.check(number, time));
            }
            checks += 1;
        }
        checks
    }

    /// Makes `next_check` exact, so that no wake-up comes for a connection that has left or was active.
    /// Refiles the active connections that come up before the first silent one. Returns false if
    /// a budget of `checks` did not suffice; the next call continues.
    pub(super) fn confirm_next_check(&mut self, time: CheckTime, checks: usize) -> bool {
        let Self { filing, rows, ticks, .. } = self;
        let found = filing.confirm_next(NEVER, checks, |Due { tick, token }| {
            match live_row(rows, token).and_then(|row| row.verdict(token.index, time)) {
                None | Some(Verdict::CheckAt(NEVER)) => Standing::Dead,
                Some(Verdict::Idle(..)) => Standing::Due,
                Some(Verdict::CheckAt(at)) => match ticks.tick_not_before(at) {
                    later if later > tick => Standing::Later(later),
                    _ => Standing::Due,
                },
            }
        });
        self.next = match found {
            NextLive::At(due) => Some(due),
            NextLive::Later | NextLive::Unknown => None,
        };
        found != NextLive::Unknown
    }

    /// Takes back a batch of reported connections with their answers. Returns those to report again, because another kind
    /// is due too, and those that are no longer watched, which the caller drops outside the lock.
    pub(super) fn put_back(
        &mut self,
        batch: Vec<Idle<T>>,
        time: CheckTime,
    ) -> (Vec<Idle<T>>, Vec<T>) {
        let (mut again, mut dismissed) = (Vec::new(), Vec::new());
        for idle in batch {
            again.extend(self.put_one_back(idle, time, &mut dismissed));
        }
        (again, dismissed)
    }

    /// If the connection's policy has several kinds of silence, another kind may be due too.
    fn put_one_back(
        &mut self,
        idle: Idle<T>,
        time: CheckTime,
        dismissed: &mut Vec<T>,
    ) -> Option<Idle<T>> {
        let (number, kind) = (idle.seat.number, idle.event().kind);
        let row = self.row_mut(number)?;
        let occupant = row.occupant_mut(number);
        if occupant.stage == Stage::Orphaned {
            self.vacate(number);
            dismissed.push(idle.connection);
            return None;
        }
        if idle.answer == Some(Answer::StopWatching) || kind == IdleKind::TimerStopped {
            occupant.stage = Stage::Ended;
            dismissed.push(idle.connection);
            self.out -= 1;
            return None;
        }
        occupant.connection = Some(idle.connection);
        occupant.stage = Stage::Filed;
        match idle.answer {
            None => {}
            Some(Answer::Progressed) => row.note_progress(number, idle.next_from),
            Some(_) => row.note_report(number, kind, idle.next_from),
        }
        self.out -= 1;
        self.filed += 1;
        self.check(number, time)
    }

    /// Takes out one slice of all connections that are here, because the timer has stopped. An empty
    /// slice means that none is left.
    pub(super) fn take_stopped(&mut self, now: u64) -> Vec<Idle<T>> {
        let mut idle = Vec::new();
        for _ in 0..self.rows.len() {
            if idle.len() >= CHECKS_PER_SLICE {
                break;
            }
            let at = self.turn % self.rows.len();
            self.turn = at + 1;
            let numbers = self.filed_in(at).into_iter();
            idle.extend(numbers.filter_map(|number| self.take_one_stopped(number, now)));
        }
        idle
    }

    /// The connections of the next rows that are not paused and have been silent since `latest` or
    /// longer. Each is given by its last activity and its seat. `None` after the last row. `part` counts
    /// the calls.
    pub(super) fn silent_since(&self, latest: u64, part: usize) -> Option<Vec<(u64, u32)>> {
        let begin = part * ROWS_PER_LIST;
        let rows = self.rows.get(begin..).filter(|rows| !rows.is_empty())?;
        let mut silent = Vec::new();
        for (row, at) in rows.iter().take(ROWS_PER_LIST).zip(begin..) {
            let Some(row) = row else { continue };
            for place in row.filed() {
                let since = row.block.reading(place).silent_since(IdleKind::Both);
                if let Some(since) = since.filter(|&since| since <= latest) {
                    silent.push((since, (at * BLOCK) as u32 + place));
                }
            }
        }
        Some(silent)
    }

    /// Checks a seat that has no token. Files it again, or takes out its connection if that is idle.
    fn check(&mut self, number: u32, time: CheckTime) -> Option<Idle<T>> {
        match self.row_mut(number)?.verdict(number, time)? {
            Verdict::CheckAt(at) => {
                self.file(number, at);
                None
            }
            Verdict::Idle(event, since) => self.take_out(number, event, since, time.now),
        }
    }

    /// The earliest time at which the connection may be idle.
    fn earliest(&mut self, number: u32, time: CheckTime) -> u64 {
        match self.row_mut(number).and_then(|row| row.verdict(number, time)) {
            Some(Verdict::CheckAt(at)) => at,
            Some(Verdict::Idle(..)) | None => time.now,
        }
    }

    fn take_one_stopped(&mut self, number: u32, now: u64) -> Option<Idle<T>> {
        let since = self.row_mut(number)?.block.reading(number).last();
        let silent_for = Duration::from_nanos(now.saturating_sub(since));
        let event = IdleEvent { kind: IdleKind::TimerStopped, first: true, silent_for };
        self.take_out(number, event, since, now)
    }

    fn take_out(&mut self, number: u32, event: IdleEvent, since: u64, now: u64) -> Option<Idle<T>> {
        let row = self.row_mut(number)?;
        let block = row.block.clone();
        let occupant = row.occupant_mut(number);
        let connection = occupant.connection.take()?;
        occupant.stage = Stage::Out;
        self.filed -= 1;
        self.out += 1;
        Some(Idle::new(connection, event, Seat { block, number }, since, now))
    }

    /// Files a seat for a check at the time `at`. Its previous token is dead.
    fn file(&mut self, number: u32, at: u64) {
        let version = (self.version + 1) % VERSIONS;
        let Some(row) = self.row_mut(number) else { return };
        let occupant = row.occupant_mut(number);
        (occupant.stage, occupant.version) = (Stage::Filed, version);
        let token = Token { index: number, version };
        self.version = version;
        if at == NEVER {
            return;
        }
        let tick = self.ticks.tick_not_before(at);
        self.filing.insert(tick, token);
        if self.next.is_none_or(|next| tick < next.tick) {
            self.next = Some(Due { tick, token });
        }
    }

    /// Sweeps some dead tokens out if there are too many. The next call continues.
    fn sweep(&mut self) {
        let Self { filing, rows, filed, .. } = self;
        if is_sweep_worth_it(filing.entries(), *filed, DEAD_ALLOWED) {
            filing.sweep(SWEPT_AFTER_LEAVE, |token| live_row(rows, token).is_some());
        }
    }

    /// The Filed seats of a row.
    fn filed_in(&self, at: usize) -> Vec<u32> {
        let row = self.rows.get(at).and_then(Option::as_deref);
        row.into_iter().flat_map(Row::filed).map(|place| (at * BLOCK) as u32 + place).collect()
    }

    /// A row with a free seat.
    fn with_room(&mut self) -> Option<usize> {
        if let Some(&first) = self.room.first() {
            return Some(first as usize);
        }
        let at = self.rows.len();
        if at == MOST_ROWS {
            return None;
        }
        self.rows.push(None);
        self.room.insert(at as u32);
        Some(at)
    }

    /// Frees a seat. Returns the connection, if it is here.
    fn vacate(&mut self, number: u32) -> Option<T> {
        let at = row_of(number);
        let row = self.row_mut(number)?;
        let was_full = row.is_full();
        let connection = row.vacate(number);
        let is_empty = row.is_empty();
        if was_full {
            self.room.insert(at as u32);
        }
        if is_empty {
            self.remove_row(at);
        }
        self.sweep();
        connection
    }

    /// Takes away a row without used seats.
    #[cold]
    fn remove_row(&mut self, at: usize) {
        let Some(row) = self.rows[at].take() else { return };
        while self.rows.last().is_some_and(Option::is_none) {
            self.rows.pop();
            self.room.remove(&(self.rows.len() as u32));
        }
        self.spare = Some(row).filter(|_| !self.rows.is_empty());
        if self.rows.len() < self.rows.capacity() / 4 {
            self.rows.shrink_to(2 * self.rows.len());
        }
    }

    #[inline]
    fn row_mut(&mut self, number: u32) -> Option<&mut Row<T>> {
        self.rows.get_mut(row_of(number))?.as_deref_mut()
    }
}

fn new_filing() -> Filing<Hashed> {
    let wheel = Hashed::new(TICKS_PER_WHEEL).expect("a small wheel of a valid size");
    Filing::new(wheel)
}

/// The row of a token's seat, if the token is live.
#[inline]
fn live_row<T>(rows: &mut [Option<Box<Row<T>>>], token: Token) -> Option<&mut Row<T>> {
    let row = rows.get_mut(row_of(token.index))?.as_deref_mut()?;
    let occupant = row.occupant_mut(token.index);
    let is_live = occupant.stage == Stage::Filed && occupant.version == token.version;
    is_live.then_some(row)
}

fn row_of(number: u32) -> usize {
    number as usize / BLOCK
}

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
