//! Jobs that are unique for a period.

use crate::common::{self, Shared, connect, until, until_one_waits};
use crate::on_every_store;
use std::time::{Duration, Instant};
use wheelwork_jobs::redb::{ReadableTableMetadata, TableDefinition};
use wheelwork_jobs::{Filter, Job, JobId, Jobs, NewJob, Postgres, Redb, ScheduleError};

on_every_store! {
    the_same_job_is_stored_once_in_its_period
    a_job_with_a_key_is_compared_by_its_key
    the_period_goes_on_when_the_job_has_ended
    after_the_period_the_same_job_is_stored_again
    many_that_are_the_same_leave_one
    a_job_that_is_refused_for_its_key_makes_nothing_unique
    unique_jobs_with_one_key_in_one_call_leave_one
}

const HOUR: Duration = Duration::from_secs(3_600);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn far(kind: &str, payload: u32) -> NewJob {
    NewJob::new(kind, &payload).unwrap().due(10 * HOUR)
}

async fn stored(jobs: &Jobs<impl Shared>) -> Vec<JobId> {
    let mut ids: Vec<_> =
        jobs.list(Filter::default()).await.unwrap().iter().map(|job| job.id).collect();
    ids.sort();
    ids
}

async fn the_same_job_is_stored_once_in_its_period(store: impl Shared) {
    let jobs = Jobs::open(store.clone()).await.unwrap();
    let other = Jobs::open(store).await.unwrap();
    let first = jobs.schedule(far("n", 1).unique_for(HOUR)).await.unwrap();
    assert_eq!(other.schedule(far("n", 1).unique_for(HOUR)).await.unwrap(), first);
    assert_eq!(jobs.metrics().scheduled + other.metrics().scheduled, 1);
    let mut expected = vec![first];
    // Of another payload or kind, and one that is not unique.
    for job in [far("n", 2).unique_for(HOUR), far("m", 1).unique_for(HOUR), far("n", 1)] {
        expected.push(other.schedule(job).await.unwrap());
    }
    // Kind and payload are not mixed up.
    expected.push(jobs.schedule(far("n1", 1).unique_for(HOUR)).await.unwrap());
    expected.push(jobs.schedule(far("n", 11).unique_for(HOUR)).await.unwrap());
    expected.sort();
    expected.dedup();
    assert_eq!(expected.len(), 6);
    assert_eq!(stored(&jobs).await, expected);
}

async fn a_job_with_a_key_is_compared_by_its_key(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let keyed = |payload, key: &str| far("n", payload).key(key).unique_for(HOUR);
    let first = jobs.schedule(keyed(1, "a")).await.unwrap();
    assert_eq!(jobs.schedule(keyed(2, "a")).await.unwrap(), first);
    assert_ne!(jobs.schedule(keyed(1, "b")).await.unwrap(), first);
    // The key itself is unique among the stored jobs of all kinds.
    let taken = jobs.schedule(far("m", 1).key("a").unique_for(HOUR)).await.unwrap_err();
    assert!(matches!(taken, ScheduleError::KeyTaken { .. }), "{taken}");
    let taken = jobs.schedule(far("n", 1).key("a")).await.unwrap_err();
    assert!(matches!(taken, ScheduleError::KeyTaken { .. }), "{taken}");
    assert!(jobs.cancel_by_key("a").await.unwrap());
    assert_eq!(jobs.schedule(keyed(3, "a")).await.unwrap(), first);
    jobs.schedule(far("n", 1).key("a")).await.unwrap();
}

