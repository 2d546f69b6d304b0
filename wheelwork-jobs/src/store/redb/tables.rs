//! The rows, and every change of them. All changes keep the tables in step:
//!
//! - each row of `KEYS` names a row of `JOBS` with that key
//! - each row of `JOBS` that is not dead has one row in `DUE`, and each dead one has one in `DEAD`
//! - each row of `JOBS` whose priority is not 0 has it in `PRIORITIES`; unless the row is dead, it also has one
//!   in `URGENT`
//!
//! The facts of a job that a later version has added are in separate tables. So no row has to be written again.

use super::super::{Filter, Insertion, Kept};
use super::claims::Claims;
use super::done::{Done, DoneView};
use super::row::{Fields, Row, from_fields, row_of};
use crate::job::{JobId, NewJob};
use crate::time::Timestamp;
use ::redb::{
    Database, Error, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, Table,
    TableDefinition, TableError, WriteTransaction,
};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Kind, due, id.
type Place = (&'static str, u64, u128);

const JOBS: TableDefinition<u128, Fields> = TableDefinition::new("wheelwork_jobs");
const DUE: TableDefinition<Place, ()> = TableDefinition::new("wheelwork_due");
const DEAD: TableDefinition<u128, ()> = TableDefinition::new("wheelwork_dead");
const KEYS: TableDefinition<&str, u128> = TableDefinition::new("wheelwork_keys");

/// Kind, priority, due, id.
type UrgentPlace = (&'static str, u8, u64, u128);

const PRIORITIES: TableDefinition<u128, u8> = TableDefinition::new("wheelwork_priorities");
const URGENT: TableDefinition<UrgentPlace, ()> = TableDefinition::new("wheelwork_urgent");

/// Which job was stored last of those that are unique for a period, and until when it is: by the kind, and by the
/// key or the payload.
const UNIQUE: TableDefinition<Mark, (u128, u64)> = TableDefinition::new("wheelwork_unique");
/// Each row of `UNIQUE` has one here, by the end of its period.
const UNTIL: TableDefinition<(u64, u128), Mark> = TableDefinition::new("wheelwork_until");
/// The kind, whether it is the key, and the key or the payload.
type Mark = (&'static str, bool, &'static str);

/// The kinds that are paused.
const PAUSED: TableDefinition<&str, ()> = TableDefinition::new("wheelwork_paused");

/// The version of the tables, if that is more than 1.
const SCHEMA: TableDefinition<(), u32> = TableDefinition::new("wheelwork_schema");

/// The last version. 2 has `SCHEMA`, `PRIORITIES`, `URGENT`, `PAUSED`, `UNIQUE` and `UNTIL`, 3 the tables of `done`.
pub(super) const VERSION: u32 = 3;

/// The tables in a transaction that writes.
pub(super) struct Tables<'t> {
    jobs: Table<'t, u128, Fields>,
    due: Table<'t, Place, ()>,
    dead: Table<'t, u128, ()>,
    keys: Table<'t, &'static str, u128>,
    priorities: Table<'t, u128, u8>,
    urgent: Table<'t, UrgentPlace, ()>,
    paused: Table<'t, &'static str, ()>,
    unique: Table<'t, Mark, (u128, u64)>,
    until: Table<'t, (u64, u128), Mark>,
    done: Done<'t>,
    schema: Table<'t, (), u32>,
    changed: Cell<bool>,
}

impl<'t> Tables<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Self, Error> {
        Ok(Self {
            jobs: transaction.open_table(JOBS)?,
            due: transaction.open_table(DUE)?,
            dead: transaction.open_table(DEAD)?,
            keys: transaction.open_table(KEYS)?,
            priorities: transaction.open_table(PRIORITIES)?,
            urgent: transaction.open_table(URGENT)?,
            paused: transaction.open_table(PAUSED)?,
            unique: transaction.open_table(UNIQUE)?,
            until: transaction.open_table(UNTIL)?,
            done: Done::open(transaction)?,
            schema: transaction.open_table(SCHEMA)?,
            changed: Cell::new(false),
        })
    }

    /// Brings the tables to the last version. They are created when they are opened for the first time.
    pub(super) fn migrate(&mut self) -> Result<(), Error> {
        let version = self.schema.get(())?.map_or(0, |version| version.value());
        if version < VERSION {
            self.schema.insert((), VERSION)?;
            self.touch();
        }
        Ok(())
    }

    /// Makes the commit write, even if no row is changed.
    pub(super) fn touch(&self) {
        self.changed.set(true);
    }

    pub(super) fn is_changed(&self) -> bool {
        self.changed.get()
    }

    pub(super) fn row(&self, id: JobId) -> Result<Option<Row>, Error> {
        row_of(&self.jobs, &self.priorities, id.as_u128())
    }

    /// Whether a job is dead. `None` if it is not stored.
    pub(super) fn is_dead(&self, id: JobId) -> Result<Option<bool>, Error> {
        Ok(self.jobs.get(id.as_u128())?.map(|fields| fields.value().2))
    }

    /// Stores a job. `None` if it is stored now, and otherwise why it is not.
    pub(super) fn insert(
        &mut self,
        job: &NewJob,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Insertion>, Error> {
        let id = job.id.as_u128();
        if self.jobs.get(id)?.is_some() {
            return Ok(Some(Insertion::AlreadyStored));
        }
        if let Some(existing) = self.existing(job, now)? {
            return Ok(Some(Insertion::Existing(existing)));
        }
        if let Some(key) = &job.key {
            if self.keys.get(key.as_str())?.is_some() {
                return Ok(Some(Insertion::KeyTaken));
            }
            self.keys.insert(key.as_str(), id)?;
        }
        if let Some(period) = job.unique_for {
            self.mark(job, now.after(period))?;
        }
        let (due, kind) = (due.as_micros(), &*job.kind);
        self.jobs.insert(id, (due, 0, false, kind, job.key.as_deref(), &*job.payload, None))?;
        self.due.insert((kind, due, id), ())?;
        if job.priority > 0 {
            self.priorities.insert(id, job.priority)?;
            self.urgent.insert((kind, job.priority, due, id), ())?;
        }
        self.touch();
        Ok(None)
    }

    /// The job of the same mark whose period is not over.
    fn existing(&self, job: &NewJob, now: Timestamp) -> Result<Option<JobId>, Error> {
        if job.unique_for.is_none() {
            return Ok(None);
        }
        let found = self.unique.get(mark(job))?.map(|found| found.value());
        let found = found.filter(|(_, until)| *until > now.as_micros());
        Ok(found.map(|(id, _)| JobId::from_u128(id)))
    }

    /// Notes that a job is unique.
    fn mark(&mut self, job: &NewJob, until: Timestamp) -> Result<(), Error> {
        let (id, mark) = (job.id.as_u128(), mark(job));
        let before = self.unique.insert(mark, (id, until.as_micros()))?;
        let before = before.map(|before| before.value());
        if let Some((id, until)) = before {
            self.until.remove((until, id))?;
        }
        self.until.insert((until.as_micros(), id), mark)?;
        Ok(())
    }

    /// Deletes marks that are over, at most `most`. Returns how many that were.
    pub(super) fn unmark(&mut self, now: Timestamp, most: usize) -> Result<usize, Error> {
        let mut over = Vec::new();
        for entry in self.until.range(..=last_until(now))?.take(most) {
            let (place, mark) = entry?;
            let (kind, is_key, text) = mark.value();
            over.push((place.value(), kind.to_owned(), is_key, text.to_owned()));
        }
        for (place, kind, is_key, text) in &over {
            self.unique.remove((&**kind, *is_key, &**text))?;
            self.until.remove(place)?;
        }
        if !over.is_empty() {
            self.touch();
        }
        Ok(over.len())
    }

    pub(super) fn is_paused(&self, kind: &str) -> Result<bool, Error> {
        Ok(self.paused.get(kind)?.is_some())
    }

    /// False if it was so already.
    pub(super) fn set_paused(&mut self, kind: &str, paused: bool) -> Result<bool, Error> {
        if self.is_paused(kind)? == paused {
            return Ok(false);
        }
        if paused {
            self.paused.insert(kind, ())?;
        } else {
            self.paused.remove(kind)?;
        }
        self.touch();
        Ok(true)
    }

    /// The job that has a key.
    pub(super) fn find(&self, key: Option<&str>) -> Result<Option<JobId>, Error> {
        let Some(key) = key else { return Ok(None) };
        Ok(self.keys.get(key)?.map(|id| JobId::from_u128(id.value())))
    }

    /// At most `most` dead jobs that were due before a time.
    pub(super) fn dead_before(
        &self,
        kind: Option<&str>,
        before: Timestamp,
        most: usize,
    ) -> Result<Vec<JobId>, Error> {
        let mut old = Vec::new();
        for entry in self.dead.iter()? {
            if old.len() == most {
                break;
            }
            let id = entry?.0.value();
            let Some(fields) = self.jobs.get(id)? else { continue };
            let (due, _, _, of, ..) = fields.value(); // the payload is not copied: all dead jobs may be read
            if due < before.as_micros() && kind.is_none_or(|kind| of == kind) {
                old.push(JobId::from_u128(id));
            }
        }
        Ok(old)
    }

    /// Deletes a job.
    pub(super) fn remove(&mut self, id: JobId) -> Result<Option<Row>, Error> {
        let number = id.as_u128();
        let Some(row) = self.row(id)? else { return Ok(None) };
        self.jobs.remove(number)?;
        self.unplace(number, &row)?;
        if row.priority > 0 {
            self.priorities.remove(number)?;
        }
        if let Some(key) = &row.key {
            self.keys.remove(key.as_str())?;
        }
        self.touch();
        Ok(Some(row))
    }

    /// Moves a job to those that are done.
    pub(super) fn keep(&mut self, id: JobId, now: Timestamp, kept: &Kept) -> Result<bool, Error> {
        let Some(row) = self.remove(id)? else { return Ok(false) };
        self.done.keep(id, &row, now, kept)?;
        Ok(true)
    }

    /// Deletes jobs that were done before a time, or kept until then, at most so many.
    pub(super) fn forget_done(
        &mut self,
        kept: bool,
        time: Timestamp,
        most: usize,
    ) -> Result<usize, Error> {
        let forgotten = self.done.forget(kept, time, most)?;
        if forgotten > 0 {
            self.touch();
        }
        Ok(forgotten)
    }

    /// Changes a job, apart from its key, its kind and its priority.
    pub(super) fn replace(&mut self, id: JobId, row: &Row) -> Result<(), Error> {
        let number = id.as_u128();
        let Row { due, attempts, dead, kind, key, payload, error, priority } = row;
        let fields = (
            due.as_micros(),
            *attempts,
            *dead,
            &**kind,
            key.as_deref(),
            &**payload,
            error.as_deref(),
        );
        let before = self.jobs.insert(number, fields)?;
        let before = before.map(|fields| from_fields(fields.value(), *priority));
        if let Some(before) = before {
            self.unplace(number, &before)?;
        }
        if *dead {
            self.dead.insert(number, ())?;
        } else {
            self.due.insert((&**kind, due.as_micros(), number), ())?;
            if *priority > 0 {
                self.urgent.insert((&**kind, *priority, due.as_micros(), number), ())?;
            }
        }
        self.touch();
        Ok(())
    }

    fn unplace(&mut self, id: u128, row: &Row) -> Result<(), Error> {
        if row.dead {
            self.dead.remove(id)?;
        } else {
            self.due.remove((&*row.kind, row.due.as_micros(), id))?;
            if row.priority > 0 {
                self.urgent.remove((&*row.kind, row.priority, row.due.as_micros(), id))?;
            }
        }
        Ok(())
    }

    /// Free jobs of a kind that are due by now and have a priority, at most `most`, the most urgent first.
    pub(super) fn urgent(
        &self,
        kind: &str,
        now: Timestamp,
        most: usize,
        claims: &Claims,
    ) -> Result<Vec<(Timestamp, JobId)>, Error> {
        let mut found = Vec::new();
        if self.urgent.range((kind, 0, 0, 0)..)?.next().is_none() {
            return Ok(found); // most kinds have none
        }
        for priority in (1..=NewJob::HIGHEST_PRIORITY).rev() {
            let last = (kind, priority, now.as_micros(), u128::MAX);
            for place in self.urgent.range((kind, priority, 0, 0)..=last)? {
                if found.len() == most {
                    return Ok(found);
                }
                let (.., due, id) = place?.0.value();
                let id = JobId::from_u128(id);
                if claims.is_free(id) {
                    found.push((Timestamp::from_micros(due), id));
                }
            }
        }
        Ok(found)
    }

    /// When the first free job of a kind is due after a time.
    pub(super) fn free_after(
        &self,
        kind: &str,
        time: Timestamp,
        claims: &Claims,
    ) -> Result<Option<Timestamp>, Error> {
        let first = first(&self.due, kind, (time.as_micros() + 1, 0), |id| claims.is_free(id))?;
        Ok(first.map(|(due, _)| due))
    }

    /// Free jobs of a kind up to a due time, at most `most`. Moves the cursor behind them.
    pub(super) fn free(
        &self,
        kind: &Arc<str>,
        horizon: Timestamp,
        most: usize,
        claims: &mut Claims,
    ) -> Result<Vec<(Timestamp, JobId)>, Error> {
        let mut found = Vec::new();
        let (due, id) = claims.cursor(kind);
        let first = (&**kind, due.as_micros(), id.as_u128());
        for place in self.due.range(first..=(&**kind, horizon.as_micros(), u128::MAX))? {
            let (_, due, id) = place?.0.value();
            let place = (Timestamp::from_micros(due), JobId::from_u128(id));
            if found.len() == most {
                claims.set_cursor(kind, place);
                return Ok(found);
            }
            if claims.is_free(place.1) {
                found.push(place);
            }
        }
        let behind = horizon.after(std::time::Duration::from_micros(1));
        claims.set_cursor(kind, (behind.max(due), JobId::from_u128(0)));
        Ok(found)
    }
}

