//! PostgreSQL, whose clock is that of the imitation.

use super::Answer;
use super::value::{self, Value};
use crate::store::postgres::{Postgres, sql};
use crate::time::Timestamp;
use std::collections::HashMap;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

/// Stand for the functions of PostgreSQL.
const FUNCTIONS: &str = "
CREATE SCHEMA sim;
CREATE TABLE sim.notices (payload text);
CREATE FUNCTION sim.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql AS
    $$SELECT timestamptz 'epoch' + current_setting('sim.now')::bigint * interval '1 microsecond'$$;
CREATE FUNCTION sim.clock_timestamp() RETURNS timestamptz STABLE LANGUAGE sql AS
    $$SELECT timestamptz 'epoch' + current_setting('sim.now')::bigint * interval '1 microsecond'$$;
CREATE FUNCTION sim.pg_notify(channel text, payload text) RETURNS text VOLATILE LANGUAGE sql AS
    $$INSERT INTO sim.notices VALUES (payload); SELECT ''$$;
ALTER TABLE wheelwork_jobs SET (autovacuum_enabled = off);
ALTER TABLE wheelwork_nodes SET (autovacuum_enabled = off);
ALTER TABLE wheelwork_kinds SET (autovacuum_enabled = off);
ALTER TABLE wheelwork_unique SET (autovacuum_enabled = off);
ALTER TABLE wheelwork_revoked SET (autovacuum_enabled = off);
ALTER TABLE sim.notices SET (autovacuum_enabled = off);";

/// They come before those of PostgreSQL.
const FIRST: &str =
    "SET search_path = sim, pg_catalog, public; SET idle_in_transaction_session_timeout = 0;";

const EMPTY: &str =
    "DELETE FROM wheelwork_jobs; DELETE FROM wheelwork_nodes; DELETE FROM wheelwork_kinds;
    DELETE FROM wheelwork_unique; DELETE FROM wheelwork_revoked; DELETE FROM sim.notices";

/// Now and then, because what was deleted leaves room behind.
const TRUNCATE: &str = "TRUNCATE wheelwork_jobs, wheelwork_nodes, wheelwork_kinds, wheelwork_unique, wheelwork_revoked, sim.notices";

/// All tables, as in `Play::tables`.
const TABLES: &str = "
WITH told AS (DELETE FROM sim.notices RETURNING payload)
SELECT DISTINCT 'notice|' || payload FROM told
UNION ALL
SELECT concat_ws(
    '|', 'job', replace(id::text, '-', ''), kind, coalesce(key, '-'), (extract(epoch FROM due) * 1000000)::bigint,
    payload, priority, coalesce(owner::text, '-'), epoch, attempts, claims, limited::text, starts, dead::text,
    coalesce(error, '-')
) FROM wheelwork_jobs
UNION ALL
SELECT concat_ws('|', 'node', id, (extract(epoch FROM expires) * 1000000)::bigint) FROM wheelwork_nodes
UNION ALL
SELECT concat_ws(
    '|', 'kind', kind, paused::text, turn,
    (extract(epoch FROM greatest(spent, timestamptz 'epoch')) * 1000000)::bigint
) FROM wheelwork_kinds
UNION ALL
SELECT concat_ws('|', 'mark', replace(job::text, '-', ''), (extract(epoch FROM until) * 1000000)::bigint)
FROM wheelwork_unique
UNION ALL
SELECT concat_ws('|', 'revoked', node, replace(job::text, '-', ''), epoch) FROM wheelwork_revoked";

/// The session that looks.
const LOOKS: usize = 3;

pub(super) struct Real {
    runtime: Runtime,
    /// Those of `Play`, and the one that looks.
    sessions: Vec<Session>,
    resets: usize,
}

struct Session {
    client: Client,
    prepared: HashMap<&'static str, Statement>,
    set_now: Statement,
}

impl Real {
    pub(super) fn new(url: &str, lock_timeout: Duration) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let connect = async || {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        };
        let sessions = runtime.block_on(async {
            let client = connect().await;
            client.batch_execute(&Postgres::schema(0, None).unwrap()).await.unwrap();
            client.batch_execute(FUNCTIONS).await.unwrap();
            let mut sessions = Vec::new();
            for session in 0..4 {
                let client = connect().await;
                let limit = if session == LOOKS { 0 } else { lock_timeout.as_millis() };
                let lock_timeout = format!("SET lock_timeout = {limit};");
                for settings in [sql::CONNECTED, FIRST, &lock_timeout] {
                    client.batch_execute(settings).await.unwrap();
                }
                let set_now = "SELECT set_config('sim.now', $1, false)";
                let set_now = client.prepare(set_now).await.unwrap();
                sessions.push(Session { client, prepared: HashMap::new(), set_now });
            }
            sessions
        });
        Self { runtime, sessions, resets: 0 }
    }

    /// Empties the tables.
    pub(super) fn reset(&mut self) {
        for session in 0..LOOKS {
            self.batch(session, "ROLLBACK");
        }
        self.resets += 1;
        self.batch(LOOKS, if self.resets.is_multiple_of(100) { TRUNCATE } else { EMPTY });
        self.batch(LOOKS, "ALTER SEQUENCE wheelwork_node_ids RESTART");
    }

    pub(super) fn batch(&mut self, session: usize, text: &str) {
        self.runtime.block_on(self.sessions[session].client.batch_execute(text)).unwrap();
    }

    /// Runs a statement. An error is its SQLSTATE.
    pub(super) fn run(
        &mut self,
        session: usize,
        now: Timestamp,
        text: &'static str,
        values: &[Value],
    ) -> Answer {
        let Session { client, prepared, set_now } = &mut self.sessions[session];
        self.runtime.block_on(async {
            if !prepared.contains_key(text) {
                let types = value::types(text);
                // The types of users' parameters are given.
                let given = if value::is_of_users(text) { &types[..] } else { &[] };
                let statement = client.prepare_typed(text, given).await.unwrap();
                assert_eq!(statement.params(), types, "the parameters of {text}");
                prepared.insert(text, statement);
            }
            let (now, values) = (now.as_micros().to_string(), value::raw(text, values));
            let now: [&(dyn ToSql + Sync); 1] = [&now];
            let values: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
            let set = client.query(set_now, &now);
            let run = client.query(&prepared[text], &values);
            // Both are sent together.
            let (set, rows) = tokio::join!(biased; set, run);
            set.unwrap();
            let rows = match rows {
                Ok(rows) => rows,
                Err(error) => {
                    // The server tells of an error before it has released the locks of the statement.
                    client.batch_execute("").await.ok();
                    let code = error.code().map(|code| code.code().to_owned());
                    return Err(code.unwrap_or_else(|| error.to_string()));
                }
            };
            Ok(rows.iter().map(|row| value::cells(text, row)).collect())
        })
    }

    pub(super) fn tables(&mut self) -> Vec<String> {
        let Session { client, prepared, .. } = &mut self.sessions[LOOKS];
        let mut lines: Vec<String> = self.runtime.block_on(async {
            if !prepared.contains_key(TABLES) {
                prepared.insert(TABLES, client.prepare(TABLES).await.unwrap());
            }
            let rows = client.query(&prepared[TABLES], &[]).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        });
        lines.sort();
        lines.dedup();
        lines
    }
}
