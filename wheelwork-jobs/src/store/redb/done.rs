//! Jobs that are done, of kinds that keep them.
//!
//! Each row of `DONE` has one in `DONE_AT` and one in `UNTIL`.

use super::super::Kept;
use super::row::{Row, from_fields};
use crate::job::{JobId, State, StoredJob};
use crate::time::Timestamp;
use ::redb::{
    Error, ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, TableError,
    WriteTransaction,
};

/// Done, until, due, attempts, kind, key, payload, result.
type Fields =
    (u64, u64, u64, u32, &'static str, Option<&'static str>, &'static str, Option<&'static str>);

/// Time, id.
type Place = (u64, u128);

const DONE: TableDefinition<u128, Fields> = TableDefinition::new("wheelwork_done");
const DONE_AT: TableDefinition<Place, ()> = TableDefinition::new("wheelwork_done_at");
const UNTIL: TableDefinition<Place, ()> = TableDefinition::new("wheelwork_done_until");

/// The tables in a transaction that writes.
pub(super) struct Done<'t> {
    done: Table<'t, u128, Fields>,
    done_at: Table<'t, Place, ()>,
    until: Table<'t, Place, ()>,
}

impl<'t> Done<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Self, TableError> {
        Ok(Self {
            done: transaction.open_table(DONE)?,
            done_at: transaction.open_table(DONE_AT)?,
            until: transaction.open_table(UNTIL)?,
        })
    }

    /// Keeps a job. One with its id, which was stored again after its end, takes the place of the first.
    pub(super) fn keep(
        &mut self,
        id: JobId,
        job: &Row,
        now: Timestamp,
        kept: &Kept,
    ) -> Result<(), Error> {
        let number = id.as_u128();
        self.remove(number)?;
        let (done, until) = (now.as_micros(), now.after(kept.lasts).as_micros());
        let Row { due, attempts, kind, key, payload, .. } = job;
        let (due, key, result) = (due.as_micros(), key.as_deref(), kept.result.as_deref());
        let fields = (done, until, due, *attempts, &**kind, key, &**payload, result);
        self.done.insert(number, fields)?;
        self.done_at.insert((done, number), ())?;
        self.until.insert((until, number), ())?;
        Ok(())
    }

    fn remove(&mut self, id: u128) -> Result<(), Error> {
        let before = self.done.remove(id)?.map(|fields| {
            let (done, until, ..) = fields.value();
            (done, until)
        });
        if let Some((done, until)) = before {
            self.done_at.remove((done, id))?;
            self.until.remove((until, id))?;
        }
        Ok(())
    }

    /// Deletes those that were done before a time, or kept until then, at most so many. Returns how many that were.
    pub(super) fn forget(
        &mut self,
        kept: bool,
        time: Timestamp,
        most: usize,
    ) -> Result<usize, Error> {
        let places = if kept { &self.until } else { &self.done_at };
        let before = places.range(..(time.as_micros(), 0))?.take(most);
        let old: Vec<u128> =
            before.map(|place| Ok(place?.0.value().1)).collect::<Result<_, Error>>()?;
        for &id in &old {
            self.remove(id)?;
        }
        Ok(old.len())
    }
}

/// The tables in a snapshot.
pub(super) struct DoneView {
    done: ReadOnlyTable<u128, Fields>,
    pub(super) done_at: ReadOnlyTable<Place, ()>,
}

impl DoneView {
    pub(super) fn open(transaction: &ReadTransaction) -> Result<Self, TableError> {
        Ok(Self { done: transaction.open_table(DONE)?, done_at: transaction.open_table(DONE_AT)? })
    }

    /// One of them. Without its payload and its result, which may be large, unless it is wanted `whole`.
    pub(super) fn get(&self, id: u128, whole: bool) -> Result<Option<StoredJob>, Error> {
        let Some(fields) = self.done.get(id)? else { return Ok(None) };
        let (done, _, due, attempts, kind, key, payload, result) = fields.value();
        let payload = if whole { payload } else { "" };
        let row = from_fields((due, attempts, false, kind, key, payload, None), 0);
        Ok(Some(StoredJob {
            done: Some(Timestamp::from_micros(done).into()),
            result: result.filter(|_| whole).map(str::to_owned),
            ..row.into_job(JobId::from_u128(id), State::Done)
        }))
    }
}
