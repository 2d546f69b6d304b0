//! Jobs in transactions of sqlx and diesel-async.

use crate::common::{self, until};
use std::time::Duration;
use wheelwork_jobs::{Job, JobId, Jobs, Kind, NewJob, Postgres, Retry, ScheduleError};

const LAST: u32 = 12;

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn kind() -> Kind {
    Kind::new("n").retry(Retry::default().first(Duration::from_millis(1)))
}

fn keyed(payload: u32) -> NewJob {
    NewJob::new("n", &payload).unwrap().key("chain")
}

/// The first attempt of every second one fails before its commit.
fn fails(job: &Job<u32, Postgres>) -> Result<(), Failed> {
    let fails = job.attempt == 1 && job.payload.is_multiple_of(2);
    if fails { Err("before the commit".into()) } else { Ok(()) }
}

/// Half of those that fail tell nobody.
fn tells(job: &Job<u32, Postgres>, ended: Result<(), Failed>) -> Result<(), Failed> {
    if job.payload.is_multiple_of(4) { Ok(()) } else { ended }
}

/// Whether the errors of a transaction are those of any other one.
fn is_refused(refused: [Result<JobId, ScheduleError>; 3]) {
    let [taken, again, long] = refused;
    assert!(matches!(taken, Err(ScheduleError::KeyTaken { .. })), "{taken:?}");
    assert!(matches!(again, Err(ScheduleError::AlreadyStored { .. })), "{again:?}");
    assert!(matches!(long, Err(ScheduleError::LongKey { .. })), "{long:?}");
}

async fn chain_has_ended(jobs: &Jobs<Postgres>, url: &str) {
    until("the chain has ended", || jobs.metrics().done == u64::from(LAST)).await;
    assert_eq!(jobs.metrics().retried, u64::from(LAST) / 2);
    assert_eq!(jobs.get_by_key("chain").await.unwrap(), None);
    let client = common::connect(url).await;
    let effects = client.query_one("SELECT count(*), count(DISTINCT n) FROM effects", &[]).await;
    let effects = effects.unwrap();
    assert_eq!((effects.get::<_, i64>(0), effects.get::<_, i64>(1)), (12, 12));
}

async fn database() -> Option<String> {
    let url = common::postgres::server()?.database();
    let client = common::connect(&url).await;
    client.batch_execute("CREATE TABLE effects (n bigint NOT NULL)").await.unwrap();
    Some(url)
}

/// Its key is that of the jobs that are not unique.
fn unique() -> NewJob {
    keyed(1).unique_for(Duration::from_secs(3_600)).due(Duration::from_secs(36_000))
}

/// Commits the job that holds the key when a statement waits for it.
async fn commit_when_one_waits(url: &str, holding: tokio_postgres::Transaction<'_>) {
    common::until_one_waits(&common::connect(url).await).await;
    holding.commit().await.unwrap();
}

/// Nothing that was not stored keeps others out.
async fn makes_nothing_unique(jobs: &Jobs<Postgres>, refused: Result<JobId, ScheduleError>) {
    assert!(refused.is_err(), "{refused:?} was acknowledged");
    assert!(jobs.cancel_by_key("chain").await.unwrap());
    let next = unique();
    assert_eq!(jobs.schedule(next.clone()).await.unwrap(), next.id());
    assert!(jobs.get(next.id()).await.unwrap().is_some());
}

#[cfg(feature = "sqlx")]
mod sqlx {
    use super::*;
    use ::sqlx::{Connection, Executor, PgConnection, PgPool, query};

    /// No beat finds the first job in time: the store tells the node of the commit.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_chain_in_transactions_of_sqlx_neither_ends_nor_splits() {
        let Some(url) = database().await else { return };
        let pool = PgPool::connect(&url).await.unwrap();
        let shared = pool.clone();
        let handle = move |job: Job<u32, Postgres>| {
            let pool = shared.clone();
            async move {
                let mut transaction = pool.begin().await?;
                job.complete_in(&mut transaction).await?;
                let effect = query("INSERT INTO effects VALUES ($1)");
                effect.bind(i64::from(job.payload)).execute(&mut *transaction).await?;
                if job.payload < LAST {
                    job.schedule_in(&mut transaction, &keyed(job.payload + 1)).await?;
                }
                let ended = fails(&job);
                if ended.is_ok() {
                    transaction.commit().await?;
                }
                tells(&job, ended)
            }
        };
        let hour = Duration::from_secs(3_600);
        let builder = Jobs::builder(Postgres::new(&url).unwrap()).liveness(hour).window(hour);
        let jobs = builder.handle(kind(), handle).open().await.unwrap();

