//! A row: 64 seats that share an `ActivityBlock`.
//!
//! A *seat* is a connection's place. The connection keeps it as long as it is watched or its handle
//! exists. The stages of a seat, all under the lock of its shard:
//!
//! | stage | meaning | transitions |
//! |---|---|---|
//! | Free | not in use | enter -> Filed |
//! | Filed | waits for its check; the connection is here | idle, or the timer stopped -> Out; taken -> Ended; handle dropped -> Free |
//! | Out | the callback has the connection | answered -> Filed or Ended; handle dropped -> Orphaned |
//! | Orphaned | the callback has the connection; the handle was dropped | answered -> Free |
//! | Ended | not watched any more; the handle still exists | handle dropped -> Free |
//!
//! A connection is either here or in one `Idle`, so only one pass reports it at a time.

use super::activity::{Activity, ActivityBlock, BLOCK, Watcher};
use super::kind::IdleKind;
use super::policy::IdlePolicy;
use super::verdict::{CheckTime, Past, Reported, Verdict, jitter_share, verdict};
use crate::base::sync::Arc;
use crate::time::tick::NEVER;
use std::time::Instant;

pub(super) struct Row<T> {
    pub(super) block: Arc<ActivityBlock>,
    /// One bit for each seat in use.
    used: u64,
    occupants: [Occupant<T>; BLOCK],
    reports: LastReports,
    /// When the connections whose policies have a maximum age began; `NEVER` for the others. Most rows have none.
    births: Option<Box<[u64; BLOCK]>>,
}

pub(super) struct Occupant<T> {
    pub(super) connection: Option<T>,
    pub(super) policy: Option<IdlePolicy>,
    pub(super) stage: Stage,
    /// That of the seat's last token. All others are dead.
    pub(super) version: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Free,
    Filed,
    Out,
    Orphaned,
    Ended,
}

/// The last reports of a row's connections. Most rows have none.
#[derive(Default)]
struct LastReports {
    /// One bit for each seat with a report.
    reported: u64,
    silences: Option<Box<[[u64; SILENCES]; BLOCK]>>,
    /// The same for the other kinds. Most rows that have reports have none of these.
    others: Option<Box<[[u64; OTHERS]; BLOCK]>>,
}

/// The first kinds: nothing was read, written, or both.
const SILENCES: usize = 3;
const OTHERS: usize = IdleKind::LIMITED.len() - SILENCES;

impl<T> Row<T> {
    pub(super) fn new(watcher: Arc<dyn Watcher>, origin: Instant) -> Box<Self> {
        let free = |_| Occupant { connection: None, policy: None, stage: Stage::Free, version: 0 };
        Box::new(Self {
            block: Arc::new(ActivityBlock::new(watcher, origin)),
            used: 0,
            occupants: std::array::from_fn(free),
            reports: LastReports::default(),
            births: None,
        })
    }

