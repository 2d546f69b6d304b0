-- Version 3: jobs that are done, for kinds that keep them for a while. It changes no table.
BEGIN;
SET LOCAL lock_timeout = '250ms';
CREATE TABLE IF NOT EXISTS wheelwork_done (
    id uuid PRIMARY KEY,
    kind text NOT NULL,
    key text,
    due timestamptz NOT NULL,
    done timestamptz NOT NULL,
    -- Then it is deleted.
    until timestamptz NOT NULL,
    attempts bigint NOT NULL,
    payload text NOT NULL,
    result text
);
CREATE INDEX IF NOT EXISTS wheelwork_done_done ON wheelwork_done (done);
CREATE INDEX IF NOT EXISTS wheelwork_done_until ON wheelwork_done (until);
INSERT INTO wheelwork_schema AS now (version) VALUES (3)
ON CONFLICT (one) DO UPDATE SET version = greatest(now.version, excluded.version);
COMMIT;
