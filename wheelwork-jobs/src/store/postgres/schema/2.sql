-- Version 2: priorities, kinds that are paused or limited over all nodes, jobs that are unique for a period.
-- The new columns change no row. While an index is built, jobs are read, but none is stored, claimed or ended.
BEGIN;
SET LOCAL lock_timeout = '250ms';
ALTER TABLE wheelwork_jobs
    ADD COLUMN IF NOT EXISTS priority smallint NOT NULL DEFAULT 0,
    -- Claimed under a limit of its kind over all nodes.
    ADD COLUMN IF NOT EXISTS limited boolean NOT NULL DEFAULT false;
COMMIT;
BEGIN;
SET LOCAL lock_timeout = '250ms';
SET LOCAL statement_timeout = 0;
CREATE INDEX IF NOT EXISTS wheelwork_jobs_urgent
    ON wheelwork_jobs (kind, priority, due) WHERE owner IS NULL AND NOT dead AND priority > 0;
CREATE INDEX IF NOT EXISTS wheelwork_jobs_limited
    ON wheelwork_jobs (kind) WHERE owner IS NOT NULL AND limited;
CREATE TABLE IF NOT EXISTS wheelwork_kinds (
    kind text PRIMARY KEY,
    paused boolean NOT NULL DEFAULT false,
    -- Grows with each claim under a limit.
    turn bigint NOT NULL DEFAULT 0,
    -- Until then, its rate is used up.
    spent timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE TABLE IF NOT EXISTS wheelwork_unique (
    -- The hash of what is unique.
    mark bytea PRIMARY KEY,
    job uuid NOT NULL,
    until timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS wheelwork_unique_until ON wheelwork_unique (until);
CREATE TABLE IF NOT EXISTS wheelwork_schema (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint NOT NULL
);
INSERT INTO wheelwork_schema AS now (version) VALUES (2)
ON CONFLICT (one) DO UPDATE SET version = greatest(now.version, excluded.version);
COMMIT;
