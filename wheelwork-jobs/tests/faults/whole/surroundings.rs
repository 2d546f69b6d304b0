//! What happens to the nodes: their networks fail, the database takes no writes, notices get lost or are untrue.

use super::{Failed, LIMIT, LIVENESS, NODES, Play, ms};
use crate::common::connect;
use crate::faults::proxy::Line;
use std::time::Duration;
use tokio_postgres::{Client, Config, NoTls};
use wheelwork_jobs::NewJob;

/// Networks that forget do so after this time. It is longer than a beat: what listens is not forgotten.
const FORGETS_AFTER: Duration = ms(1_200);

/// How long a node needs to find a server that takes writes, and to store what it could not store before.
const FOUND_AGAIN: Duration = ms(1_500);

/// Somebody who may only read.
pub(super) async fn reader(direct: &str) -> Client {
    let role = "CREATE ROLE gossip LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO gossip";
    connect(direct).await.batch_execute(role).await.unwrap();
    let mut config: Config = direct.parse().unwrap();
    let (client, connection) = config.user("gossip").connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Play {
    /// Lets something be wrong for a while.
    pub(super) async fn trouble(&self) {
        let node = fastrand::usize(..NODES);
        let proxy = &self.0.proxies[node];
        let lasts = ms(fastrand::u64(50..1_500));
        let until = self.now() + lasts + LIMIT + ms(200);
        let line = match fastrand::u8(..9) {
            0 => Line::Cut,
            1 => Line::Hangs,
            2 => Line::Slow(ms(fastrand::u64(1..200))),
            3 => {
                self.oracle().no_contact(node, until);
                proxy.set(Line::Dead);
                tokio::time::sleep(ms(50)).await;
                proxy.set(Line::Good);
                return tokio::time::sleep(lasts).await;
            }
            4 => {
                proxy.silence_listeners();
                self.oracle().no_contact(node, self.now() + LIVENESS / 3 + LIMIT);
                return tokio::time::sleep(lasts).await;
            }
            5 => return self.fail_over(lasts).await,
            6 => {
                proxy.forget_after(FORGETS_AFTER);
                tokio::time::sleep(2 * lasts).await;
                return proxy.forget_after(ms(0));
            }
            _ => {
                proxy.cut_listeners();
                self.oracle().no_contact(node, self.now() + LIMIT);
                return tokio::time::sleep(lasts).await;
            }
        };
        self.oracle().no_contact(node, until);
        proxy.set(line);
        tokio::time::sleep(lasts).await;
        proxy.set(Line::Good);
        self.oracle().no_contact(node, self.now() + LIMIT + ms(200));
    }

    /// The connections of the nodes end, and lead to a server for a while that takes no writes. It keeps those that it
    /// has.
    pub(super) async fn fail_over(&self, lasts: Duration) {
        let nobody = |until| {
            let mut oracle = self.oracle();
            (0..NODES).for_each(|node| oracle.no_contact(node, until));
        };
        let direct: Config = self.0.direct.parse().unwrap();
        let name = direct.get_dbname().unwrap();
        nobody(self.now() + lasts + FOUND_AGAIN);
        let begins = format!(
            "ALTER DATABASE {name} SET default_transaction_read_only = on;
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'wheelwork-jobs'"
        );
        self.0.client.batch_execute(&begins).await.unwrap();
        tokio::time::sleep(lasts).await;
        let ends = format!("ALTER DATABASE {name} RESET default_transaction_read_only");
        self.0.client.batch_execute(&ends).await.unwrap();
        nobody(self.now() + FOUND_AGAIN);
    }

    /// Tells the nodes that they have lost all that they hold.
    pub(super) async fn spread_rumours(&self) {
        let rumours = "SELECT pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid,
                concat_ws(' ', 'drop', owner, id, epoch))
            FROM wheelwork_jobs WHERE owner IS NOT NULL";
        self.0.gossip.execute(rumours, &[]).await.unwrap();
    }

    /// The networks forget connections that are quiet, and nothing else is wrong: each call succeeds. A machine that
    /// stands still lets calls fail as well, but not each time.
    pub(super) async fn judge_forgetting(&self) {
        const ROUNDS: usize = 5;
        self.0.proxies.iter().for_each(|proxy| proxy.forget_after(FORGETS_AFTER));
        let mut failed = Vec::new();
        while failed.len() < ROUNDS {
            tokio::time::sleep(FORGETS_AFTER + ms(200)).await;
            let Err(error) = self.use_each_node().await else { return };
            failed.push(error);
        }
        panic!("each time, calls by connections that were quiet have failed: {failed:?}");
    }

    async fn use_each_node(&self) -> Result<(), Failed> {
        let mut all = tokio::task::JoinSet::new();
        for node in (0..NODES).map(|node| self.node(node)) {
            all.spawn(async move {
                let id = node.schedule(NewJob::new("nobody", &0)?).await?;
                node.get(id).await?;
                node.cancel(id).await?;
                Ok::<(), Failed>(())
            });
        }
        all.join_all().await.into_iter().collect()
    }
}
