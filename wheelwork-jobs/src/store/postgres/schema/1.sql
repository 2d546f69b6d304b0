-- Version 1 of the tables of wheelwork-jobs: jobs and nodes.
BEGIN;
SET LOCAL lock_timeout = 0;
CREATE TABLE IF NOT EXISTS wheelwork_nodes (
    id bigint PRIMARY KEY,
    expires timestamptz NOT NULL
);
CREATE SEQUENCE IF NOT EXISTS wheelwork_node_ids;
CREATE TABLE IF NOT EXISTS wheelwork_jobs (
    id uuid PRIMARY KEY,
    kind text NOT NULL,
    key text,
    due timestamptz NOT NULL,
    payload text NOT NULL,
    owner bigint,
    epoch bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    claims bigint NOT NULL DEFAULT 0,
    starts bigint NOT NULL DEFAULT 0,
    dead boolean NOT NULL DEFAULT false,
    error text
);
CREATE UNIQUE INDEX IF NOT EXISTS wheelwork_jobs_key ON wheelwork_jobs (key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS wheelwork_jobs_free
    ON wheelwork_jobs (kind, due) WHERE owner IS NULL AND NOT dead;
CREATE INDEX IF NOT EXISTS wheelwork_jobs_owned
    ON wheelwork_jobs (owner, due) WHERE owner IS NOT NULL;
CREATE INDEX IF NOT EXISTS wheelwork_jobs_dead ON wheelwork_jobs (due) WHERE dead;
COMMIT;
