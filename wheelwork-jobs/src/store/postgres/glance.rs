//! What an operator sees, at a bounded cost: each statement here reads a limited number of rows, by index,
//! and no payload.

use super::history::PEEK_DONE;
use super::rows::{self, get};
use super::{Inner, Values, limit};
use crate::job::{State, StoredJob};
use crate::store::{Glance, Most, Peek, Result};

/// Counts the jobs of the first $1 kinds, up to $2 free ones of all kinds together, $3 claimed ones and $3 dead ones. A
/// row has a kind, its counts (waiting, overdue, claimed, dead), when the first is due that is not dead, and whether it
/// is paused. Then come how many free jobs of a kind were counted, how many kinds, claimed and
/// dead jobs there are up to the limits, and the time.
const GLANCE: &str = "
WITH RECURSIVE kinds (kind, number) AS (
    (
        SELECT kind, 1 FROM wheelwork_jobs WHERE owner IS NULL AND NOT dead ORDER BY kind LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT job.kind FROM wheelwork_jobs AS job
        WHERE job.owner IS NULL AND NOT job.dead AND job.kind > kinds.kind
        ORDER BY job.kind LIMIT 1
    ), number + 1
    FROM kinds WHERE kinds.kind IS NOT NULL AND number <= $1::bigint
),
share (free, kinds) AS (
    SELECT greatest(1, $2::bigint / greatest(1, least($1, count(kind)))), count(kind) FROM kinds
),
free AS (
    SELECT kinds.kind, found.waiting, found.overdue, found.next_due
    FROM kinds, LATERAL (
        SELECT
            count(*) AS waiting, count(*) FILTER (WHERE due < statement_timestamp()) AS overdue,
            min(due) AS next_due
        FROM (
            SELECT due FROM wheelwork_jobs
            WHERE kind = kinds.kind AND owner IS NULL AND NOT dead
            ORDER BY due
            LIMIT (SELECT share.free FROM share)
        ) AS first
    ) AS found
    WHERE kinds.kind IS NOT NULL AND kinds.number <= $1
),
owned AS (
    SELECT kind, count(*) AS claimed, min(due) AS next_due
    FROM (
        SELECT kind, due FROM wheelwork_jobs WHERE owner IS NOT NULL ORDER BY owner, due LIMIT $3
    ) AS first
    GROUP BY kind
),
buried AS (
    SELECT kind, count(*) AS dead
    FROM (SELECT kind FROM wheelwork_jobs WHERE dead ORDER BY due DESC LIMIT $3) AS last
    GROUP BY kind
),
found (kind, waiting, overdue, claimed, dead, next_due) AS (
    SELECT kind, waiting, overdue, 0, 0, next_due FROM free
    UNION ALL
    SELECT kind, 0, 0, claimed, 0, next_due FROM owned
    UNION ALL
    SELECT kind, 0, 0, 0, dead, NULL FROM buried
    UNION ALL
    SELECT kind, 0, 0, 0, 0, NULL FROM (SELECT kind FROM wheelwork_kinds WHERE paused LIMIT $1) AS paused
)
SELECT
    kind, coalesce(sum(waiting), 0)::bigint, coalesce(sum(overdue), 0)::bigint,
    coalesce(sum(claimed), 0)::bigint, coalesce(sum(dead), 0)::bigint, min(next_due),
    EXISTS (SELECT FROM wheelwork_kinds WHERE wheelwork_kinds.kind = found.kind AND paused),
    (SELECT share.free FROM share), (SELECT share.kinds FROM share),
    (SELECT coalesce(sum(owned.claimed), 0)::bigint FROM owned),
    (SELECT coalesce(sum(buried.dead), 0)::bigint FROM buried),
    statement_timestamp()
FROM (SELECT 1) AS one LEFT JOIN found ON true
GROUP BY kind
ORDER BY kind COLLATE \"C\"";

/// The dead jobs of the kind $1, or all if that is NULL, without their payloads: of the $4 that were due last,
/// at most $3 behind the first $2.
const PEEK_DEAD: &str = "
SELECT id, kind, key, due, '', attempts, dead, false, error, priority::bigint
FROM (
    SELECT id, kind, key, due, attempts, dead, error, priority FROM wheelwork_jobs
    WHERE dead
    ORDER BY due DESC
    LIMIT $4
) AS last
WHERE $1::text IS NULL OR kind = $1
LIMIT $3 OFFSET $2";

/// The free jobs of the kind $1, without their payloads: at most $3 behind the first $2.
const PEEK_WAITING: &str = "
SELECT id, kind, key, due, '', attempts, dead, false, error, priority::bigint
FROM wheelwork_jobs
WHERE kind = $1 AND owner IS NULL AND NOT dead
ORDER BY due
LIMIT $3 OFFSET $2";

impl Inner {
    pub(super) async fn glance(&self, most: Most) -> Result<Glance> {
        let mut call = self.reads.call("count jobs").await?;
        let (most_kinds, most_free, most) =
            (limit(most.kinds), limit(most.free), limit(most.others));
        let found = call.read(GLANCE, &[&most_kinds, &most_free, &most]).await?;
        let first = rows::one(&found)?;
        let mut glance = Glance {
            most_waiting: get::<i64>(first, 7)?.unsigned_abs(),
            all_kinds: get::<i64>(first, 8)? <= most_kinds,
            all_claimed: get::<i64>(first, 9)? < most,
            all_dead: get::<i64>(first, 10)? < most,
            at: Some(get(first, 11)?),
            kinds: Vec::new(),
        };
        for row in &found {
            // One row without a kind is there if there are no jobs.
            if get::<Option<&str>>(row, 0)?.is_some() {
                glance.kinds.push(rows::stats(row)?);
            }
        }
        Ok(glance)
    }

    pub(super) async fn peek(&self, peek: &Peek) -> Result<Vec<StoredJob>> {
        let mut call = self.reads.call("list jobs").await?;
        let Peek { kind, state, skip, most } = peek;
        let (skip, most, all) = (limit(*skip), limit(*most), limit(Peek::MOST_READ));
        let last: Values<'_> = &[kind, &skip, &most, &all];
        match state {
            State::Waiting => {
                let rows = call.read(PEEK_WAITING, &[kind, &skip, &most]).await?;
                rows.iter().map(rows::stored).collect()
            }
            State::Dead => call.read(PEEK_DEAD, last).await?.iter().map(rows::stored).collect(),
            State::Done => call.read(PEEK_DONE, last).await?.iter().map(rows::done).collect(),
            State::Claimed => Ok(Vec::new()),
        }
    }
}
