//! A row of the jobs, and how it is read.

use crate::job::{JobId, State, StoredJob};
use crate::time::Timestamp;
use ::redb::{Error, ReadableTable, Value};

/// Due, attempts, dead, kind, key, payload, error.
pub(super) type Fields =
    (u64, u32, bool, &'static str, Option<&'static str>, &'static str, Option<&'static str>);
/// The same as it is read.
type Stored<'a> = <Fields as Value>::SelfType<'a>;

/// A row of `JOBS`.
pub(super) struct Row {
    pub(super) due: Timestamp,
    pub(super) attempts: u32,
    pub(super) dead: bool,
    pub(super) kind: String,
    pub(super) key: Option<String>,
    pub(super) payload: String,
    pub(super) error: Option<String>,
    pub(super) priority: u8,
}

pub(super) fn row_of(
    jobs: &impl ReadableTable<u128, Fields>,
    priorities: &impl ReadableTable<u128, u8>,
    id: u128,
) -> Result<Option<Row>, Error> {
    let Some(fields) = jobs.get(id)? else { return Ok(None) };
    Ok(Some(from_fields(fields.value(), priority_of(priorities, id)?)))
}

pub(super) fn priority_of(
    priorities: &impl ReadableTable<u128, u8>,
    id: u128,
) -> Result<u8, Error> {
    Ok(priorities.get(id)?.map_or(0, |priority| priority.value()))
}

impl Row {
    /// The same without the payload, which may be large.
    pub(super) fn without_payload(
        (due, attempts, dead, kind, key, _, error): Stored<'_>,
        priority: u8,
    ) -> Self {
        from_fields((due, attempts, dead, kind, key, "", error), priority)
    }

    /// What others see of the job.
    pub(super) fn into_job(self, id: JobId, state: State) -> StoredJob {
        let Self { due, attempts, kind, key, payload, priority, error, .. } = self;
        StoredJob {
            id,
            kind,
            key,
            due: due.into(),
            payload,
            priority,
            attempts,
            state,
            error,
            done: None,
            result: None,
            progress: None,
        }
    }
}

pub(super) fn from_fields(
    (due, attempts, dead, kind, key, payload, error): Stored<'_>,
    priority: u8,
) -> Row {
    Row {
        due: Timestamp::from_micros(due),
        attempts,
        dead,
        kind: kind.to_owned(),
        key: key.map(str::to_owned),
        payload: payload.to_owned(),
        error: error.map(str::to_owned),
        priority,
    }
}
