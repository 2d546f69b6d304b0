//! A node that cannot go on: it says so, and it can be stopped.

use crate::common::{self, Shared, connect, postgres, until};
use crate::on_every_store;
use crate::tests::flaky::Broken;
use crate::tests::proxy::{Line, Proxy};
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::{
    Condition, Job, Jobs, Kind, NewJob, OpenError, Postgres, Retry, ScheduleError, State,
    StopError, Store,
};

on_every_store! { a_node_that_panics_at_its_end_gives_its_jobs_back }

const HOUR: Duration = Duration::from_secs(3_600);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

async fn fine<S: Store>(_: Job<u32, S>) -> Result<(), String> {
    Ok(())
}

fn job() -> NewJob {
    NewJob::new("n", &1).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_thread_has_died_says_so() {
    let (store, _folder) = common::redb();
    let broken = Broken { store, claims: false.into() };
    let jobs = Jobs::builder(broken).handle("n", fine).open().await.unwrap();
    let died = jobs.ended().await.unwrap_err();
    assert_eq!(died.to_string(), "the jobs have died: it panicked: as the test wants");
    let reason = "it panicked: as the test wants".to_owned();
    assert_eq!(jobs.health().condition, Condition::Died { reason });
    assert!(!jobs.health().is_well() && jobs.metrics().died);
    // The thread may still take a job in, but not its answer back.
    let refused = async {
        while !matches!(jobs.schedule(job()).await.unwrap_err(), ScheduleError::Died { .. }) {}
    };
    tokio::time::timeout(ms(60_000), refused).await.expect("a job is refused");
    let stopped = jobs.stop(ms(0)).await.unwrap_err();
    assert!(matches!(&stopped, StopError::Died { .. }), "{stopped}");
}

/// Its handler goes on, so that nothing else gives the job back.
async fn a_node_that_panics_at_its_end_gives_its_jobs_back(store: impl Shared) {
    let broken = Broken { store: store.clone(), claims: true.into() };
    let stays = |_: Job<u32, _>| pending::<Result<(), String>>();
    let first = Jobs::builder(broken).liveness(HOUR).window(HOUR).handle("n", stays);
    let first = first.open().await.unwrap();
    first.schedule(job()).await.unwrap();
    until("it runs", || first.metrics().running == 1).await;
    let second = Jobs::builder(store).liveness(HOUR).window(HOUR).handle("n", fine);
    let second = second.open().await.unwrap();
    let stopped = first.stop(ms(0)).await.unwrap_err();
    assert_eq!(stopped.to_string(), "the jobs have died: it panicked: as the test wants");
    until("the other has run it", || second.metrics().done == 1).await;
}

#[test]
fn a_node_outlives_the_runtime_of_its_handlers_and_says_so() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (store, _folder) = common::redb();
    let of_handlers = runtime();
    let opening = Jobs::builder(store).handle("n", fine).open();
    let jobs = of_handlers.block_on(opening).unwrap();
    assert!(jobs.health().is_well());
    drop(of_handlers);
    let died = runtime().block_on(jobs.ended()).unwrap_err();
    assert!(died.to_string().contains("ended"), "{died}");
}

/// The attempt has not failed: it has ended with its node.
#[test]
fn the_end_of_the_handlers_runtime_is_no_failure() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (store, _folder) = common::redb();
    let (of_handlers, other) = (runtime(), runtime());
    let stays = |_: Job<u32, _>| pending::<Result<(), String>>();
    let kind = Kind::new("n").retry(Retry::never());
    let opening = Jobs::builder(store.clone()).handle(kind, stays).open();
    let jobs = of_handlers.block_on(opening).unwrap();
    let id = other.block_on(jobs.schedule(job())).unwrap();
    other.block_on(until("it runs", || jobs.metrics().running == 1));
    drop(of_handlers);
    other.block_on(jobs.ended()).unwrap_err();
    drop(jobs);
    let jobs = other.block_on(Jobs::open(store)).unwrap();
    let stored = other.block_on(jobs.get(id)).unwrap().expect("it has not ended");
    assert!(stored.state != State::Dead && stored.attempts == 0, "{stored:?}");
}

