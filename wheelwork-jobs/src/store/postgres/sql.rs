//! Every statement, as it is sent.
//!
//! Three things hold for all of them:
//!
//! - A job is claimed only in a statement that locks the row of its node (`FOR KEY SHARE`). Whoever ends
//!   a node changes its number to the negative one first: that waits for claims that are under way, and
//!   later ones find no node. The row is deleted when nothing belongs to the node any more. So each
//!   owner has a row, and each job of an ended node is freed some time.
//! - `statement_timestamp()` stands for now: it is the same in a whole statement, so an index can be used,
//!   and in a long transaction it moves on.
//! - `NOTIFY` comes with the commit. It is a hint: the next beat finds whatever a lost one was about.

/// Whether there are tables, and whether they say their version. To run a migration without need would not do:
/// to find that an index exists, it waits for all transactions that have written to the table, and others wait
/// for it.
pub(crate) const FOUND: &str = "
SELECT to_regclass('wheelwork_jobs_dead') IS NOT NULL, to_regclass('wheelwork_schema') IS NOT NULL";

/// The version of the tables.
pub(crate) const VERSION: &str = "SELECT version FROM wheelwork_schema";

/// Run on each connection. Each statement of this store touches few rows by an index, whatever the statistics of a
/// table say that was empty a minute ago, and in the order of the index, up to its limit. A scan that remains (of the
/// few nodes) has an enormous cost then, for which PostgreSQL would compile the statement each time. A statement that
/// has waited for a row goes on with what it is by then, whatever the default of the role or the database. A node that
/// stands still in a transaction must not hold its locks.
pub(crate) const CONNECTED: &str = "
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off;
SET default_transaction_isolation = 'read committed';
SET idle_in_transaction_session_timeout = '10s';
SELECT pg_backend_pid();
";

/// The channel of the notices: each table of jobs has its own, in whatever schema it is.
pub(crate) const CHANNEL: &str = "SELECT 'wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid";

pub(crate) const CLOCK: &str = "SELECT clock_timestamp()";

/// The number of a new node.
pub(crate) const NEXT_NODE: &str = "SELECT nextval('wheelwork_node_ids')";

/// Makes the node $1, which is alive for $2 microseconds.
pub(crate) const NEW_NODE: &str = "
INSERT INTO wheelwork_nodes (id, expires, answers)
VALUES ($1, statement_timestamp() + $2::bigint * interval '1 microsecond', true)
RETURNING clock_timestamp()";

/// Prolongs the life of the node $1 by $2 microseconds.
pub(crate) const PROLONG: &str = "
UPDATE wheelwork_nodes
SET expires = statement_timestamp() + $2::bigint * interval '1 microsecond'
WHERE id = $1
RETURNING clock_timestamp()";

/// Ends the node $1: its row gets a negative number. Waits for claims of it that are under way. Others look
/// after its jobs in $2 microseconds.
pub(crate) const END_NODE: &str = "
UPDATE wheelwork_nodes
SET id = -id, expires = statement_timestamp() + $2::bigint * interval '1 microsecond'
WHERE id = $1";

/// Ends all nodes whose life has lapsed, and takes those up again that could not be emptied before. Passes
/// over a row that somebody has locked: it must not hold up the others.
pub(crate) const END_LAPSED: &str = "
WITH lapsed AS (
    SELECT id FROM wheelwork_nodes WHERE expires < statement_timestamp() FOR UPDATE SKIP LOCKED
)
UPDATE wheelwork_nodes
SET id = -abs(id), expires = statement_timestamp() + interval '1 second'
WHERE id = ANY (ARRAY (SELECT lapsed.id FROM lapsed))
RETURNING -id";

/// Lets others look after the ended nodes $1 in $2 microseconds. Returns those that are not forgotten.
pub(crate) const TAKE_OVER_IN: &str = "
UPDATE wheelwork_nodes
SET expires = statement_timestamp() + $2::bigint * interval '1 microsecond'
WHERE id = ANY (ARRAY (SELECT -ended.node FROM unnest($1::bigint[]) AS ended (node)))
RETURNING -id";

/// The part of a statement that locks the claims of the arrays `$of`, named `$names`, and passes over rows that somebody
/// has locked. `mine` are those whose owner `$is` so, with `$more`. `OFFSET` keeps the inner query whole: the planner must
/// look each id up. A join would read the whole table if it was empty when its statistics were made. For the same reason
/// the inner query says nothing of the owner, whose index can be long while its statistics say that it is empty.
macro_rules! claimed {
    ($of:literal, $names:literal, $is:literal $(, $more:literal)?) => {
        concat!(
            "
WITH mine AS (
    SELECT held.id", $($more,)? "
    FROM unnest(", $of, ") AS ended (", $names, "),
    LATERAL (
        SELECT id, owner FROM wheelwork_jobs
        WHERE id = ended.id AND epoch = ended.epoch
        OFFSET 0
        FOR UPDATE SKIP LOCKED
    ) AS held
    WHERE ", $is, "
)"
        )
    };
}
pub(crate) use claimed;