/// The first job of a kind that is so, from a due time and an id on.
fn first(
    due: &impl ReadableTable<Place, ()>,
    kind: &str,
    from: (u64, u128),
    is_so: impl Fn(JobId) -> bool,
) -> Result<Option<(Timestamp, JobId)>, Error> {
    for place in due.range((kind, from.0, from.1)..=(kind, u64::MAX, u128::MAX))? {
        let (_, due, id) = place?.0.value();
        let id = JobId::from_u128(id);
        if is_so(id) {
            return Ok(Some((Timestamp::from_micros(due), id)));
        }
    }
    Ok(None)
}

/// The last place of `UNTIL` of a mark that is over.
fn last_until(now: Timestamp) -> (u64, u128) {
    (now.as_micros(), u128::MAX)
}

fn mark(job: &NewJob) -> (&str, bool, &str) {
    match &job.key {
        Some(key) => (&job.kind, true, key),
        None => (&job.kind, false, &job.payload),
    }
}

/// The tables in a snapshot.
pub(super) struct View {
    pub(super) jobs: ReadOnlyTable<u128, Fields>,
    pub(super) due: ReadOnlyTable<Place, ()>,
    pub(super) dead: ReadOnlyTable<u128, ()>,
    pub(super) done: DoneView,
    keys: ReadOnlyTable<&'static str, u128>,
    pub(super) priorities: ReadOnlyTable<u128, u8>,
    pub(super) paused: ReadOnlyTable<&'static str, ()>,
    until: ReadOnlyTable<(u64, u128), Mark>,
}

