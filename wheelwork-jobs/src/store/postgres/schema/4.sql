-- Version 4: claims that were revoked by a cancel or a move. The new column changes no row.
BEGIN;
SET LOCAL lock_timeout = '250ms';
ALTER TABLE wheelwork_nodes
    -- It acknowledges that its claims were revoked. Nodes of older versions do not.
    ADD COLUMN IF NOT EXISTS answers boolean NOT NULL DEFAULT false;
CREATE TABLE IF NOT EXISTS wheelwork_revoked (
    -- Who had the claim. Deletes the row when it has dropped the job.
    node bigint NOT NULL,
    job uuid NOT NULL,
    epoch bigint NOT NULL,
    PRIMARY KEY (node, job, epoch)
);
INSERT INTO wheelwork_schema AS now (version) VALUES (4)
ON CONFLICT (one) DO UPDATE SET version = greatest(now.version, excluded.version);
COMMIT;
