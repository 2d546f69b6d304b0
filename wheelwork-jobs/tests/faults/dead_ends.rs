//! Connections that lead nowhere: to a server that takes no writes any more, through a firewall that has forgotten
//! them, or to a pool that mixes them up. A node leaves them.

use crate::common::{connect, postgres, until};
use crate::faults::proxy::{Line, Proxy};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::{Condition, Job, JobId, Jobs, JobsBuilder, NewJob, Postgres, ScheduleError};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn job() -> NewJob {
    NewJob::new("n", &1).unwrap()
}

fn name_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

async fn fine(_: Job<u32, Postgres>) -> Result<(), String> {
    Ok(())
}

fn by_proxy(proxy: &Proxy, url: &str) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1").port(proxy.port).user("postgres").dbname(name_of(url));
    config
}

/// Schedules until it succeeds.
async fn scheduled(jobs: &Jobs<Postgres>) -> JobId {
    let begun = Instant::now();
    loop {
        match jobs.schedule(job()).await {
            Ok(id) => return id,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
        }
        tokio::time::sleep(ms(20)).await;
    }
}

/// Schedules until it is refused because of the server.
async fn refused(jobs: &Jobs<Postgres>) -> String {
    loop {
        let error = jobs.schedule(job()).await.unwrap_err().to_string();
        if error.contains("read-only") || error.contains("does not allow writes") {
            return error;
        }
    }
}

/// Uses each of the connections that a store can have.
async fn use_all(jobs: &Jobs<Postgres>) {
    let before = jobs.metrics().done;
    scheduled(jobs).await;
    until("it is done", || jobs.metrics().done > before).await;
    jobs.cancel(job().id()).await.unwrap();
    assert!(jobs.get(job().id()).await.unwrap().is_none());
}

/// A node whose jobs run for as long as there is no permit.
async fn node(builder: JobsBuilder<Postgres>) -> (Jobs<Postgres>, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let waits = permits.clone();
    let handle = move |_: Job<u32, Postgres>| {
        let waits = waits.clone();
        async move { waits.acquire().await.map(drop).map_err(|error| error.to_string()) }
    };
    (builder.liveness(ms(3_000)).handle("n", handle).open().await.unwrap(), permits)
}

/// The connections that are made meanwhile stay as they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leaves_a_server_that_takes_no_writes() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let name = name_of(&url);
    let (jobs, permits) = node(Jobs::builder(Postgres::new(&url).unwrap())).await;
    for _ in 0..20 {
        jobs.schedule(job()).await.unwrap();
    }
    until("they run", || jobs.metrics().running == 20).await;
    server
        .psql("postgres", &format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'";
    server.psql("postgres", &end.replace("{}", name));
    let refused = refused(&jobs).await;
    permits.add_permits(20);
    until("the node says so", || jobs.health().condition == Condition::CutOff).await;
    assert!(jobs.cancel(job().id()).await.is_err(), "{refused}");
    server.psql("postgres", &format!("ALTER DATABASE {name} RESET default_transaction_read_only"));
    scheduled(&jobs).await;
    until("the ends are stored, and the new job is done", || jobs.metrics().done >= 21).await;
    until("the node is well", || jobs.health().is_well()).await;
    use_all(&jobs).await;
    let client = connect(&url).await;
    let left = "SELECT count(*) FROM wheelwork_jobs";
    assert_eq!(client.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// What leads to the servers has led to the standby for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leaves_a_standby_for_the_primary() {
    let Some(primary) = postgres::own_server() else { return };
    let url = primary.database();
    let standby = primary.standby();
    let proxy = Proxy::start(primary.port()).await;
    let store = Postgres::with(by_proxy(&proxy, &url), NoTls, Postgres::LIMIT);
    let (jobs, permits) = node(Jobs::builder(store)).await;
    permits.add_permits(1_000);
    use_all(&jobs).await;
    proxy.lead_to(standby.port());
    proxy.cut_all();
    let refused = refused(&jobs).await;
    assert!(jobs.cancel(job().id()).await.is_err(), "{refused}");
    proxy.lead_to(primary.port());
    use_all(&jobs).await;
    // And the other way round.
    primary.stop();
    standby.promote();
    proxy.lead_to(standby.port());
    use_all(&jobs).await;
}

/// The first one answers, and takes no writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_servers_the_one_that_takes_writes_is_found() {
    let Some(primary) = postgres::own_server() else { return };
    let url = primary.database();
    let prepared = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    prepared.schedule(job()).await.unwrap();
    let standby = primary.standby();
    let both = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/{}",
        standby.port(),
        primary.port(),
        name_of(&url)
    );
    let jobs = Jobs::builder(Postgres::new(&both).unwrap()).handle("n", fine).open().await.unwrap();
    until("what was stored is done", || jobs.metrics().done == 1).await;
    use_all(&jobs).await;
    primary.stop();
    standby.promote();
    use_all(&jobs).await;
}