async fn the_period_goes_on_when_the_job_has_ended<S: Shared>(store: S) {
    let handle = |_: Job<u32, S>| async { Ok::<_, String>(()) };
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    let job = || NewJob::new("n", &7).unwrap().unique_for(HOUR);
    let first = job();
    assert_eq!(jobs.schedule(first.clone()).await.unwrap(), first.id());
    until("it is done", || jobs.metrics().done == 1).await;
    assert_eq!(jobs.schedule(job()).await.unwrap(), first.id());
    // After an answer that was lost.
    assert_eq!(jobs.schedule(first.clone()).await.unwrap(), first.id());
    tokio::time::sleep(ms(50)).await;
    assert_eq!((jobs.metrics().fired, stored(&jobs).await.len()), (1, 0));
    let again = far("n", 8).unique_for(HOUR);
    jobs.schedule(again.clone()).await.unwrap();
    let known = jobs.schedule(again).await.unwrap_err();
    assert!(matches!(known, ScheduleError::AlreadyStored { .. }), "{known}");
}

async fn after_the_period_the_same_job_is_stored_again(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(jobs.schedule(far("n", 1).unique_for(ms(20))).await.unwrap());
        tokio::time::sleep(ms(25)).await;
    }
    assert_eq!(stored(&jobs).await, ids);
    let last = jobs.schedule(far("n", 1).unique_for(HOUR)).await.unwrap();
    assert_eq!(jobs.schedule(far("n", 1).unique_for(ms(0))).await.unwrap(), last);
}

async fn many_that_are_the_same_leave_one(store: impl Shared) {
    let jobs = Jobs::open(store.clone()).await.unwrap();
    let other = Jobs::open(store).await.unwrap();
    let all = |n: usize| {
        let jobs = if n.is_multiple_of(2) { jobs.clone() } else { other.clone() };
        tokio::spawn(async move {
            let same = (0..50).map(|n| far("n", n % 5).unique_for(HOUR));
            jobs.schedule_all(same).await.into_iter().map(Result::unwrap).collect::<Vec<_>>()
        })
    };
    let mut first: Option<Vec<JobId>> = None;
    for task in (0..8).map(all).collect::<Vec<_>>() {
        let ids = task.await.unwrap();
        assert_eq!(first.get_or_insert(ids.clone()), &ids);
    }
    assert_eq!(stored(&jobs).await.len(), 5);
}

async fn a_job_that_is_refused_for_its_key_makes_nothing_unique(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let plain = jobs.schedule(far("n", 1).key("a")).await.unwrap();
    let refused = jobs.schedule(far("n", 2).key("a").unique_for(HOUR)).await.unwrap_err();
    assert!(matches!(refused, ScheduleError::KeyTaken { .. }), "{refused}");
    assert!(jobs.cancel(plain).await.unwrap());
    let job = far("n", 2).key("a").unique_for(HOUR);
    assert_eq!(jobs.schedule(job.clone()).await.unwrap(), job.id());
    assert_eq!(jobs.replace(far("n", 3).key("a").unique_for(HOUR)).await.unwrap(), Some(job.id()));
}

#[tokio::test]
async fn a_transaction_that_is_rolled_back_makes_nothing_unique() {
    let (store, _folder) = common::redb();
    let jobs = Jobs::open(store.clone()).await.unwrap();
    let job = || far("n", 1).unique_for(HOUR);
    let transaction = store.begin_write().await.unwrap();
    jobs.schedule_in(&transaction, &job()).await.unwrap();
    drop(transaction);
    let transaction = store.begin_write().await.unwrap();
    let first = jobs.schedule_in(&transaction, &job()).await.unwrap();
    assert_eq!(jobs.schedule_in(&transaction, &job()).await.unwrap(), first);
    transaction.commit().await.unwrap();
    assert_eq!(jobs.schedule(job()).await.unwrap(), first);

    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let mut user = connect(&url).await;
    let transaction = user.transaction().await.unwrap();
    jobs.schedule_in(&transaction, &job()).await.unwrap();
    // Who schedules the same waits for the end of the transaction. On a slow machine, the call may give up before.
    let waiting = tokio::spawn({
        let (jobs, job) = (jobs.clone(), job());
        async move {
            loop {
                if let Ok(stored) = jobs.schedule(job.clone()).await {
                    return (job.id(), stored);
                }
            }
        }
    });
    until_one_waits(&connect(&url).await).await;
    jobs.schedule(far("n", 2).unique_for(HOUR)).await.unwrap();
    assert!(!waiting.is_finished());
    transaction.rollback().await.unwrap();
    let (id, first) = waiting.await.unwrap();
    assert_eq!(id, first);
    let transaction = user.transaction().await.unwrap();
    assert_eq!(jobs.schedule_in(&transaction, &job()).await.unwrap(), first);
    transaction.commit().await.unwrap();
}

