//! Calls of the store that fail at any point, and whose answers get lost.

use crate::common::{self, Shared, until};
use crate::tests::flaky::Flaky;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use wheelwork_jobs::store::Most;
use wheelwork_jobs::{Job, JobId, Jobs, Kind, NewJob, Retry};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// How often each job ended well, and whether it was ever early.
type Runs = Arc<Mutex<BTreeMap<JobId, (u32, bool)>>>;

async fn node<S: Shared>(store: S, join_answers_get_lost: bool, runs: Runs) -> Jobs<Flaky<S>> {
    let handle = move |job: Job<u32, Flaky<S>>| {
        let runs = runs.clone();
        async move {
            let early = SystemTime::now() < job.due; // the database has the same clock
            if job.attempt == 1 && job.payload.is_multiple_of(5) {
                return Err("as the test wants");
            }
            let mut runs = runs.lock().unwrap();
            let (count, ever_early) = runs.entry(job.id).or_default();
            (*count, *ever_early) = (*count + 1, *ever_early | early);
            Ok(())
        }
    };
    let store = Flaky { store, join_answers_get_lost };
    let kind = Kind::new("n").retry(Retry::default().first(ms(30)));
    let builder = Jobs::builder(store).liveness(ms(2_000)).window(ms(3_000));
    builder.handle(kind, handle).open().await.unwrap()
}

/// Returns how many jobs ran more than once that nobody has moved: a job that is moved while it runs may run
/// again.
async fn play<S: Shared>(store: S, join_answers_get_lost: bool) -> usize {
    let runs = Runs::default();
    let nodes = [
        node(store.clone(), join_answers_get_lost, runs.clone()).await,
        node(store.clone(), join_answers_get_lost, runs.clone()).await,
    ];
    let mut stored = Vec::new();
    let (mut perhaps_cancelled, mut perhaps_moved) = (BTreeSet::new(), BTreeSet::new());
    for n in 0..400 {
        let node = fastrand::choice(&nodes).unwrap();
        let job = NewJob::new("n", &n).unwrap().due(ms(fastrand::u64(..1_000)));
        stored.extend(node.schedule(job).await);
        if let Some(&id) = fastrand::choice(&stored).filter(|_| n % 8 == 0) {
            if fastrand::bool() {
                perhaps_cancelled.insert(id);
                let _ = node.cancel(id).await;
            } else {
                perhaps_moved.insert(id);
                let _ = node.reschedule(id, ms(fastrand::u64(..500))).await;
            }
        }
        tokio::time::sleep(ms(2)).await;
    }
    let left = || async {
        let counted = store.glance(Most::ALL).await.unwrap();
        counted.kinds.iter().any(|kind| kind.waiting + kind.claimed > 0)
    };
    let begun = Instant::now();
    while left().await {
        assert!(begun.elapsed() < Duration::from_secs(60), "jobs have not ended");
        tokio::time::sleep(ms(20)).await;
    }
    until("all is settled", || nodes.iter().all(|node| node.metrics().held == 0)).await;
    assert!(nodes.iter().all(|node| node.metrics().store_errors > 10));
    let runs = runs.lock().unwrap();
    for id in stored {
        assert!(runs.contains_key(&id) || perhaps_cancelled.contains(&id), "{id} is lost");
    }
    assert!(runs.values().all(|&(_, early)| !early));
    let twice = runs.iter().filter(|&(id, &(count, _))| count > 1 && !perhaps_moved.contains(id));
    twice.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redb_loses_and_doubles_nothing_though_answers_get_lost() {
    let (store, _folder) = common::redb();
    assert_eq!(play(store, false).await, 0, "jobs ran more than once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_loses_nothing_though_answers_get_lost() {
    let Some(store) = common::postgres() else { return };
    let twice = play(store, true).await;
    eprintln!("{twice} of 400 ran more than once"); // a node can lapse while its answers are lost
}
