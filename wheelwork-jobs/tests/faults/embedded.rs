//! The embedded store on a disk that fails.

use crate::common::until;
use crate::disk::Disk;
use redb::Database;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wheelwork_jobs::{Filter, Job, JobId, Jobs, NewJob, Redb, ScheduleError};

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
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_micros(fastrand::u64(..20_000))).await;
        let before = acknowledged.lock().unwrap().clone();
        let found = ids(&disk.crashed()).await;
        let lost: Vec<_> = before.difference(&found).collect();
        assert!(lost.is_empty(), "{} of {} are lost", lost.len(), before.len());
    }
    assert!(acknowledged.lock().unwrap().len() > 40);
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