/// Gives to the node $1, unless it has ended, the claims ($3, $4) that the nodes $2 still have. Passes over rows that
/// somebody has locked.
pub(crate) const KEEP: &str = concat!(
    claimed!("$3::uuid[], $4::bigint[]", "id, epoch", "held.owner = ANY ($2::bigint[])"),
    "
UPDATE wheelwork_jobs AS job SET owner = me.id
FROM (SELECT id FROM wheelwork_nodes WHERE id = $1 FOR KEY SHARE) AS me
WHERE job.id = ANY (ARRAY (SELECT mine.id FROM mine))
RETURNING job.id, job.epoch"
);

/// Frees at most $2 jobs that the nodes $1 own, the earliest first, but not the jobs $3, and counts them. Passes over
/// rows that somebody has locked: a handler that is paused in its transaction must not hold up the others.
pub(crate) const FREE: &str = "
WITH owned AS (
    SELECT held.id
    FROM unnest($1::bigint[]) AS ended (node),
    LATERAL (
        SELECT id FROM wheelwork_jobs
        WHERE owner = ended.node AND id <> ALL ($3::uuid[])
        ORDER BY due
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ) AS held
    LIMIT $2
),
freed AS (
    UPDATE wheelwork_jobs AS job SET owner = NULL
    WHERE job.id = ANY (ARRAY (SELECT owned.id FROM owned))
    RETURNING job.id
)
SELECT count(*) FROM freed";

/// Forgets those of the ended nodes $1 that own nothing any more.
pub(crate) const FORGET: &str = "
WITH gone AS (
    DELETE FROM wheelwork_nodes
    WHERE id = ANY (ARRAY (SELECT -ended.node FROM unnest($1::bigint[]) AS ended (node)))
        AND NOT EXISTS (SELECT FROM wheelwork_jobs AS job WHERE job.owner = -wheelwork_nodes.id)
    RETURNING -id AS node
)
DELETE FROM wheelwork_revoked WHERE node = ANY (ARRAY (SELECT gone.node FROM gone))";

/// Tells the nodes to look for jobs.
pub(crate) const TELL: &str =
    "SELECT pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, 'look')::text";

/// Prolongs the life of the node $1 by $2 microseconds. Reads the clock, the end of the next life, those of the
/// kinds $3 that are paused, the first free job of the others, which claims of the node were revoked, and whether marks
/// are over.
pub(crate) const BEAT: &str = "
WITH beat AS (
    UPDATE wheelwork_nodes
    SET expires = statement_timestamp() + $2::bigint * interval '1 microsecond'
    WHERE id = $1
    RETURNING id
)
SELECT
    EXISTS (SELECT FROM beat),
    (SELECT min(expires) FROM wheelwork_nodes WHERE id <> $1),
    (
        SELECT min(first.due)
        FROM unnest($3::text[]) AS mine (kind),
        LATERAL (
            SELECT due FROM wheelwork_jobs
            WHERE kind = mine.kind AND owner IS NULL AND NOT dead
            ORDER BY due
            LIMIT 1
        ) AS first
        WHERE NOT EXISTS (SELECT FROM wheelwork_kinds WHERE kind = mine.kind AND paused)
    ),
    clock_timestamp(),
    ARRAY (
        SELECT mine.kind FROM unnest($3::text[]) AS mine (kind)
        WHERE EXISTS (SELECT FROM wheelwork_kinds WHERE kind = mine.kind AND paused)
    ),
    ARRAY (
        SELECT concat_ws(' ', job, epoch) FROM wheelwork_revoked WHERE node = $1 ORDER BY job, epoch
    ),
    EXISTS (SELECT FROM wheelwork_unique WHERE until <= statement_timestamp())";