impl View {
    /// The version of the tables.
    pub(super) fn version(transaction: &ReadTransaction) -> Result<u32, Error> {
        match transaction.open_table(SCHEMA) {
            Ok(schema) => {
                if let Some(version) = schema.get(())? {
                    return Ok(version.value());
                }
            }
            Err(TableError::TableDoesNotExist(_)) => {}
            Err(error) => return Err(error.into()),
        }
        match transaction.open_table(JOBS) {
            Ok(_) => Ok(1),
            Err(TableError::TableDoesNotExist(_)) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn open(database: &Database) -> Result<Self, Error> {
        let transaction = database.begin_read()?;
        let open = || -> Result<Self, TableError> {
            Ok(Self {
                jobs: transaction.open_table(JOBS)?,
                due: transaction.open_table(DUE)?,
                dead: transaction.open_table(DEAD)?,
                done: DoneView::open(&transaction)?,
                keys: transaction.open_table(KEYS)?,
                priorities: transaction.open_table(PRIORITIES)?,
                paused: transaction.open_table(PAUSED)?,
                until: transaction.open_table(UNTIL)?,
            })
        };
        Ok(open()?)
    }

    pub(super) fn row(&self, id: JobId) -> Result<Option<Row>, Error> {
        row_of(&self.jobs, &self.priorities, id.as_u128())
    }

    pub(super) fn find(&self, key: &str) -> Result<Option<(JobId, Row)>, Error> {
        let Some(id) = self.keys.get(key)? else { return Ok(None) };
        let id = JobId::from_u128(id.value());
        Ok(self.row(id)?.map(|row| (id, row)))
    }

    pub(super) fn paused(&self) -> Result<Vec<String>, Error> {
        let kinds = self.paused.iter()?;
        kinds.map(|entry| Ok(entry?.0.value().to_owned())).collect()
    }

    /// Whether the period of a unique job is over whose mark is still there.
    pub(super) fn has_marks_over(&self, now: Timestamp) -> Result<bool, Error> {
        Ok(self.until.range(..=last_until(now))?.next().transpose()?.is_some())
    }

    /// When the first free job of a kind is due.
    pub(super) fn first_free(
        &self,
        kind: &str,
        claims: &Claims,
    ) -> Result<Option<Timestamp>, Error> {
        let (due, id) = claims.cursor(kind);
        let from = (due.as_micros(), id.as_u128());
        Ok(first(&self.due, kind, from, |id| claims.is_free(id))?.map(|(due, _)| due))
    }

    /// The first job that is not dead, and waits for no member of a group.
    pub(super) fn first(&self, claims: &Claims) -> Result<Option<(JobId, Row)>, Error> {
        let mut all = None;
        for kind in self.kinds(usize::MAX)? {
            let of_kind = first(&self.due, &kind, (0, 0), |id| !claims.groups.waits(id))?;
            all = all.into_iter().chain(of_kind).min();
        }
        let Some((_, id)) = all else { return Ok(None) };
        Ok(self.row(id)?.map(|row| (id, row)))
    }

    /// The jobs that a filter selects, the earliest first. Of those that are not dead, reads as many
    /// of each kind. Reads all that are dead.
    pub(super) fn list(&self, filter: &Filter) -> Result<Vec<(JobId, Row)>, Error> {
        let mut first = BTreeSet::new();
        let mut add = |due, id| {
            first.insert((due, id));
            if first.len() > filter.at_most() {
                first.pop_last();
            }
        };
        if filter.dead != Some(true) {
            let kinds = match &filter.kind {
                Some(kind) => vec![kind.clone()],
                None => self.kinds(usize::MAX)?,
            };
            let after = filter.after.map_or(0, |(due, _)| Timestamp::from(due).as_micros());
            for kind in kinds {
                let places = (&*kind, after, 0)..=(&*kind, u64::MAX, u128::MAX);
                let mut left = filter.at_most();
                for place in self.due.range(places)? {
                    let (_, due, id) = place?.0.value();
                    let (due, id) = (Timestamp::from_micros(due), JobId::from_u128(id));
                    if filter.is_behind(due, id) {
                        add(due, id);
                        left -= 1;
                    }
                    if left == 0 {
                        break;
                    }
                }
            }
        }
        if filter.dead != Some(false) {
            for entry in self.dead.iter()? {
                let id = JobId::from_u128(entry?.0.value());
                let Some(row) = self.row(id)? else { continue };
                let is_of_kind = filter.kind.as_ref().is_none_or(|kind| row.kind == *kind);
                if is_of_kind && filter.is_behind(row.due, id) {
                    add(row.due, id);
                }
            }
        }
        let mut found = Vec::new();
        for (_, id) in first {
            found.extend(self.row(id)?.map(|row| (id, row)));
        }
        Ok(found)
    }

    /// The first kinds of jobs that are not dead, at most `most`.
    pub(super) fn kinds(&self, most: usize) -> Result<Vec<String>, Error> {
        let mut kinds = Vec::new();
        let mut next = self.due.first()?.map(|(place, _)| place.value().0.to_owned());
        while let Some(kind) = next.filter(|_| kinds.len() < most) {
            let behind = (&*kind, u64::MAX, u128::MAX)..;
            next = match self.due.range(behind)?.next() {
                Some(place) => Some(place?.0.value().0.to_owned()),
                None => None,
            };
            kinds.push(kind);
        }
        Ok(kinds)
    }
}
