//! Jobs that are done, of kinds that keep them.

use super::connect::Call;
use super::rows::settle;
use super::{columns, micros, sql};
use crate::store::{Claim, Kept, Result};
use std::collections::HashSet;

/// So many jobs are moved in one statement: it compares each with each.
const BATCH: usize = 100;

/// Moves jobs to those that are done: ids $1, epochs $2, for how many microseconds $3, results $4. Passes over
/// rows that somebody has locked. A job with the id of one that is kept, which was stored
/// again after its end, takes its place.
pub(crate) const DONE_KEPT: &str = concat!(
    sql::claimed!(
        "$1::uuid[], $2::bigint[], $3::bigint[], $4::text[]", "id, epoch, lasts, result", "true",
        ", ended.lasts, ended.result"
    ),
    ",
gone AS (
    DELETE FROM wheelwork_jobs AS job
    WHERE job.id = ANY (ARRAY (SELECT mine.id FROM mine))
    RETURNING job.id, job.epoch, job.kind, job.key, job.due, job.attempts, job.payload
),
kept AS (
    INSERT INTO wheelwork_done (id, kind, key, due, done, until, attempts, payload, result)
    SELECT
        gone.id, gone.kind, gone.key, gone.due, statement_timestamp(),
        statement_timestamp() + mine.lasts * interval '1 microsecond', gone.attempts, gone.payload, mine.result
    FROM gone, mine
    WHERE gone.id = mine.id
    ORDER BY gone.id
    ON CONFLICT (id) DO UPDATE
    SET kind = excluded.kind, key = excluded.key, due = excluded.due, done = excluded.done,
        until = excluded.until, attempts = excluded.attempts, payload = excluded.payload,
        result = excluded.result
)
SELECT id, epoch FROM gone"
);

/// Moves the job $1 of the epoch $2 to those that are done, for $3 microseconds, with the result $4. Waits for
/// whoever has locked its row.
pub(crate) const COMPLETE_KEPT: &str = "
WITH gone AS (
    DELETE FROM wheelwork_jobs WHERE id = $1 AND epoch = $2
    RETURNING id, kind, key, due, attempts, payload
),
kept AS (
    INSERT INTO wheelwork_done (id, kind, key, due, done, until, attempts, payload, result)
    SELECT
        id, kind, key, due, statement_timestamp(),
        statement_timestamp() + $3::bigint * interval '1 microsecond', attempts, payload, $4::text
    FROM gone
    ON CONFLICT (id) DO UPDATE
    SET kind = excluded.kind, key = excluded.key, due = excluded.due, done = excluded.done,
        until = excluded.until, attempts = excluded.attempts, payload = excluded.payload,
        result = excluded.result
)
SELECT NULL::text AS answer FROM gone";

/// Deletes at most $1 jobs that were kept long enough.
pub(super) const FORGET_DONE: &str =
    sql::delete_first!("wheelwork_done", "id", "until < statement_timestamp()", "until", "$1");

/// Deletes at most $2 jobs that were done before $1.
pub(super) const PRUNE_DONE: &str =
    sql::delete_first!("wheelwork_done", "id", "done < $1", "done", "$2");

/// The job $1, if it is done and kept.
pub(crate) const GET_DONE: &str = "
SELECT id, kind, key, due, payload, attempts, false, false, NULL, 0::bigint, done, result
FROM wheelwork_done WHERE id = $1";

/// The jobs of the kind $1, or all if that is NULL, without their payloads and results: of the $4 that were done
/// last, at most $3 behind the first $2.
pub(super) const PEEK_DONE: &str = "
SELECT id, kind, key, due, '', attempts, false, false, NULL, 0::bigint, done, NULL
FROM (
    SELECT id, kind, key, due, attempts, done FROM wheelwork_done ORDER BY done DESC LIMIT $4
) AS last
WHERE $1::text IS NULL OR kind = $1
LIMIT $3 OFFSET $2";

/// Ends runs whose jobs are kept. Notes the claims that held. Returns those that the server refuses to keep, such
/// as for want of rights to the table: their jobs must end all the same.
pub(super) async fn keep(
    call: &mut Call<'_>,
    mut done: Vec<(Claim, &Kept)>,
    held: &mut HashSet<Claim>,
) -> Result<Vec<Claim>> {
    done.sort_unstable_by_key(|(claim, _)| *claim);
    let mut parts: Vec<_> = done.chunks(BATCH).collect();
    let mut refused = Vec::new();
    while let Some(part) = parts.pop() {
        let claims: Vec<_> = part.iter().map(|(claim, _)| *claim).collect();
        let (ids, epochs) = columns(&claims);
        let lasts: Vec<_> = part.iter().map(|(_, kept)| micros(kept.lasts)).collect();
        let results: Vec<_> = part.iter().map(|(_, kept)| kept.result.as_deref()).collect();
        let moved = call.query(DONE_KEPT, &[&ids, &epochs, &lasts, &results]).await;
        let is_refused = moved.is_err() && part.len() == 1;
        settle(part, moved, &mut parts, held)?;
        refused.extend(claims.first().filter(|_| is_refused));
    }
    refused.sort_unstable();
    Ok(refused)
}