/// Inserts the jobs of `INSERT`: `$marked` comes before, `$chosen` says which of them.
macro_rules! insert {
    ($marked:literal, $chosen:literal) => {
        concat!(
            "
WITH me AS (
    SELECT id FROM wheelwork_nodes WHERE id = $1 FOR KEY SHARE
),",
            $marked,
            "
stored AS (
    INSERT INTO wheelwork_jobs (id, kind, key, due, payload, priority, owner, epoch, claims)
    SELECT
        id, kind, key, due, payload, priority, CASE WHEN claim THEN (SELECT me.id FROM me) END,
        (extract(epoch FROM statement_timestamp()) * 1000000)::bigint,
        CASE WHEN claim THEN (SELECT count(*) FROM me) ELSE 0 END
    FROM (
        SELECT
            id, kind, key, due, payload, priority,
            may_claim AND due <= statement_timestamp() + $2::bigint * interval '1 microsecond'
                AND kind <> ALL (ARRAY (SELECT kind FROM wheelwork_kinds WHERE paused)) AS claim
        FROM unnest(
            $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $8::text[], $9::bool[],
            $10::bigint[]
        ) AS new (id, kind, key, at, delay, payload, may_claim, priority),
        LATERAL (SELECT coalesce(at, statement_timestamp() + delay * interval '1 microsecond') AS due) AS moment",
            $chosen, "
    ) AS new
    ON CONFLICT DO NOTHING
    RETURNING id, due, owner, epoch
)
SELECT
    id, due, CASE WHEN owner IS NOT NULL THEN epoch END,
    CASE
        WHEN owner IS NULL AND due <= statement_timestamp() + $2::bigint * interval '1 microsecond'
        THEN pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, 'look')::text
    END
FROM stored"
        )
    };
}

/// Stores jobs: ids $3, kinds $4, keys $5, due times $6 or delays in microseconds $7, payloads $8, priorities
/// $10. The node $1 claims those with $9 that are due within $2 microseconds, unless their kind is paused.
/// The first epoch is the time: if a job is stored again after its end, no claim on the first one fits the second.
pub(crate) const INSERT: &str = insert!("", "");

/// As `INSERT`, with periods of $11 microseconds: stores a job only if nothing has its mark, which is a hash of the
/// kind and of the key or the payload. A job whose key is taken gets no mark. Fails as a whole if a job that has got
/// one is not stored: while the statement waited for the key or the id, another transaction (or this statement) has
/// stored it. A mark that stayed would keep others out, for a job that nobody has stored. The cast fails, with the
/// state 22P02.
pub(crate) const INSERT_UNIQUE: &str = concat!(
    insert!(
        "
marked AS (
    INSERT INTO wheelwork_unique AS known (mark, job, until)
    SELECT
        sha256(convert_to(length(kind) || ' ' || kind || coalesce('k' || key, 'p' || payload), 'UTF8')),
        id, statement_timestamp() + period * interval '1 microsecond'
    FROM unnest($3::uuid[], $4::text[], $5::text[], $8::text[], $11::bigint[])
        AS new (id, kind, key, payload, period)
    WHERE NOT EXISTS (SELECT FROM wheelwork_jobs AS job WHERE job.id = new.id)
        AND NOT EXISTS (SELECT FROM wheelwork_jobs AS job WHERE job.key = new.key)
    ON CONFLICT (mark) DO UPDATE SET job = excluded.job, until = excluded.until
    WHERE known.until <= statement_timestamp()
    RETURNING job
),",
        "
        WHERE id IN (SELECT marked.job FROM marked)"
    ),
    "
UNION ALL
SELECT
    NULL, NULL, NULL,
    (marked.job || ': another transaction has stored its key or id meanwhile, so begin again')::bigint::text
FROM marked
WHERE marked.job NOT IN (SELECT stored.id FROM stored)"
);

/// Stores a job in a transaction of a user, see `schema/5.sql`.
pub(crate) const STORE_IN: &str =
    "SELECT wheelwork_store($1, $2, $3, $4, $5, $6, $7, $8, $9) AS answer";

/// Those of the transactions $1 that have ended. Tells the nodes to look if one has committed.
pub(crate) const ENDED: &str = "
SELECT
    number,
    CASE
        WHEN status = 'committed'
        THEN pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, 'look')::text
    END
FROM (
    SELECT number, txid_status(number) AS status FROM unnest($1::bigint[]) AS open (number)
) AS open
WHERE status IS DISTINCT FROM 'in progress'";

/// Which jobs have the marks of those with the ids $1, the kinds $2, the keys $3 and the payloads $4.
pub(crate) const MARKED: &str = "
SELECT new.id, known.job
FROM (
    SELECT id, sha256(convert_to(length(kind) || ' ' || kind || coalesce('k' || key, 'p' || payload), 'UTF8')) AS mark
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS new (id, kind, key, payload)
) AS new,
LATERAL (SELECT job, until FROM wheelwork_unique WHERE mark = new.mark OFFSET 0) AS known
WHERE known.until > statement_timestamp()";

