//! A standby that lags: what it shows decides nothing.

use crate::common::{connect, postgres, until_counted};
use std::time::Duration;
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{Claim, Insert, Store};
use wheelwork_jobs::{NewJob, Postgres};

const LIVENESS: Duration = Duration::from_secs(60);

/// It is named first, and answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_standby_lacks_is_not_taken_for_gone() {
    let Some(primary) = postgres::own_server() else { return };
    let url = primary.database();
    let name = url.rsplit('/').next().unwrap();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let standby = primary.standby();
    let replay = connect(&standby.url(name)).await;
    replay.execute("SELECT pg_wal_replay_pause()", &[]).await.unwrap();
    let paused = "SELECT (pg_get_wal_replay_pause_state() = 'paused')::int::bigint";
    until_counted(&replay, paused).await;

    let node = store.join(None, &[], LIVENESS).await.unwrap().node;
    let job = NewJob::new("n", &1).unwrap();
    let id = job.id();
    let stored = store.insert(Some(node), LIVENESS, &[Insert { job, claim: true }]).await.unwrap();
    let claim = Claim { id, epoch: stored[0].stored().unwrap().claimed.unwrap() };
    let (first, second) = (standby.port(), primary.port());
    let both = format!("postgres://postgres@127.0.0.1:{first},127.0.0.1:{second}/{name}");
    let store = || Postgres::new(&both).unwrap();
    assert_eq!(store().stored(&[id]).await.unwrap(), [(id, false)]);
    assert_eq!(store().holding(node, &[claim]).await.unwrap(), [claim]);
    assert!(store().get(id).await.unwrap().is_some());
    assert!(store().cancel(id, None).await.unwrap().is_some());
    assert_eq!(store().revoked(&[(node, claim)]).await.unwrap(), [(node, claim)]);
}
