//! Calls of the store that fail at any point, and whose answers get lost.

use crate::common::{self, Shared, connect, until, until_counted};
use crate::tests::flaky::Flaky;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use wheelwork_jobs::store::{Calls, Insert, Insertion, Most, Store};
use wheelwork_jobs::{Job, JobId, Jobs, Kind, NewJob, Postgres, Retry, ScheduleError};

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

const HOUR: Duration = Duration::from_secs(3_600);

/// A statement that stores a job with a key ends its connection. Jobs without one go in a statement before.
const CUT: &str = "
    CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN new; END $$;
    CREATE TRIGGER cut BEFORE INSERT ON wheelwork_jobs
        FOR EACH ROW WHEN (new.key IS NOT NULL) EXECUTE FUNCTION cut()";

fn with_key_and_without() -> [NewJob; 2] {
    let job = |n: u32| NewJob::new("n", &n).unwrap().due(HOUR);
    [job(1).key("k"), job(2)]
}

#[tokio::test]
async fn what_was_stored_before_the_connection_was_lost_is_known() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let (store, client) = (Postgres::new(&url).unwrap(), connect(&url).await);
    store.prepare().await.unwrap();
    client.batch_execute(CUT).await.unwrap();
    let node = store.join(None, &[], HOUR).await.unwrap().node;
    let jobs = with_key_and_without().map(|job| Insert { job, claim: true });
    let answers = store.insert(Some(node), 2 * HOUR, &jobs).await.unwrap();
    let [Insertion::Refused(lost), Insertion::Stored(stored)] = &*answers else {
        panic!("{answers:?}");
    };
    assert!(lost.is_lost() && !lost.is_undone() && stored.claimed.is_some());
}

#[tokio::test]
async fn a_node_whose_connection_was_lost_while_it_stored_jobs_takes_a_new_number() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let handle = |_: Job<u32, Postgres>| async { Ok::<_, String>(()) };
    let builder = Jobs::builder(Postgres::new(&url).unwrap()).window(2 * HOUR);
    let jobs = builder.handle("n", handle).open().await.unwrap();
    let client = connect(&url).await;
    client.batch_execute(CUT).await.unwrap();
    let nodes = client.query_one("SELECT id FROM wheelwork_nodes", &[]).await.unwrap();
    let first: i64 = nodes.get(0);
    let results = jobs.schedule_all(with_key_and_without()).await;
    let [Err(ScheduleError::Store { source, .. }), Ok(_)] = &*results else {
        panic!("{results:?}");
    };
    assert!(source.is_lost() && !source.is_undone());
    let moved = format!("SELECT count(*) FROM wheelwork_jobs WHERE owner <> {first}");
    until_counted(&client, &moved).await;
    assert_eq!((jobs.metrics().held, jobs.metrics().scheduled), (1, 1));
}
