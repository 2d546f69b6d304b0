//! What the rows of answers say. A table that somebody has changed is an error, and no panic.

use super::connect::{Described, halve};
use crate::job::{JobId, State, StoredJob};
use crate::store::{
    Cancelled, Claim, Claimed, Inserted, Insertion, KindStats, NodeId, Removed, Replaced, Result,
    Started, StoreError,
};
use crate::time::Timestamp;
use std::collections::HashSet;
use std::time::SystemTime;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

const ACTION: &str = "read an answer of the database";

pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|error| StoreError::new(ACTION, Described(error)))
}

pub(super) fn one(rows: &[Row]) -> Result<&Row> {
    rows.first().ok_or_else(|| StoreError::new(ACTION, "no row: expected one"))
}

pub(super) fn uuid(id: JobId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}

pub(super) fn id(row: &Row, column: usize) -> Result<JobId> {
    Ok(JobId::from_u128(get::<Uuid>(row, column)?.as_u128()))
}

pub(super) fn timestamp(row: &Row, column: usize) -> Result<Timestamp> {
    Ok(get::<SystemTime>(row, column)?.into())
}

pub(super) fn maybe_timestamp(row: &Row, column: usize) -> Result<Option<Timestamp>> {
    Ok(get::<Option<SystemTime>>(row, column)?.map(Timestamp::from))
}

fn count(row: &Row, column: usize) -> Result<u32> {
    Ok(u32::try_from(get::<i64>(row, column)?).unwrap_or(u32::MAX))
}

fn priority(row: &Row, column: usize) -> Result<u8> {
    Ok(u8::try_from(get::<i64>(row, column)?.max(0)).unwrap_or(u8::MAX))
}

fn epoch(row: &Row, column: usize) -> Result<u64> {
    Ok(get::<i64>(row, column)?.cast_unsigned())
}

/// The id and the epoch, in the first two columns.
pub(super) fn claim(row: &Row) -> Result<Claim> {
    Ok(Claim { id: id(row, 0)?, epoch: epoch(row, 1)? })
}

pub(super) fn claimed(row: &Row) -> Result<Claimed> {
    Ok(Claimed {
        claim: claim(row)?,
        kind: get::<&str>(row, 2)?.into(),
        due: timestamp(row, 3)?,
        payload: get(row, 4)?,
        attempts: count(row, 5)?,
        claims: count(row, 6)?,
        priority: priority(row, 7)?,
        key: get::<Option<&str>>(row, 8)?.map(Box::from),
    })
}

pub(super) fn started(row: &Row) -> Result<Started> {
    Ok(Started { claim: claim(row)?, starts: count(row, 2)? })
}

pub(super) fn inserted(row: &Row) -> Result<(Uuid, Inserted)> {
    let claimed = get::<Option<i64>>(row, 2)?.map(i64::cast_unsigned);
    Ok((get(row, 0)?, Inserted { due: timestamp(row, 1)?, claimed }))
}

/// The owner, the epoch, and whether the claim was revoked, in the first three columns.
pub(super) fn removed(row: &Row) -> Result<Removed> {
    let epoch = epoch(row, 1)?;
    let owner = get::<Option<i64>>(row, 0)?.map(|node| (NodeId(node), epoch));
    Ok(Removed { owner, revoked: get(row, 2)? })
}

/// The owner, the job and the epoch of a claim, in the first three columns.
pub(super) fn revoked(row: &Row) -> Result<(NodeId, Claim)> {
    Ok((NodeId(get(row, 0)?), Claim { id: id(row, 1)?, epoch: epoch(row, 2)? }))
}

/// As `removed`, then the kind.
pub(super) fn cancelled(row: &Row) -> Result<Cancelled> {
    Ok(Cancelled { kind: get::<&str>(row, 3)?.into(), removed: removed(row)? })
}

/// As `removed`, then the id and the due time of the new job.
pub(super) fn replaced(row: &Row) -> Result<Replaced> {
    let before = match get::<Option<Uuid>>(row, 3)? {
        Some(id) => Some((JobId::from_u128(id.as_u128()), removed(row)?)),
        None => None,
    };
    let inserted = Inserted { due: timestamp(row, 4)?, claimed: None };
    Ok(Replaced { insertion: Insertion::Stored(inserted), before })
}

pub(super) fn stored(row: &Row) -> Result<StoredJob> {
    let state = match (get(row, 6)?, get(row, 7)?) {
        (true, _) => State::Dead,
        (false, true) => State::Claimed,
        (false, false) => State::Waiting,
    };
    Ok(StoredJob {
        id: id(row, 0)?,
        kind: get(row, 1)?,
        key: get(row, 2)?,
        due: get(row, 3)?,
        payload: get(row, 4)?,
        attempts: count(row, 5)?,
        state,
        error: get(row, 8)?,
        priority: priority(row, 9)?,
        done: None,
        result: None,
        progress: None,
    })
}

/// A job that is done, and was kept.
pub(super) fn done(row: &Row) -> Result<StoredJob> {
    let (state, done) = (State::Done, Some(get(row, 10)?));
    Ok(StoredJob { state, done, result: get(row, 11)?, ..stored(row)? })
}

pub(super) fn stats(row: &Row) -> Result<KindStats> {
    let count = |column| get::<i64>(row, column).map(i64::unsigned_abs);
    Ok(KindStats {
        kind: get(row, 0)?,
        waiting: count(1)?,
        overdue: count(2)?,
        claimed: count(3)?,
        dead: count(4)?,
        next_due: get(row, 5)?,
        paused: get(row, 6)?,
    })
}

/// Notes the claims of which an answer says that they held. After an error, has both halves of the part tried.
pub(super) fn settle<'a, T>(
    part: &'a [T],
    answer: Result<Vec<Row>>,
    parts: &mut Vec<&'a [T]>,
    held: &mut HashSet<Claim>,
) -> Result<()> {
    for row in &answer.or_else(|error| halve(part, error, parts).map(|()| Vec::new()))? {
        held.insert(claim(row)?);
    }
    Ok(())
}