/// The first one accepts connections, and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_servers_one_that_hangs_hides_no_other() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let proxy = Proxy::start(server.port()).await;
    let mut both = by_proxy(&proxy, &url);
    both.host("127.0.0.1").port(server.port());
    let store = Postgres::with(both, NoTls, ms(5_000));
    let jobs = Jobs::builder(store).liveness(ms(15_000)).handle("n", fine).open().await.unwrap();
    use_all(&jobs).await;
    proxy.set(Line::Hangs);
    use_all(&jobs).await;
}

/// By those who say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_can_be_read() {
    let Some(primary) = postgres::own_server() else { return };
    let url = primary.database();
    let id = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap().schedule(job()).await.unwrap();
    let standby = primary.standby();
    let url = standby.url(name_of(&url));
    assert!(Jobs::open(Postgres::new(&url).unwrap()).await.is_err());
    let url = format!("{url}?target_session_attrs=read-only");
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    for _ in 0..2 {
        assert!(jobs.get(id).await.unwrap().is_some());
        let refused = jobs.schedule(job()).await.unwrap_err();
        assert!(matches!(&refused, ScheduleError::Store { source, .. } if source.is_undone()));
    }
}

/// Nobody is told. Each statement would wait in vain for as long as a call may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_quiet_is_tried_before_its_use() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let proxy = Proxy::start(server.port()).await;
    let store = Postgres::with(by_proxy(&proxy, &url), NoTls, Postgres::LIMIT);
    let jobs = Jobs::builder(store.clone()).handle("n", fine).open().await.unwrap();
    use_all(&jobs).await;
    proxy.forget_after(ms(1_500));
    for round in 0..2 {
        tokio::time::sleep(ms(3_000)).await;
        jobs.schedule(job()).await.unwrap();
        assert!(!jobs.cancel(job().id()).await.unwrap());
        assert!(jobs.get(job().id()).await.unwrap().is_none());
        until("it is done", || jobs.metrics().done == 2 + round).await;
    }
    assert_eq!(jobs.metrics().store_errors, 0);
}

/// Whether an insertion was carried out, nobody knows. The job may have run since, so it is not sent once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reads_is_sent_once_more_if_its_connection_ends_and_an_insertion_is_not() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::builder(Postgres::new(&url).unwrap()).handle("n", fine).open().await.unwrap();
    use_all(&jobs).await;
    let mut locker = connect(&url).await;
    let killer = connect(&url).await;
    for reads in [false, true] {
        let lock = locker.transaction().await.unwrap();
        lock.batch_execute("LOCK TABLE wheelwork_jobs").await.unwrap();
        let (user, new) = (jobs.clone(), job());
        let id = new.id();
        let call = tokio::spawn(async move {
            match reads {
                true => assert!(user.get(id).await.unwrap().is_none()),
                false => match user.schedule(new).await.unwrap_err() {
                    ScheduleError::Store { source, .. } => assert!(!source.is_undone()),
                    error => panic!("{error}"),
                },
            }
        });
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1";
        let statement = if reads { "%FROM wheelwork_jobs WHERE id = $1" } else { "%INSERT INTO%" };
        // An insertion that has given the lock up just before is tried again.
        let mut ended = 0;
        while ended == 0 || !(reads || call.is_finished()) {
            ended += killer.execute(end, &[&statement]).await.unwrap();
            tokio::time::sleep(ms(1)).await;
        }
        lock.rollback().await.unwrap();
        call.await.unwrap();
        assert!(jobs.get(id).await.unwrap().is_none());
    }
}