/// Deletes the first rows of a table that are `$old`, `$most` of them. Passes over rows that somebody has locked.
#[rustfmt::skip] // as it is sent
macro_rules! delete_first {
    ($table:literal, $key:literal, $old:literal, $order:literal, $most:literal) => {
        concat!(
            "
DELETE FROM ", $table, " WHERE ", $key, " = ANY (ARRAY (
    SELECT ", $key, " FROM ", $table, "
    WHERE ", $old, "
    ORDER BY ", $order, "
    LIMIT ", $most, "
    FOR UPDATE SKIP LOCKED
))
RETURNING true"
        )
    };
}
pub(crate) use delete_first;

/// Deletes at most $1 marks that are over. One that is locked is passed over: whoever stores the same again has locked
/// it, and whoever finds that it is locked by this stores a new one.
pub(crate) const UNMARK: &str =
    delete_first!("wheelwork_unique", "mark", "until <= statement_timestamp()", "until", "$1");

/// The part of a statement that locks the first free jobs of the kind `$kind`, at most `$room`. First those that are
/// due and have a priority, each priority by the index of these (a kind that has none costs one look), then the others
/// that are due up to `$horizon`. The second leaves out, by its condition, what the first looks at.
#[rustfmt::skip] // as it is sent
macro_rules! first_free {
    ($kind:literal, $room:literal, $horizon:literal) => {
        concat!("
SELECT urgent.id
FROM generate_series(9, 1, -1) AS level,
LATERAL (
    SELECT id FROM wheelwork_jobs
    WHERE kind = ", $kind, " AND priority = level AND priority > 0
        AND owner IS NULL AND NOT dead AND due <= statement_timestamp()
    ORDER BY due
    LIMIT ", $room, "
    FOR UPDATE SKIP LOCKED
) AS urgent
WHERE EXISTS (
    SELECT FROM wheelwork_jobs
    WHERE kind = ", $kind, " AND priority > 0 AND owner IS NULL AND NOT dead
)
UNION ALL
SELECT others.id
FROM (
    SELECT id FROM wheelwork_jobs
    WHERE kind = ", $kind, " AND owner IS NULL AND NOT dead
        AND due <= ", $horizon, "
        AND (priority = 0 OR due > statement_timestamp())
    ORDER BY due
    LIMIT ", $room, "
    FOR UPDATE SKIP LOCKED
) AS others
LIMIT ", $room)
    };
}

/// Claims for the node $1 free jobs that are due within $2 microseconds: of each kind $3 that is not paused at most
/// $4. `OFFSET` keeps the planner from asking whether a kind is paused when its jobs are locked already.
pub(crate) const CLAIM: &str = concat!(
    "
WITH me AS (
    SELECT id FROM wheelwork_nodes WHERE id = $1 FOR KEY SHARE
),
near AS (
    SELECT free.id
    FROM (
        SELECT kind, room FROM unnest($3::text[], $4::bigint[]) AS all_of (kind, room)
        WHERE NOT EXISTS (SELECT FROM wheelwork_kinds AS known WHERE known.kind = all_of.kind AND paused)
        OFFSET 0
    ) AS mine,
    LATERAL (",
    first_free!("mine.kind", "mine.room", "statement_timestamp() + $2::bigint * interval '1 microsecond'"),
    ") AS free
)
UPDATE wheelwork_jobs AS job
SET owner = me.id, epoch = job.epoch + 1, claims = job.claims + 1, limited = false
FROM me
WHERE job.id = ANY (ARRAY (SELECT near.id FROM near))
RETURNING
    job.id, job.epoch, job.kind, job.due, job.payload, job.attempts, job.claims, job.priority::bigint,
    job.key"
);

/// Makes the kind $1 known.
pub(crate) const KNOW_KIND: &str = "
INSERT INTO wheelwork_kinds (kind) VALUES ($1) ON CONFLICT DO NOTHING";

/// Claims for the node $1 free jobs of the kind $3 that are due: at most $4, so that at most $5 of them are claimed,
/// and within the rate of $7 at once and one more after each $6 microseconds.
///
/// Nodes take turns, and nobody waits: the row of the kind is locked or passed over. The statement sees what was
/// committed before it began. So it claims nothing if the turn that it has locked is not the one that it sees:
/// then it would not see the claims of that turn, and count too few.
///
/// `spent` is the time up to which the rate is used up: it is later than now by as much as the claims use up. It
/// is never more than the whole burst ahead, unless the clock or the rate was set: then it is cut to that.
///
/// Answers at least one row: whose turn it is, how many it could claim, when the next job is due within $2
/// microseconds, when the rate allows one more if it allows none now, and a job.
pub(crate) const CLAIM_LIMITED: &str = concat!(
    "
WITH me AS (
    SELECT id FROM wheelwork_nodes WHERE id = $1 FOR KEY SHARE
),
seen AS (
    SELECT turn, paused FROM wheelwork_kinds WHERE kind = $3
),
mine AS (
    SELECT turn, spent FROM wheelwork_kinds WHERE kind = $3 AND NOT paused FOR NO KEY UPDATE SKIP LOCKED
),
granted AS (
    SELECT
        greatest(least(mine.spent, statement_timestamp() + $7::bigint * pace.pace), statement_timestamp())
            AS spent,
        pace.pace
    FROM mine, seen, (SELECT $6::bigint * interval '1 microsecond' AS pace) AS pace
    WHERE mine.turn = seen.turn
),
room AS (
    SELECT
        greatest(least(
            $4::bigint,
            $5::bigint - (
                SELECT count(*) FROM wheelwork_jobs WHERE kind = $3 AND owner IS NOT NULL AND limited
            ),
            floor($7::bigint - extract(epoch FROM granted.spent - statement_timestamp()) * 1000000 / $6::bigint)
        ), 0)::bigint AS room
    FROM granted
),
near AS (
    SELECT due.id
    FROM (",
    first_free!("$3", "coalesce((SELECT room FROM room), 0)", "statement_timestamp()"),
    ") AS due
),
claimed AS (
    UPDATE wheelwork_jobs AS job
    SET owner = me.id, epoch = job.epoch + 1, claims = job.claims + 1, limited = true
    FROM me
    WHERE job.id = ANY (ARRAY (SELECT near.id FROM near))
    RETURNING
        job.id, job.epoch, job.kind, job.due, job.payload, job.attempts, job.claims,
        job.priority::bigint AS priority, job.key
),
after AS (
    SELECT spent + (SELECT count(*) FROM claimed) * pace AS spent, pace FROM granted
),
turned AS (
    UPDATE wheelwork_kinds AS this
    SET turn = this.turn + 1, spent = coalesce((SELECT after.spent FROM after), this.spent)
    WHERE this.kind = $3
        AND (EXISTS (SELECT FROM claimed) OR this.spent > (SELECT after.spent FROM after))
)
SELECT
    claimed.id, claimed.epoch, claimed.kind, claimed.due, claimed.payload, claimed.attempts, claimed.claims,
    claimed.priority, claimed.key,
    CASE
        WHEN NOT EXISTS (SELECT FROM seen) THEN 'unknown'
        WHEN (SELECT seen.paused FROM seen) THEN 'paused'
        WHEN EXISTS (SELECT FROM granted) THEN 'mine'
        ELSE 'busy'
    END,
    coalesce((SELECT room FROM room), 0),
    (
        SELECT job.due FROM wheelwork_jobs AS job
        WHERE job.kind = $3 AND job.owner IS NULL AND NOT job.dead AND job.due > statement_timestamp()
            AND job.due <= statement_timestamp() + $2::bigint * interval '1 microsecond'
        ORDER BY job.due
        LIMIT 1
    ),
    (
        SELECT after.spent - ($7::bigint - 1) * after.pace FROM after
        WHERE after.spent > statement_timestamp() + ($7::bigint - 1) * after.pace
    )
FROM (SELECT) AS one LEFT JOIN claimed ON true"
);

/// Deletes jobs: ids $1, epochs $2. Passes over rows that somebody has locked.
pub(crate) const DONE: &str = concat!(
    claimed!("$1::uuid[], $2::bigint[]", "id, epoch", "true"),
    "
DELETE FROM wheelwork_jobs AS job
WHERE job.id = ANY (ARRAY (SELECT mine.id FROM mine))
RETURNING job.id, job.epoch"
);

/// Frees or buries jobs after their runs: ids $1, epochs $2, delays in microseconds $3, errors $4 or NULL if there was
/// none: then the attempt does not count. Next occurrences $5 of periodic jobs, which begin with new attempts and the
/// error of the one that was given up. Buries those with neither delay nor occurrence. Not due before the attempt was,
/// or an occurrence would come again after the retry, if the clock was set back. Passes over rows that somebody has
/// locked. A job that is free already has had this end. The array leaves to the join only the rows that were found.
pub(crate) const FAILED: &str = concat!(
    claimed!(
        "$1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::timestamptz[]",
        "id, epoch, delay, error, next", "held.owner IS NOT NULL", ", ended.delay, ended.error, ended.next"
    ),
    "
UPDATE wheelwork_jobs AS job
SET owner = NULL,
    attempts = CASE WHEN mine.next IS NOT NULL THEN 0 WHEN mine.error IS NULL THEN attempts ELSE attempts + 1 END,
    claims = 0,
    starts = 0,
    dead = mine.delay IS NULL AND mine.next IS NULL,
    due = coalesce(mine.next, greatest(statement_timestamp() + mine.delay * interval '1 microsecond', due)),
    error = CASE WHEN mine.next IS NULL THEN coalesce(mine.error, job.error) ELSE mine.error END
FROM mine
WHERE job.id = mine.id AND job.id = ANY (ARRAY (SELECT mine.id FROM mine))
RETURNING job.id, job.epoch"
);

/// Frees jobs that have not begun, and tells the nodes: ids $1, epochs $2. The claim does not count.
pub(crate) const LET_GO: &str = concat!(
    claimed!("$1::uuid[], $2::bigint[]", "id, epoch", "held.owner IS NOT NULL"),
    "
UPDATE wheelwork_jobs AS job SET owner = NULL, claims = greatest(claims - 1, 0)
WHERE job.id = ANY (ARRAY (SELECT mine.id FROM mine))
RETURNING
    job.id, job.epoch, pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, 'look')::text"
);

/// Counts the beginning of a run of each of the claims ($2, $3) that the node $1 has. Passes over rows that
/// somebody has locked. `OFFSET` as in `claimed`.
pub(crate) const START: &str = concat!(
    claimed!("$2::uuid[], $3::bigint[]", "id, epoch", "held.owner = $1"),
    "
UPDATE wheelwork_jobs AS job SET starts = starts + 1
WHERE job.id = ANY (ARRAY (SELECT mine.id FROM mine))
RETURNING job.id, job.epoch, job.starts"
);

/// Those of the claims ($1, $2) that are in the table, and their owners. `OFFSET` as in `claimed`.
pub(crate) const OWNERS: &str = "
SELECT job.id, job.epoch, job.owner
FROM unnest($1::uuid[], $2::bigint[]) AS ended (id, epoch),
LATERAL (
    SELECT id, epoch, owner FROM wheelwork_jobs
    WHERE id = ended.id AND epoch = ended.epoch
    OFFSET 0
) AS job";

/// The part of a statement that revokes the claims `$was`. Not if their owner is the node `$me`, or has ended, or never
/// answers. An owner that is not in the table yet has joined since the statement began.
macro_rules! revoked {
    ($was:literal, $me:literal) => {
        concat!(
            "revoked AS (
    INSERT INTO wheelwork_revoked (node, job, epoch)
    SELECT was.owner, was.id, was.epoch FROM ", $was, " AS was
    WHERE was.owner IS NOT NULL AND was.owner IS DISTINCT FROM ", $me, "::bigint
        AND NOT EXISTS (
            SELECT FROM wheelwork_nodes AS node
            WHERE node.id = ANY (ARRAY[was.owner, -was.owner]) AND (node.id < 0 OR NOT node.answers)
        )
    ON CONFLICT DO NOTHING
    RETURNING node
)
"
        )
    };
}

/// Deletes the job $1, tells its owner, and revokes its claim, unless the owner is the node $2.
pub(crate) const CANCEL: &str = concat!(
    "
WITH gone AS (
    DELETE FROM wheelwork_jobs WHERE id = $1 RETURNING id, owner, epoch, kind
),
",
    revoked!("gone", "$2"),
    "
SELECT
    owner, epoch, EXISTS (SELECT FROM revoked), kind,
    CASE
        WHEN owner IS NOT NULL
        THEN pg_notify(
            'wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid,
            concat_ws(' ', 'drop', owner, id, epoch)
        )::text
    END
FROM gone"
);

/// Frees the job $1 with the due time $2, or the delay of $3 microseconds. Tells its owner, and all nodes
/// if it is due within $4 microseconds. If $5, the job must be dead, and otherwise it must not. It must have the due
/// time $7, if that is given. Revokes the claim as `CANCEL`, unless the owner is the node $6.
pub(crate) const RESCHEDULE: &str = concat!(
    "
WITH before AS (
    SELECT id, owner, epoch FROM wheelwork_jobs
    WHERE id = $1 AND dead = $5 AND due = coalesce($7::timestamptz, due)
    FOR UPDATE
),
moved AS (
    UPDATE wheelwork_jobs AS job
    SET owner = NULL,
        epoch = job.epoch + 1,
        claims = 0,
        starts = 0,
        dead = false,
        attempts = CASE WHEN dead THEN 0 ELSE attempts END,
        due = coalesce($2::timestamptz, statement_timestamp() + $3::bigint * interval '1 microsecond')
    FROM before
    WHERE job.id = before.id
    RETURNING before.id, before.owner, before.epoch, job.due
),
",
    revoked!("moved", "$6"),
    "
SELECT
    owner, epoch, EXISTS (SELECT FROM revoked),
    CASE
        WHEN owner IS NOT NULL
        THEN pg_notify(
            'wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid,
            concat_ws(' ', 'drop', owner, id, epoch)
        )::text
    END,
    CASE
        WHEN due <= statement_timestamp() + $4::bigint * interval '1 microsecond'
        THEN pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, 'look')::text
    END
FROM moved"
);