/// Its run has begun before. By now, others may have the job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_waits_for_a_thread_is_not_called_while_its_node_is_cut_off() {
    let Some(server) = postgres::server() else { return };
    let proxy = Proxy::start(server.port()).await;
    let direct: Config = server.database().parse().unwrap();
    let mut config = Config::new();
    config.host("127.0.0.1").port(proxy.port).user("postgres");
    config.dbname(direct.get_dbname().unwrap());
    let (release, released) = mpsc::channel::<()>();
    let (runs, released) = (Arc::new(AtomicUsize::new(0)), Mutex::new(released));
    let count = runs.clone();
    let handle = move |_: Job<u32, _>| {
        if count.fetch_add(1, SeqCst) == 0 {
            released.lock().unwrap().recv().unwrap();
        }
        Ok::<_, String>(())
    };
    let one_thread = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let store = Postgres::with(config, NoTls, ms(2_000));
    let builder = Jobs::builder(store).liveness(ms(3_000)).handle_blocking("n", handle);
    let jobs = one_thread.spawn(async move { builder.open().await.unwrap() }).await.unwrap();
    jobs.schedule(job()).await.unwrap();
    until("the first one runs", || runs.load(SeqCst) == 1).await;
    jobs.schedule(job()).await.unwrap();
    until("the second one has begun", || jobs.metrics().running == 2).await;
    proxy.set(Line::Cut);
    until("the node is cut off", || jobs.health().condition == Condition::CutOff).await;
    release.send(()).unwrap();
    until("both runs have ended", || jobs.metrics().running == 0).await;
    assert_eq!(runs.load(SeqCst), 1);
    proxy.set(Line::Good);
    until("it has run again", || runs.load(SeqCst) == 2).await;
    jobs.stop(ms(5_000)).await.unwrap();
    one_thread.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_column_is_an_error_and_no_panic() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let builder = Jobs::builder(store).liveness(ms(1_500)).handle("n", fine);
    let jobs = builder.open().await.unwrap();
    jobs.schedule(job()).await.unwrap();
    until("one is done", || jobs.metrics().done == 1).await;
    let client = connect(&url).await;
    let change = "ALTER TABLE wheelwork_jobs ALTER attempts TYPE integer";
    client.batch_execute(change).await.unwrap();
    let other = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    other.schedule(job()).await.unwrap();
    until("errors are counted", || jobs.metrics().store_errors > 2).await;
    assert!(jobs.list(wheelwork_jobs::Filter::default()).await.is_err());
    assert!(jobs.health().is_well());
    let back = "ALTER TABLE wheelwork_jobs ALTER attempts TYPE bigint";
    client.batch_execute(back).await.unwrap();
    until("the other is done", || jobs.metrics().done == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_though_the_database_hangs() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let proxy = Proxy::start(server.port()).await;
    let config: Config = url.parse().unwrap();
    let mut by_proxy = Config::new();
    let database = config.get_dbname().unwrap();
    by_proxy.host("127.0.0.1").port(proxy.port).user("postgres").dbname(database);
    let limit = Duration::from_secs(300);
    let jobs = Jobs::builder(Postgres::with(by_proxy, NoTls, limit)).handle("n", fine);
    let jobs = jobs.open().await.unwrap();
    proxy.set(Line::Hangs);
    let (other, new) = (jobs.clone(), job());
    let schedule = tokio::spawn(async move { other.schedule(new).await });
    tokio::time::sleep(ms(100)).await;
    let begun = Instant::now();
    let stopped = jobs.stop(Duration::from_secs(1)).await;
    assert!(matches!(&stopped, Err(StopError::Store(_))), "{stopped:?}");
    assert!(begun.elapsed() < limit / 2, "it waited for the database");
    assert!(schedule.await.unwrap().is_err());
}

/// Beats go on while a stop waits for handlers, for longer than the liveness.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_waits_for_long_keeps_what_runs() {
    let Some(store) = common::postgres() else { return };
    let begun = std::sync::Arc::new(tokio::sync::Notify::new());
    let begins = begun.clone();
    let slow = move |_: Job<u32, Postgres>| {
        begins.notify_one();
        async {
            tokio::time::sleep(ms(12_000)).await;
            Ok::<_, String>(())
        }
    };
    let builder = Jobs::builder(store.clone()).liveness(ms(10_000)).handle("n", slow);
    let jobs = builder.open().await.unwrap();
    jobs.schedule(job()).await.unwrap();
    begun.notified().await;
    let other = Jobs::builder(store).liveness(ms(10_000)).handle("n", fine).open().await.unwrap();
    let stopped = jobs.stop(Duration::from_secs(60)).await.unwrap();
    assert_eq!((stopped.still_running, jobs.metrics().done), (0, 1));
    assert_eq!((other.metrics().taken_over, other.metrics().fired), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_opens_with_all_connections_that_it_needs_or_not_at_all() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let client = connect(&url).await;
    for (limit, enough) in [(3, false), (5, true)] {
        let role = format!("CREATE ROLE limited{limit} LOGIN CONNECTION LIMIT {limit}");
        client.batch_execute(&role).await.unwrap();
        // Without the tables of the other role.
        let empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public;
            GRANT ALL ON SCHEMA public TO PUBLIC";
        client.batch_execute(empty).await.unwrap();
        let mut config: Config = url.parse().unwrap();
        config.user(format!("limited{limit}"));
        let store = Postgres::with(config, NoTls, Postgres::LIMIT);
        match Jobs::builder(store).handle("n", fine).open().await {
            Ok(jobs) => {
                assert!(enough);
                jobs.schedule(job()).await.unwrap();
                until("it is done", || jobs.metrics().done == 1).await;
                jobs.cancel(job().id()).await.unwrap();
            }
            Err(error) => assert!(!enough && matches!(error, OpenError::Store(_)), "{error}"),
        }
    }
}