        let mut transaction = pool.begin().await.unwrap();
        jobs.schedule_in(&mut transaction, &keyed(0)).await.unwrap();
        transaction.rollback().await.unwrap();
        let mut transaction = pool.begin().await.unwrap();
        let first = keyed(1);
        jobs.schedule_in(&mut transaction, &first).await.unwrap();
        is_refused([
            jobs.schedule_in(&mut transaction, &keyed(1)).await,
            jobs.schedule_in(&mut transaction, &first).await,
            jobs.schedule_in(&mut transaction, &keyed(1).key("k".repeat(999))).await,
        ]);
        assert_eq!(jobs.metrics().fired, 0);
        transaction.commit().await.unwrap();
        chain_has_ended(&jobs, &url).await;
    }

    #[tokio::test]
    async fn a_unique_job_in_sqlx_whose_key_somebody_else_stores_makes_nothing_unique() {
        let Some(url) = database().await else { return };
        let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
        let mut client = common::connect(&url).await;
        let holding = client.transaction().await.unwrap();
        jobs.schedule_in(&holding, &keyed(2).due(Duration::from_secs(36_000))).await.unwrap();
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let mut transaction = connection.begin().await.unwrap();
        let job = unique();
        let storing = jobs.schedule_in(&mut transaction, &job);
        let (answer, ()) = tokio::join!(storing, commit_when_one_waits(&url, holding));
        transaction.commit().await.unwrap();
        makes_nothing_unique(&jobs, answer).await;
    }

    #[tokio::test]
    async fn all_that_a_job_has_is_stored_by_sqlx() {
        let Some(url) = database().await else { return };
        let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
        let mut connection = PgConnection::connect(&url).await.unwrap();
        connection.execute("SET TIME ZONE 'Asia/Kathmandu'").await.unwrap();
        let due = std::time::SystemTime::UNIX_EPOCH + Duration::from_micros(4_000_000_000_123_456);
        let unique =
            || NewJob::new("n", &1).unwrap().due(due).unique_for(Duration::from_secs(3_600));
        let first = jobs.schedule_in(&mut connection, &unique()).await.unwrap();
        assert_eq!(jobs.schedule_in(&mut connection, &unique()).await.unwrap(), first);
        let at = NewJob::new("n", &"€").unwrap().due(due).priority(7);
        let id = jobs.schedule_in(&mut connection, &at).await.unwrap();
        let stored = jobs.get(id).await.unwrap().unwrap();
        assert_eq!((stored.due, stored.payload.as_str(), stored.priority), (due, "\"€\"", 7));
    }
}

#[cfg(feature = "diesel-async")]
mod diesel {
    use super::*;
    use ::diesel::sql_query;
    use ::diesel::sql_types::BigInt;
    use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_chain_in_transactions_of_diesel_neither_ends_nor_splits() {
        let Some(url) = database().await else { return };
        let shared = url.clone();
        let handle = move |job: Job<u32, Postgres>| {
            let url = shared.clone();
            async move {
                let mut connection = AsyncPgConnection::establish(&url).await?;
                let work = async |connection: &mut AsyncPgConnection| {
                    job.complete_in(&mut *connection).await?;
                    let effect = sql_query("INSERT INTO effects VALUES ($1)");
                    let effect = effect.bind::<BigInt, _>(i64::from(job.payload));
                    effect.execute(connection).await?;
                    if job.payload < LAST {
                        job.schedule_in(&mut *connection, &keyed(job.payload + 1)).await?;
                    }
                    fails(&job)
                };
                tells(&job, connection.transaction(work).await)
            }
        };
        let hour = Duration::from_secs(3_600);
        let builder = Jobs::builder(Postgres::new(&url).unwrap()).liveness(hour).window(hour);
        let jobs = builder.handle(kind(), handle).open().await.unwrap();

        let mut connection = AsyncPgConnection::establish(&url).await.unwrap();
        let rolled_back = connection
            .transaction(async |connection| {
                jobs.schedule_in(&mut *connection, &keyed(0)).await?;
                Err::<(), Failed>("on purpose".into())
            })
            .await;
        assert!(rolled_back.is_err());
        let unique = || NewJob::new("other", &1).unwrap().unique_for(hour);
        let once = jobs.schedule_in(&mut connection, &unique()).await.unwrap();
        let twice = jobs.schedule_in(&mut connection, &unique()).await.unwrap();
        assert_eq!(once, twice);
        let first = keyed(1);
        connection
            .transaction(async |connection| {
                jobs.schedule_in(&mut *connection, &first).await?;
                is_refused([
                    jobs.schedule_in(&mut *connection, &keyed(1)).await,
                    jobs.schedule_in(&mut *connection, &first).await,
                    jobs.schedule_in(&mut *connection, &keyed(1).key("k".repeat(999))).await,
                ]);
                assert_eq!(jobs.metrics().fired, 0);
                Ok::<(), Failed>(())
            })
            .await
            .unwrap();
        chain_has_ended(&jobs, &url).await;
    }

    #[tokio::test]
    async fn all_that_a_job_has_is_stored_by_diesel() {
        let Some(url) = database().await else { return };
        let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
        let mut connection = AsyncPgConnection::establish(&url).await.unwrap();
        let due = std::time::SystemTime::UNIX_EPOCH + Duration::from_micros(4_000_000_000_123_456);
        let at = NewJob::new("n", &"€").unwrap().due(due).priority(7);
        let id = jobs.schedule_in(&mut connection, &at).await.unwrap();
        let stored = jobs.get(id).await.unwrap().unwrap();
        assert_eq!((stored.due, stored.payload.as_str(), stored.priority), (due, "\"€\"", 7));
    }

    #[tokio::test]
    async fn a_unique_job_in_diesel_whose_key_somebody_else_stores_makes_nothing_unique() {
        let Some(url) = database().await else { return };
        let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
        let mut client = common::connect(&url).await;
        let holding = client.transaction().await.unwrap();
        jobs.schedule_in(&holding, &keyed(2).due(Duration::from_secs(36_000))).await.unwrap();
        let mut connection = AsyncPgConnection::establish(&url).await.unwrap();
        let mut answer = None;
        let job = unique();
        let transaction = connection.transaction(async |connection| {
            answer = Some(jobs.schedule_in(&mut *connection, &job).await);
            Ok::<(), Failed>(())
        });
        let (_, ()) = tokio::join!(transaction, commit_when_one_waits(&url, holding));
        makes_nothing_unique(&jobs, answer.unwrap()).await;
    }
}
