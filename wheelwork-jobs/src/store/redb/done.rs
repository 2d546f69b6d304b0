//! Jobs that are done, of kinds that keep them.
//!
//! Each row of `DONE` has one in `DONE_AT` and one in `UNTIL`.

use super::super::{Kept, Peek};
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

/// A job that is done.
pub(super) struct Ended<'a> {
    pub(super) due: Timestamp,
    pub(super) attempts: u32,
    pub(super) kind: &'a str,
    pub(super) key: Option<&'a str>,
    pub(super) payload: &'a str,
}

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
        job: &Ended<'_>,
        now: Timestamp,
        kept: &Kept,
    ) -> Result<(), Error> {
        let number = id.as_u128();
        self.remove(number)?;
        let (done, until) = (now.as_micros(), now.after(kept.lasts).as_micros());
        let Ended { due, attempts, kind, key, payload } = *job;
        let (due, result) = (due.as_micros(), kept.result.as_deref());
        let fields = (done, until, due, attempts, kind, key, payload, result);
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

    /// Deletes those that were kept until a time, at most so many. Returns how many that were.
    pub(super) fn forget(&mut self, now: Timestamp, most: usize) -> Result<usize, Error> {
        let mut old = Vec::new();
        for place in self.until.range(..(now.as_micros(), 0))?.take(most) {
            old.push(place?.0.value().1);
        }
        self.remove_all(&old)
    }

    /// Deletes those that were done before a time, at most so many. Returns how many that were.
    pub(super) fn prune(&mut self, before: Timestamp, most: usize) -> Result<usize, Error> {
        let mut old = Vec::new();
        for place in self.done_at.range(..(before.as_micros(), 0))?.take(most) {
            old.push(place?.0.value().1);
        }
        self.remove_all(&old)
    }

    fn remove_all(&mut self, ids: &[u128]) -> Result<usize, Error> {
        for &id in ids {
            self.remove(id)?;
        }
        Ok(ids.len())
    }
}

/// The tables in a snapshot.
pub(super) struct DoneView {
    done: ReadOnlyTable<u128, Fields>,
    done_at: ReadOnlyTable<Place, ()>,
}

impl DoneView {
    pub(super) fn open(transaction: &ReadTransaction) -> Result<Self, TableError> {
        Ok(Self { done: transaction.open_table(DONE)?, done_at: transaction.open_table(DONE_AT)? })
    }

    pub(super) fn get(&self, id: JobId) -> Result<Option<StoredJob>, Error> {
        let Some(fields) = self.done.get(id.as_u128())? else { return Ok(None) };
        let (done, _, due, attempts, kind, key, payload, result) = fields.value();
        Ok(Some(StoredJob {
            payload: payload.to_owned(),
            result: result.map(str::to_owned),
            ..without_payload(id, (done, due, attempts, kind, key))
        }))
    }

    /// Those that were done last, without their payloads and results.
    pub(super) fn peek(&self, peek: &Peek) -> Result<Vec<StoredJob>, Error> {
        let (mut found, mut skip) = (Vec::new(), peek.skip);
        for place in self.done_at.iter()?.rev().take(Peek::MOST_READ) {
            let id = place?.0.value().1;
            let Some(fields) = self.done.get(id)? else { continue };
            let (done, _, due, attempts, kind, key, ..) = fields.value();
            if peek.kind.as_ref().is_some_and(|wanted| wanted != kind) {
                continue;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            if found.len() == peek.most {
                break;
            }
            let id = JobId::from_u128(id);
            found.push(without_payload(id, (done, due, attempts, kind, key)));
        }
        Ok(found)
    }
}

fn without_payload(
    id: JobId,
    (done, due, attempts, kind, key): (u64, u64, u32, &str, Option<&str>),
) -> StoredJob {
    StoredJob {
        id,
        kind: kind.to_owned(),
        key: key.map(str::to_owned),
        due: Timestamp::from_micros(due).into(),
        payload: String::new(),
        priority: 0,
        attempts,
        state: State::Done,
        error: None,
        done: Some(Timestamp::from_micros(done).into()),
        result: None,
        progress: None,
    }
}