    pub(super) fn is_full(&self) -> bool {
        self.used == !0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The first free seat. The row must not be full.
    pub(super) fn first_free(&self) -> u32 {
        self.used.trailing_ones()
    }

    #[inline]
    pub(super) fn occupant_mut(&mut self, number: u32) -> &mut Occupant<T> {
        &mut self.occupants[place_in_row(number)]
    }

    /// The places in the row of the Filed seats.
    pub(super) fn filed(&self) -> impl Iterator<Item = u32> {
        let occupants = self.occupants.iter().zip(0..);
        occupants.filter(|(occupant, _)| occupant.stage == Stage::Filed).map(|(_, place)| place)
    }

    pub(super) fn activity(&self, number: u32) -> &Activity {
        self.block.activity(number)
    }

    /// Gives a connection a free seat. The caller files it.
    pub(super) fn occupy(&mut self, number: u32, connection: T, policy: IdlePolicy, now: u64) {
        self.used |= bit(number);
        self.occupant_mut(number).connection = Some(connection);
        self.block.begin(number, now);
        self.set_policy(number, policy, now);
    }

    /// An age counts from the first policy that has one.
    pub(super) fn set_policy(&mut self, number: u32, policy: IdlePolicy, now: u64) {
        let asks = |policy: &IdlePolicy| policy.limits().has(IdleKind::WaitingWrite);
        if asks(&policy) && !self.occupant_mut(number).policy.as_ref().is_some_and(asks) {
            self.block.watch_waiting_writes();
            // An attempt before may have been recorded, because a neighbour's policy asks for it.
            self.block.end_waiting_write(number);
        }
        if policy.limits().has(IdleKind::Age) {
            let births = self.births.get_or_insert_with(|| Box::new([NEVER; BLOCK]));
            let birth = &mut births[place_in_row(number)];
            *birth = now.min(*birth);
        }
        self.occupant_mut(number).policy = Some(policy);
    }

    /// Frees a seat. Returns the connection, if it is here.
    pub(super) fn vacate(&mut self, number: u32) -> Option<T> {
        self.used &= !bit(number);
        self.reports.forget(number);
        if let Some(births) = &mut self.births {
            births[place_in_row(number)] = NEVER;
        }
        let occupant = self.occupant_mut(number);
        occupant.stage = Stage::Free;
        occupant.policy = None;
        occupant.connection.take()
    }

    /// The verdict on an occupant. `None` for a free seat.
    pub(super) fn verdict(&mut self, number: u32, time: CheckTime) -> Option<Verdict> {
        let reading = self.block.reading(number);
        let reported = self.reports.of(number);
        // The age goes on, whatever the connection does.
        let active_after = |kind: IdleKind, reported: &Reported| match reported[kind as usize] {
            0 => true,
            then => kind != IdleKind::Age && reading.since(kind) >= then,
        };
        let is_over = |reported| IdleKind::LIMITED.iter().all(|&kind| active_after(kind, reported));
        if reported.as_ref().is_some_and(is_over) {
            self.reports.forget(number); // it has no effect any more
        }
        let past = Past {
            born: self.births.as_ref().map_or(NEVER, |births| births[place_in_row(number)]),
            reported: reported.unwrap_or_default(),
        };
        let limits = self.occupants[place_in_row(number)].policy.as_ref()?.limits();
        Some(verdict(limits, reading, past, jitter_share(number), time))
    }

    pub(super) fn note_report(&mut self, number: u32, kind: IdleKind, now: u64) {
        self.reports.note(number, kind, now);
    }

    /// Notes a report that was answered by progress, for each kind whose silence began anew with that.
    pub(super) fn note_progress(&mut self, number: u32, now: u64) {
        let reading = self.block.reading(number);
        let since = |kind| reading.since(kind).saturating_add(1);
        let began = |&kind: &IdleKind| kind != IdleKind::Age && since(kind) == now;
        for kind in IdleKind::LIMITED.into_iter().filter(began) {
            self.reports.note(number, kind, now);
        }
    }
}

impl LastReports {
    fn of(&self, number: u32) -> Option<Reported> {
        if self.reported & bit(number) == 0 {
            return None;
        }
        let place = place_in_row(number);
        let mut reported = Reported::default();
        if let Some(silences) = &self.silences {
            reported[..SILENCES].copy_from_slice(&silences[place]);
        }
        if let Some(others) = &self.others {
            reported[SILENCES..].copy_from_slice(&others[place]);
        }
        Some(reported)
    }

    fn note(&mut self, number: u32, kind: IdleKind, now: u64) {
        self.reported |= bit(number);
        let place = place_in_row(number);
        match (kind as usize).checked_sub(SILENCES) {
            None => {
                let silences =
                    self.silences.get_or_insert_with(|| Box::new([[0; SILENCES]; BLOCK]));
                silences[place][kind as usize] = now;
            }
            Some(other) => {
                let others = self.others.get_or_insert_with(|| Box::new([[0; OTHERS]; BLOCK]));
                others[place][other] = now;
            }
        }
    }

    fn forget(&mut self, number: u32) {
        self.reported &= !bit(number);
        if self.reported == 0 {
            (self.silences, self.others) = (None, None);
        }
        let place = place_in_row(number);
        if let Some(silences) = &mut self.silences {
            silences[place] = [0; SILENCES];
        }
        if let Some(others) = &mut self.others {
            others[place] = [0; OTHERS];
        }
    }
}

fn place_in_row(number: u32) -> usize {
    number as usize % BLOCK
}

fn bit(number: u32) -> u64 {
    1 << place_in_row(number)
}

#[cfg(all(test, not(loom)))]
mod tests;