/// Stores the job $1 of the kind $2 with the key $3, the due time $4 or the delay of $5 microseconds, and the payload
/// $6 with the priority $8, in place of the job that has the key. Tells its owner, and all nodes if the new one is due
/// within $7 microseconds. No row if somebody else has stored the key meanwhile, or the very job is stored: then its row
/// is not locked, not even by a conflict, so that a claim at that time does not pass over it. Revokes as `CANCEL`, unless
/// the owner is the node $9.
pub(crate) const REPLACE: &str = concat!(
    "
WITH before AS (
    SELECT id, owner, epoch FROM wheelwork_jobs WHERE key = $3 AND id <> $1 FOR UPDATE
),
new AS (
    SELECT
        coalesce($4::timestamptz, statement_timestamp() + $5::bigint * interval '1 microsecond') AS due,
        (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS epoch
),
changed AS (
    UPDATE wheelwork_jobs AS job
    SET id = $1, kind = $2, due = new.due, payload = $6, priority = $8::bigint, owner = NULL, epoch = new.epoch,
        attempts = 0, claims = 0, limited = false, starts = 0, dead = false, error = NULL
    FROM before, new
    WHERE job.id = before.id
    RETURNING job.due
),
inserted AS (
    INSERT INTO wheelwork_jobs (id, kind, key, due, payload, priority, epoch)
    SELECT $1, $2, $3, new.due, $6, $8::bigint, new.epoch FROM new
    WHERE NOT EXISTS (SELECT FROM before)
    ON CONFLICT DO NOTHING
    RETURNING due
),
stored AS (
    SELECT due FROM changed UNION ALL SELECT due FROM inserted
),
",
    revoked!("(SELECT before.* FROM before, stored)", "$9"),
    "
SELECT
    before.owner, before.epoch, EXISTS (SELECT FROM revoked), before.id, stored.due,
    CASE
        WHEN before.owner IS NOT NULL
        THEN pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, concat_ws(' ', 'drop', before.owner, before.id, before.epoch))::text
    END,
    CASE
        WHEN stored.due <= statement_timestamp() + $7::bigint * interval '1 microsecond'
        THEN pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, 'look')::text
    END