/// An acknowledged job is stored. Once the key is free, a job that was not stored keeps no other job out.
async fn is_stored_or_refused(
    jobs: &Jobs<impl Shared>,
    answer: Result<JobId, ScheduleError>,
    key: &str,
) {
    if let Ok(id) = answer {
        assert!(jobs.get(id).await.unwrap().is_some(), "job {id} was acknowledged");
    }
    jobs.cancel_by_key(key).await.unwrap();
    let next = far("n", 2).key(key).unique_for(HOUR);
    assert_eq!(jobs.schedule(next.clone()).await.unwrap(), next.id());
    assert!(jobs.get(next.id()).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unique_job_whose_key_somebody_else_stores_is_stored_or_refused() {
    let (store, _folder) = common::redb();
    let jobs = Jobs::open(store.clone()).await.unwrap();
    let transaction = store.begin_write().await.unwrap();
    jobs.schedule_in(&transaction, &far("n", 1).key("k")).await.unwrap();
    let unique = |key: &str| far("n", 1).key(key).unique_for(HOUR);
    let waiting = tokio::spawn({
        let (jobs, job) = (jobs.clone(), unique("k"));
        async move { jobs.schedule(job).await }
    });
    tokio::time::sleep(ms(50)).await;
    transaction.commit().await.unwrap();
    is_stored_or_refused(&jobs, waiting.await.unwrap(), "k").await;

    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let (mut first, mut second) = (connect(&url).await, connect(&url).await);
    let watcher = connect(&url).await;
    // The first few of each way, since the statement has to wait when the transaction ends.
    for n in 0..8 {
        let key = format!("key {n}");
        let holding = first.transaction().await.unwrap();
        jobs.schedule_in(&holding, &far("n", 1).key(&key)).await.unwrap();
        let waiting = tokio::spawn({
            let (jobs, job) = (jobs.clone(), unique(&key));
            async move { jobs.schedule(job).await }
        });
        until_one_waits(&watcher).await;
        holding.commit().await.unwrap();
        is_stored_or_refused(&jobs, waiting.await.unwrap(), &key).await;

        let key = format!("key {n} in a transaction");
        let holding = first.transaction().await.unwrap();
        jobs.schedule_in(&holding, &far("n", 1).key(&key)).await.unwrap();
        let transaction = second.transaction().await.unwrap();
        let job = unique(&key);
        let (answer, ()) = tokio::join!(jobs.schedule_in(&transaction, &job), async {
            until_one_waits(&watcher).await;
            holding.commit().await.unwrap();
        });
        assert!(matches!(answer, Err(ScheduleError::KeyTaken { .. })), "{answer:?}");
        transaction.commit().await.unwrap();
        is_stored_or_refused(&jobs, answer, &key).await;
    }
}

/// The mark lapses after the job was refused for it, and before it is read whose it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_key_is_not_refused_when_the_period_ends_meanwhile() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let job = || far("n", 1).key("k").unique_for(ms(500));
    jobs.schedule(job()).await.unwrap();
    assert!(jobs.cancel_by_key("k").await.unwrap());
    let slow = "
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END';
        CREATE TRIGGER slow AFTER INSERT ON wheelwork_unique FOR EACH STATEMENT EXECUTE FUNCTION slow()";
    connect(&url).await.batch_execute(slow).await.unwrap();
    let again = job();
    assert_eq!(jobs.schedule(again.clone()).await.unwrap(), again.id());
}

/// The same in a transaction: the mark is deleted meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_key_is_not_called_taken_in_a_transaction() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let job = || far("n", 1).key("k").unique_for(HOUR);
    jobs.schedule(job()).await.unwrap();
    assert!(jobs.cancel_by_key("k").await.unwrap());
    let forget = "
        CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN DELETE FROM wheelwork_unique; RETURN NULL; END';
        CREATE TRIGGER forget AFTER INSERT ON wheelwork_unique FOR EACH STATEMENT EXECUTE FUNCTION forget()";
    let mut client = connect(&url).await;
    client.batch_execute(forget).await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let refused = jobs.schedule_in(&transaction, &job()).await.unwrap_err();
    assert!(
        matches!(&refused, ScheduleError::Store { source, .. } if source.is_undone()),
        "{refused}"
    );
    jobs.schedule_in(&transaction, &job()).await.unwrap();
    transaction.commit().await.unwrap();
}

