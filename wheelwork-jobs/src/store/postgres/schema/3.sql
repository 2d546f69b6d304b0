-- Version 3: jobs that are done, for kinds that keep them for a while, and the progress of runs. The new columns
-- change no row.
BEGIN;
SET LOCAL lock_timeout = '250ms';
ALTER TABLE wheelwork_jobs
    -- The claim whose run has reported it.
    ADD COLUMN IF NOT EXISTS progress_epoch bigint,
    ADD COLUMN IF NOT EXISTS progress_done bigint,
    ADD COLUMN IF NOT EXISTS progress_of bigint,
    ADD COLUMN IF NOT EXISTS progress_text text;
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