FROM stored LEFT JOIN before ON true"
);

/// Those of the claims ($2, $3) of the nodes $1 that were revoked, whose nodes have not acknowledged it and have not
/// ended, and whether their lives have lapsed. `OFFSET` as in `claimed`.
pub(crate) const REVOKED: &str = "
SELECT claim.node, claim.job, claim.epoch, node.expires < statement_timestamp()
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[]) AS asked (node, job, epoch),
LATERAL (
    SELECT node, job, epoch FROM wheelwork_revoked
    WHERE node = asked.node AND job = asked.job AND epoch = asked.epoch
    OFFSET 0
) AS claim,
LATERAL (SELECT expires FROM wheelwork_nodes WHERE id = asked.node AND answers OFFSET 0) AS node";

/// The node $1 has dropped the claims ($2, $3).
pub(crate) const ACKNOWLEDGE: &str = "
DELETE FROM wheelwork_revoked
WHERE node = $1
    AND (job, epoch) IN (SELECT job, epoch FROM unnest($2::uuid[], $3::bigint[]) AS dropped (job, epoch))";

/// Pauses the kind $1, and tells the nodes.
pub(crate) const PAUSE: &str = "
WITH changed AS (
    INSERT INTO wheelwork_kinds AS known (kind, paused) VALUES ($1, true)
    ON CONFLICT (kind) DO UPDATE SET paused = true WHERE NOT known.paused
    RETURNING kind
)
SELECT pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, 'paused')::text
FROM changed";

