//! The embedded store on a disk that fails.

use crate::common::until;
use crate::faults::disk::Disk;
use redb::Database;
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wheelwork_jobs::{
    Condition, Filter, Job, JobId, Jobs, Kind, NewJob, Redb, ScheduleError, StoreError,
};

fn store(disk: &Disk) -> Redb {
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    Redb::with(Arc::new(database)).unwrap()
}

fn far(n: usize) -> NewJob {
    NewJob::new("n", &vec![n; 50]).unwrap().due(Duration::from_secs(3_600))
}

async fn ids(disk: &Disk) -> BTreeSet<JobId> {
    let jobs = Jobs::open(store(disk)).await.unwrap();
    let all = Filter { limit: usize::MAX, ..Filter::default() };
    jobs.list(all).await.unwrap().iter().map(|job| job.id).collect()
}

/// The disk crashes at random moments, while jobs are stored and cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_on_the_disk_after_a_torn_write() {
    let disk = Disk::default();
    let jobs = Jobs::open(store(&disk)).await.unwrap();
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let stored = acknowledged.clone();
    let user = tokio::spawn(async move {
        for n in 0.. {
            let id = jobs.schedule(far(n)).await.unwrap();
            stored.lock().unwrap().insert(id);
        }
    });
    let mut crashes = 0;
    while crashes < 40 || acknowledged.lock().unwrap().len() <= 40 {
        crashes += 1;
        tokio::time::sleep(Duration::from_micros(fastrand::u64(..20_000))).await;
        let before = acknowledged.lock().unwrap().clone();
        let found = ids(&disk.crashed()).await;
        let lost: Vec<_> = before.difference(&found).collect();
        assert!(lost.is_empty(), "{} of {} are lost", lost.len(), before.len());
    }
    user.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_an_error_that_gives_the_job_back_and_loses_nothing() {
    let disk = Disk::default();
    let handle = |_: Job<Vec<usize>, _>| async { Ok::<_, String>(()) };
    let jobs = Jobs::builder(store(&disk)).handle("n", handle).open().await.unwrap();
    let mut stored = BTreeSet::from([jobs.schedule(far(0)).await.unwrap()]);
    disk.set_room(Some(100_000));
    let refused = loop {
        assert!(stored.len() < 10_000, "the disk is never full");
        match jobs.schedule(far(stored.len())).await {
            Ok(id) => _ = stored.insert(id),
            Err(ScheduleError::Store { job, source }) => {
                assert!(source.to_string().contains("failed to store jobs"), "{source}");
                break job;
            }
            Err(other) => panic!("{other}"),
        }
    };
    until("the error is counted", || jobs.metrics().store_errors > 0).await;
    let _ = jobs.stop(Duration::ZERO).await;
    disk.set_room(None);
    let found = ids(&disk.crashed()).await;
    assert!(stored.is_subset(&found));
    let again = Jobs::open(store(&disk.crashed())).await.unwrap();
    match again.schedule(*refused).await {
        Ok(_) | Err(ScheduleError::AlreadyStored { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

/// Runs whose ends cannot be stored would be done again by the next process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_handler_begins_while_ends_cannot_be_stored() {
    let disk = Disk::default();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let handle = move |_: Job<Vec<usize>, _>| {
        counted.fetch_add(1, SeqCst);
        async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok::<_, String>(())
        }
    };
    let kind = Kind::new("n").concurrency(1);
    let jobs = Jobs::builder(store(&disk)).handle(kind, handle).open().await.unwrap();
    let soon = |n| NewJob::new("n", &vec![n; 50]).unwrap().due(Duration::from_millis(500));
    assert!(jobs.schedule_all((0..2_000).map(soon)).await.iter().all(Result::is_ok));
    disk.fail();
    until("it tells that it is cut off", || jobs.health().condition == Condition::CutOff).await;
    let before = runs.load(SeqCst);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = runs.load(SeqCst);
    assert!(after <= before + 1, "{before} runs, and then {after}");
    assert!(after < 2_000);
}

#[test]
fn an_empty_file_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.redb");
    fs::write(&file, "").unwrap();
    let refused: Result<Redb, StoreError> = Redb::open(&file);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("the file is empty"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().len(), 0);
}

/// A node that claims 40 jobs of 100,000 bytes may hold ten of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_holds_at_most_so_many_bytes() {
    let handle = |_: Job<String, _>| async { Ok::<_, String>(()) };
    let kind = Kind::new("n").most_held_bytes(1_000_020);
    let disk = Disk::default();
    let large = |seconds| {
        let payload = "x".repeat(99_998);
        NewJob::new("n", &payload).unwrap().due(Duration::from_secs(seconds))
    };
    let jobs = Jobs::builder(store(&disk)).handle(kind, handle).open().await.unwrap();
    assert!(jobs.schedule_all((0..40).map(|_| large(20))).await.iter().all(Result::is_ok));
    assert_eq!(jobs.metrics().held, 10);
    for job in jobs.list(Filter::default()).await.unwrap() {
        jobs.reschedule(job.id, Duration::from_millis(1)).await.unwrap();
    }
    until("all are done", || jobs.metrics().done == 40).await;
}

/// Twenty handlers share two threads, and await in their transactions. A call that blocked its thread until
/// the previous transaction ends would keep that one from ending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_await_in_write_transactions() {
    let store = store(&Disk::default());
    let shared = store.clone();
    let handle = move |job: Job<u32, Redb>| {
        let store = shared.clone();
        async move {
            let transaction = store.begin_write().await.map_err(|e| e.to_string())?;
            tokio::time::sleep(Duration::from_millis(2)).await;
            job.complete_in(&transaction).await.map_err(|e| e.to_string())?;
            tokio::time::sleep(Duration::from_millis(2)).await;
            transaction.commit().await.map_err(|e| e.to_string())
        }
    };
    let kind = Kind::new("n").concurrency(20);
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let batch = (0..100).map(|n| NewJob::new("n", &n).unwrap());
    assert!(jobs.schedule_all(batch).await.iter().all(Result::is_ok));
    until("all are done", || jobs.metrics().done == 100).await;
}

/// A task that awaits a change of the jobs in its own write transaction waits for itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waits_for_its_own_transaction_is_told() {
    let store = store(&Disk::default()).with_limit(Duration::from_millis(200));
    let jobs = Jobs::open(store.clone()).await.unwrap();
    let transaction = store.begin_write().await.unwrap();
    let refused = jobs.schedule(far(1)).await.unwrap_err();
    assert!(refused.to_string().contains("a write transaction is open for"), "{refused}");
    assert!(matches!(&refused, ScheduleError::Store { source, .. } if source.is_undone()));
    drop(transaction);
    jobs.schedule(refused.into_job()).await.unwrap();
}
