-- Version 5: how jobs are stored in transactions of users. A function, because a connection keeps the plans of its
-- statements, which are several: the connections of users come from any pool, and cannot keep a statement.
BEGIN;
SET LOCAL lock_timeout = '250ms';
-- Stores the job $1 of the kind $2 with the key $3, the due time $4 or the delay of $5 microseconds, and the payload $6
-- with the priority $8. With a period of $9 microseconds, only if nothing has its mark. If it is stored, and due within
-- $7 microseconds, returns the number of the transaction, and otherwise ''. If not, `known`, or the job that has the
-- mark, or `taken`: another one has the key. NULL if what it was refused for has just ended. What is read then is
-- planned anew each time: a plan that was kept from when the table was small may read all of it.
CREATE OR REPLACE FUNCTION wheelwork_store(
    uuid, text, text, timestamptz, bigint, text, bigint, bigint, bigint
) RETURNS text LANGUAGE plpgsql AS $function$
DECLARE
    hash bytea;
    answer text;
BEGIN
    IF $9 IS NOT NULL THEN
        hash := sha256(convert_to(length($2) || ' ' || $2 || coalesce('k' || $3, 'p' || $6), 'UTF8'));
        INSERT INTO wheelwork_unique AS known (mark, job, until)
        VALUES (hash, $1, statement_timestamp() + $9 * interval '1 microsecond')
        ON CONFLICT (mark) DO UPDATE SET job = excluded.job, until = excluded.until
        WHERE known.until <= statement_timestamp();
    END IF;
    IF $9 IS NULL OR FOUND THEN
        INSERT INTO wheelwork_jobs (id, kind, key, due, payload, priority, epoch)
        VALUES (
            $1, $2, $3, coalesce($4, statement_timestamp() + $5 * interval '1 microsecond'), $6, $8,
            (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
        )
        ON CONFLICT DO NOTHING
        RETURNING CASE
            WHEN due <= statement_timestamp() + $7 * interval '1 microsecond' THEN txid_current()::text ELSE ''
        END INTO answer;
        IF FOUND THEN
            RETURN answer;
        END IF;
        IF $9 IS NOT NULL THEN
            -- A mark that stayed would keep others out, for a job that nobody has stored.
            EXECUTE 'DELETE FROM wheelwork_unique WHERE mark = $1' USING hash;
            hash := NULL;
        END IF;
    END IF;
    EXECUTE 'SELECT coalesce(
        (SELECT ''known'' FROM wheelwork_jobs WHERE id = $1),
        (SELECT job::text FROM wheelwork_unique WHERE mark = $2),
        (SELECT ''taken'' FROM wheelwork_jobs WHERE key = $3)
    )' INTO answer USING $1, hash, $3;
    RETURN answer;
END
$function$;
INSERT INTO wheelwork_schema AS now (version) VALUES (5)
ON CONFLICT (one) DO UPDATE SET version = greatest(now.version, excluded.version);
COMMIT;