/// Resumes the kind $1, and tells the nodes.
pub(crate) const RESUME: &str = "
WITH changed AS (
    UPDATE wheelwork_kinds SET paused = false WHERE kind = $1 AND paused RETURNING kind
)
SELECT pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid, 'paused')::text
FROM changed";

/// Deletes at most $3 dead jobs of the kind $1, or of all if that is NULL, that were due before $2.
pub(crate) const PRUNE: &str = delete_first!(
    "wheelwork_jobs",
    "id",
    "dead AND due < $2 AND ($1::text IS NULL OR kind = $1)",
    "due",
    "$3"
);

/// The job with the key $1.
pub(crate) const FIND: &str = "
SELECT id, kind, key, due, payload, attempts, dead, owner IS NOT NULL, error, priority::bigint
FROM wheelwork_jobs WHERE key = $1";

/// Deletes the job $1 of the epoch $2, in a transaction of a user.
pub(crate) const COMPLETE: &str =
    "DELETE FROM wheelwork_jobs WHERE id = $1 AND epoch = $2 RETURNING NULL::text AS answer";

/// Moves the job $1 of the epoch $2 to its next occurrence $3, in a transaction of a user. If that is due within
/// $4 microseconds, returns the number of the transaction.
pub(crate) const REPEAT_IN: &str = "
UPDATE wheelwork_jobs
SET owner = NULL, epoch = epoch + 1, attempts = 0, claims = 0, starts = 0, due = $3, error = NULL
WHERE id = $1 AND epoch = $2
RETURNING
    CASE WHEN due <= statement_timestamp() + $4 * interval '1 microsecond' THEN txid_current()::text END AS answer";