/// One statement stores them.
async fn unique_jobs_with_one_key_in_one_call_leave_one(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let of = |kind: &str| far(kind, 1).key("k").unique_for(HOUR);
    let answers = jobs.schedule_all(["a", "b", "c"].map(of)).await;
    let stored: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    assert_eq!(stored.len(), 1, "{answers:?}");
    assert!(jobs.get(*stored[0]).await.unwrap().is_some());
    let taken = |answer: &&Result<_, _>| matches!(answer, Err(ScheduleError::KeyTaken { .. }));
    assert_eq!(answers.iter().filter(taken).count(), 2, "{answers:?}");
}

const MARKS: TableDefinition<'_, (&str, bool, &str), (u128, u64)> =
    TableDefinition::new("wheelwork_unique");
const ENDS: TableDefinition<'_, (u64, u128), (&str, bool, &str)> =
    TableDefinition::new("wheelwork_until");

/// How many marks a file has.
pub(crate) fn marks_in(store: &Redb) -> u64 {
    let tables = store.begin_read().unwrap();
    let marks = tables.open_table(MARKS).unwrap().len().unwrap();
    assert_eq!(tables.open_table(ENDS).unwrap().len().unwrap(), marks);
    marks
}

async fn marks_of(client: &tokio_postgres::Client) -> i64 {
    client.query_one("SELECT count(*) FROM wheelwork_unique", &[]).await.unwrap().get(0)
}

/// A node that beats often.
async fn node<S: Shared>(store: S) -> Jobs<S> {
    let handle = |_: Job<u32, S>| async { Ok::<_, String>(()) };
    Jobs::builder(store).liveness(ms(300)).handle("n", handle).open().await.unwrap()
}

fn short(payload: u32) -> NewJob {
    far("m", payload).unique_for(ms(20))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_in_redb_that_are_over_are_deleted() {
    let (store, _folder) = common::redb();
    let jobs = node(store.clone()).await;
    for n in 0..20 {
        jobs.schedule(short(n)).await.unwrap();
    }
    let transaction = store.begin_write().await.unwrap();
    for n in 20..40 {
        jobs.schedule_in(&transaction, &short(n)).await.unwrap();
    }
    jobs.schedule_in(&transaction, &far("m", 0).key("k").unique_for(HOUR)).await.unwrap();
    transaction.commit().await.unwrap();
    until("one is left", || marks_in(&store) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_in_postgres_that_are_over_are_deleted() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let jobs = node(Postgres::new(&url).unwrap()).await;
    for n in 0..20 {
        jobs.schedule(short(n)).await.unwrap();
    }
    let mut user = connect(&url).await;
    let transaction = user.transaction().await.unwrap();
    for n in 20..40 {
        jobs.schedule_in(&transaction, &short(n)).await.unwrap();
    }
    jobs.schedule_in(&transaction, &far("m", 0).key("k").unique_for(HOUR)).await.unwrap();
    transaction.commit().await.unwrap();
    let begun = Instant::now();
    while marks_of(&user).await != 1 {
        assert!(begun.elapsed() < Duration::from_secs(60), "marks stay");
        tokio::time::sleep(ms(20)).await;
    }
}