/// Those of the jobs $1 that are stored, and whether they are dead.
pub(crate) const STORED: &str = "SELECT id, dead FROM wheelwork_jobs WHERE id = ANY ($1::uuid[])";

/// The stored jobs that have one of the ids $1 or of the keys $2.
pub(crate) const TAKEN: &str = "
SELECT id, key FROM wheelwork_jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT id, key FROM wheelwork_jobs WHERE key = ANY ($2::text[])";

/// The job $1.
pub(crate) const GET: &str = "
SELECT id, kind, key, due, payload, attempts, dead, owner IS NOT NULL, error, priority::bigint
FROM wheelwork_jobs WHERE id = $1";

/// At most $3 jobs of the kind $1 that are dead or not, as $2 says, behind the due time $4 and the id $5; NULL
/// selects all. Reads up to $3 of each free kind, of each owner, and of the dead, each through its index. (Only a
/// kind that is asked for is looked for among the owned and the dead ones.)
pub(crate) const LIST: &str = "
WITH RECURSIVE kinds (kind) AS (
    (
        SELECT kind FROM wheelwork_jobs
        WHERE owner IS NULL AND NOT dead AND ($1::text IS NULL OR kind = $1)
        ORDER BY kind LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT job.kind FROM wheelwork_jobs AS job
        WHERE job.owner IS NULL AND NOT job.dead AND job.kind > kinds.kind AND $1::text IS NULL
        ORDER BY job.kind LIMIT 1
    )
    FROM kinds WHERE kinds.kind IS NOT NULL
),
owners (owner) AS (
    (SELECT owner FROM wheelwork_jobs WHERE owner IS NOT NULL ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (
        SELECT job.owner FROM wheelwork_jobs AS job
        WHERE job.owner > owners.owner ORDER BY job.owner LIMIT 1
    )
    FROM owners WHERE owners.owner IS NOT NULL
),
found AS (
    SELECT job.* FROM kinds, LATERAL (
        SELECT * FROM wheelwork_jobs
        WHERE owner IS NULL AND NOT dead AND kind = kinds.kind
            AND due >= coalesce($4::timestamptz, '-infinity')
            AND ($4::timestamptz IS NULL OR (due, id) > ($4, $5::uuid))
        ORDER BY due, id LIMIT $3
    ) AS job
    WHERE $2::bool IS DISTINCT FROM true
    UNION ALL
    SELECT job.* FROM owners, LATERAL (
        SELECT * FROM wheelwork_jobs
        WHERE owner = owners.owner AND ($1::text IS NULL OR kind = $1)
            AND due >= coalesce($4::timestamptz, '-infinity')
            AND ($4::timestamptz IS NULL OR (due, id) > ($4, $5::uuid))
        ORDER BY due, id LIMIT $3
    ) AS job
    WHERE $2::bool IS DISTINCT FROM true
    UNION ALL
    (
        SELECT * FROM wheelwork_jobs
        WHERE dead AND $2::bool IS DISTINCT FROM false AND ($1::text IS NULL OR kind = $1)
            AND due >= coalesce($4::timestamptz, '-infinity')
            AND ($4::timestamptz IS NULL OR (due, id) > ($4, $5::uuid))
        ORDER BY due, id LIMIT $3
    )
)
SELECT id, kind, key, due, payload, attempts, dead, owner IS NOT NULL, error, priority::bigint
FROM found
ORDER BY due, id
LIMIT $3";
