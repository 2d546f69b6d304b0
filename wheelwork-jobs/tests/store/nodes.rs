//! Many nodes on one database: those that die, those that are slow, and those that lose contact.

use crate::common::{self, Shared, connect, postgres, until, until_one_waits};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{Claim, End, Finished, Insert, Keep, NodeId, Notice, Outcome, Store};
use wheelwork_jobs::{Job, Jobs, JobsBuilder, NewJob, Postgres, State};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// How often each job ran, and when it ran last.
type Runs = Arc<Mutex<BTreeMap<u32, (usize, SystemTime)>>>;

fn counting<S: Shared>(store: S, liveness: Duration) -> (JobsBuilder<S>, Runs) {
    let runs = Runs::default();
    let notes = runs.clone();
    let handle = move |job: Job<u32, _>| {
        let mut notes = notes.lock().unwrap();
        let (count, at) = notes.entry(job.payload).or_insert((0, SystemTime::UNIX_EPOCH));
        (*count, *at) = (*count + 1, SystemTime::now());
        async { Ok::<_, String>(()) }
    };
    let builder = Jobs::builder(store).liveness(liveness).window(Duration::from_secs(30));
    (builder.handle("n", handle), runs)
}

fn job(n: u32, delay: Duration) -> NewJob {
    NewJob::new("n", &n).unwrap().due(delay)
}

fn insert(n: u32, delay: Duration) -> Insert {
    Insert { job: job(n, delay), claim: true }
}

/// A new job that the node has claimed.
async fn claimed_job(store: &Postgres, node: NodeId) -> Claim {
    let new = insert(1, ms(0));
    let id = new.job.id();
    let stored = store.insert(Some(node), ms(60_000), &[new]).await.unwrap();
    Claim { id, epoch: stored[0].stored().unwrap().claimed.unwrap() }
}

#[tokio::test]
async fn the_jobs_of_a_dead_node_run_when_its_life_has_lapsed() {
    let Some(store) = common::postgres() else { return };
    store.prepare().await.unwrap();
    let liveness = ms(1_500);
    let lapses = SystemTime::now() + liveness; // or later
    let dead = store.join(None, &[], liveness).await.unwrap();
    let jobs: Vec<_> = (0..50).map(|n| insert(n, ms(100))).collect();
    let stored = store.insert(Some(dead.node), ms(10_000), &jobs).await.unwrap();
    assert!(stored.iter().all(|job| job.stored().is_some_and(|job| job.claimed.is_some())));
    let (builder, runs) = counting(store, Duration::from_secs(3));
    let node = builder.open().await.unwrap();
    until("all are done", || node.metrics().done == 50).await;
    assert_eq!(node.metrics().taken_over, 50);
    let runs = runs.lock().unwrap();
    let first = runs.values().map(|run| run.1).min().unwrap();
    assert!(first >= lapses, "a node was taken for dead before its time");
    assert!(runs.values().all(|run| run.0 == 1) && runs.len() == 50);
}

#[tokio::test]
async fn a_node_that_was_ended_claims_nothing() {
    let Some(store) = common::postgres() else { return };
    store.prepare().await.unwrap();
    let old = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let stored = store.insert(Some(old), ms(60_000), &[insert(1, ms(0)), insert(2, ms(0))]).await;
    assert!(stored.unwrap().iter().all(|job| job.stored().unwrap().claimed.is_some()));

    let new = store.join(Some(old), &[], ms(60_000)).await.unwrap();
    assert_eq!(new.kept, []);
    let late = store.insert(Some(old), ms(60_000), &[insert(3, ms(0))]).await.unwrap();
    assert_eq!(late[0].stored().unwrap().claimed, None);
    let rooms = [("n".into(), 10)];
    assert!(store.claim(old, ms(60_000), &rooms).await.unwrap().is_empty());
    assert_eq!(store.claim(new.node, ms(60_000), &rooms).await.unwrap().len(), 3);
    assert!(!store.beat(old, ms(60_000), &["n".into()]).await.unwrap().alive);
}

/// Its life lapses before it takes what it keeps, and another node forgets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_was_ended_keeps_nothing() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let (store, other) = (Postgres::new(&url).unwrap(), Postgres::new(&url).unwrap());
    store.prepare().await.unwrap();
    let old = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let claim = claimed_job(&store, old).await;
    let keep = Keep { claim, called: false };
    let (mut client, watcher) = (connect(&url).await, connect(&url).await);
    let joined = loop {
        // The old node is not ended before the new one is.
        let locking = client.transaction().await.unwrap();
        let lock = "SELECT FROM wheelwork_nodes WHERE id = $1 FOR KEY SHARE";
        assert_eq!(locking.execute(lock, &[&old.0]).await.unwrap(), 1);
        let joining = store.clone();
        let join = tokio::spawn(async move { joining.join(Some(old), &[keep], ms(0)).await });
        let waiting = "SELECT FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while !join.is_finished() && watcher.execute(waiting, &[]).await.unwrap() == 0 {}
        other.take_over().await.unwrap();
        locking.rollback().await.unwrap();
        // On a busy machine, it has not waited for so long.
        if let Ok(joined) = join.await.unwrap() {
            break joined;
        }
    };
    assert_eq!(joined.kept, []);
    let third = other.join(None, &[], ms(60_000)).await.unwrap().node;
    let claimed = other.claim(third, ms(60_000), &[("n".into(), 10)]).await.unwrap();
    assert_eq!(claimed.len(), 1);
}

/// A job whose handler was called stays with the node. What else is locked is free once it can be locked.
#[tokio::test]
async fn a_job_that_its_transaction_has_locked_is_left_to_the_successor() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let (store, other) = (Postgres::new(&url).unwrap(), Postgres::new(&url).unwrap());
    store.prepare().await.unwrap();
    let first = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let third = other.join(None, &[], ms(60_000)).await.unwrap().node;
    let (runs, waits) = (claimed_job(&store, first).await, claimed_job(&store, first).await);
    let keep = [Keep { claim: runs, called: true }, Keep { claim: waits, called: false }];

    let (mut client, watcher) = (connect(&url).await, connect(&url).await);
    let open = client.transaction().await.unwrap();
    open.execute("SELECT FROM wheelwork_jobs FOR UPDATE", &[]).await.unwrap();
    let second = store.join(Some(first), &keep, ms(60_000)).await.unwrap();
    assert_eq!(second.kept, [runs]);
    // Also if it takes a new number again, though nobody has looked after the first one.
    let lapses = "UPDATE wheelwork_nodes SET expires = now() WHERE id = $1";
    assert_eq!(watcher.execute(lapses, &[&-first.0]).await.unwrap(), 1);
    let second = store.join(Some(second.node), &keep[..1], ms(60_000)).await.unwrap();
    assert_eq!(second.kept, [runs]);
    open.rollback().await.unwrap();
    assert_eq!(other.take_over().await.unwrap(), 0);

    assert_eq!(client.execute(lapses, &[&-first.0]).await.unwrap(), 1);
    let kinds = ["n".into()];
    let rooms = [("n".into(), 10)];
    assert!(store.beat(second.node, ms(60_000), &kinds).await.unwrap().alive);
    assert_eq!(other.take_over().await.unwrap(), 0);
    assert_eq!(store.holding(second.node, &[runs, waits]).await.unwrap(), [runs]);
    let claimed = other.claim(third, ms(60_000), &rooms).await.unwrap();
    let claimed: Vec<_> = claimed.iter().map(|job| job.claim.id).collect();
    assert_eq!(claimed, [waits.id]);

    let done = End { claim: runs, outcome: Outcome::Done };
    assert_eq!(store.finish(&[done]).await.unwrap(), [Finished::Held]);
    assert!(store.beat(second.node, ms(60_000), &kinds).await.unwrap().alive);
    assert_eq!(client.execute(lapses, &[&-first.0]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_is_left_to_a_node_that_leaves_is_looked_after_soon() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let first = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let claim = claimed_job(&store, first).await;
    let (mut client, watcher) = (connect(&url).await, connect(&url).await);
    let open = client.transaction().await.unwrap();
    open.execute("SELECT FROM wheelwork_jobs FOR UPDATE", &[]).await.unwrap();
    let keep = [Keep { claim, called: true }];
    let second = store.join(Some(first), &keep, ms(60_000)).await.unwrap().node;
    store.leave(second).await.unwrap();
    let soon =
        "SELECT FROM wheelwork_nodes WHERE id = $1 AND expires <= now() + interval '1 second'";
    assert_eq!(watcher.execute(soon, &[&-first.0]).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_keeps_what_a_failed_call_has_taken_and_somebody_has_locked_since() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    // It does not give up by itself.
    let store = Postgres::with(url.parse().unwrap(), tokio_postgres::NoTls, ms(600_000));
    store.prepare().await.unwrap();
    let old = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let claim = claimed_job(&store, old).await;
    let keep = [Keep { claim, called: false }];

    let (mut client, watcher) = (connect(&url).await, connect(&url).await);
    let revoked =
        "INSERT INTO wheelwork_revoked (node, job, epoch) VALUES ($1, gen_random_uuid(), 1)";
    watcher.execute(revoked, &[&old.0]).await.unwrap();
    let open = client.transaction().await.unwrap();
    open.execute("SELECT FROM wheelwork_revoked FOR UPDATE", &[]).await.unwrap();
    let joining = store.clone();
    let join = tokio::spawn(async move { joining.join(Some(old), &keep, ms(60_000)).await });
    until_one_waits(&watcher).await; // as the old node is forgotten
    join.abort();
    assert!(join.await.is_err_and(|end| end.is_cancelled()));
    open.rollback().await.unwrap();

    let open = client.transaction().await.unwrap();
    open.execute("SELECT FROM wheelwork_jobs FOR UPDATE", &[]).await.unwrap();
    let joined = store.join(Some(old), &keep, ms(60_000)).await.unwrap();
    assert_eq!(joined.kept, [claim]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_in_its_transaction_goes_on_when_its_node_takes_a_new_number() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let (locked, mut is_locked) = unbounded_channel();
    let (go_on, goes_on) = tokio::sync::watch::channel(false);
    let database = url.clone();
    let handle = move |job: Job<u32, Postgres>| {
        let (database, locked, mut goes_on) = (database.clone(), locked.clone(), goes_on.clone());
        async move {
            if job.payload > 0 {
                return Ok(());
            }
            let mut client = connect(&database).await;
            let transaction = client.transaction().await.unwrap();
            job.complete_in(&transaction).await.unwrap();
            locked.send(()).unwrap();
            goes_on.wait_for(|&goes_on| goes_on).await.unwrap();
            transaction.rollback().await.unwrap();
            if job.cancellation().is_cancelled() {
                return Err("its node has let go of it");
            }
            let transaction = client.transaction().await.unwrap();
            job.complete_in(&transaction).await.unwrap();
            transaction.commit().await.map_err(|_| "no commit")
        }
    };
    let store = Postgres::new(&url).unwrap();
    let builder = Jobs::builder(store.clone()).liveness(ms(60_000)).handle("n", handle);
    let jobs = builder.open().await.unwrap();
    jobs.schedule(job(0, ms(0))).await.unwrap();
    is_locked.recv().await.unwrap();
    let client = connect(&url).await;
    client.execute("UPDATE wheelwork_nodes SET id = -id WHERE id > 0", &[]).await.unwrap();
    // The node listens again, and then beats.
    let listens = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND (query LIKE 'LISTEN%' OR query LIKE '%WITH beat AS%')";
    while jobs.metrics().lapsed == 0 {
        client.execute(listens, &[]).await.unwrap();
        tokio::time::sleep(ms(100)).await;
    }
    jobs.schedule(job(1, ms(0))).await.unwrap();
    until("another job is done", || jobs.metrics().done == 1).await;
    go_on.send(true).unwrap();
    until("the job has ended", || jobs.metrics().held == 0).await;
    let metrics = jobs.metrics();
    assert_eq!((metrics.done, metrics.retried, metrics.lost), (2, 0, 0));
}

/// The handler blocks the runtime of the user, and with it every other handler.
#[tokio::test(flavor = "current_thread")]
async fn a_slow_job_of_a_live_node_is_not_taken_away() {
    let Some(store) = common::postgres() else { return };
    let runs = Arc::new(Mutex::new(0));
    let count = runs.clone();
    let slow = move |_: Job<u32, _>| {
        *count.lock().unwrap() += 1;
        std::thread::sleep(Duration::from_secs(12));
        async { Ok::<_, String>(()) }
    };
    let liveness = Duration::from_secs(10);
    let builder = Jobs::builder(store.clone()).liveness(liveness).handle("n", slow);
    let first = builder.open().await.unwrap();
    let id = first.schedule(job(1, ms(0))).await.unwrap();
    let second = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (builder, runs) = counting(store, liveness);
            let second = builder.open().await.unwrap();
            tokio::time::sleep(Duration::from_secs(13)).await;
            (second.metrics(), runs)
        })
    });
    until("it is done", || first.metrics().done == 1).await;
    let (second, others_runs) = second.join().unwrap();
    assert_eq!((*runs.lock().unwrap(), others_runs.lock().unwrap().len()), (1, 0));
    assert_eq!((first.metrics().lapsed, first.metrics().lost, second.taken_over), (0, 0, 0));
    assert_eq!(first.get(id).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_taken_for_dead_goes_on() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let (builder, runs) = counting(store, ms(1_500));
    let node = builder.open().await.unwrap();
    let jobs = (0..20).map(|n| job(n, Duration::from_secs(29)));
    let jobs: Vec<_> = node.schedule_all(jobs).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(node.metrics().held, 20);
    let client = common::connect(&url).await;
    let take_over = "BEGIN;
        DELETE FROM wheelwork_nodes;
        UPDATE wheelwork_jobs SET owner = NULL;
        COMMIT";
    client.batch_execute(take_over).await.unwrap();
    until("it has claimed all of them a second time", || node.metrics().claimed >= 40).await;
    assert!(node.metrics().lapsed >= 1);
    for id in jobs {
        node.reschedule(id, ms(0)).await.unwrap();
    }
    until("all are done", || node.metrics().done == 20).await;
    assert!(runs.lock().unwrap().values().all(|run| run.0 == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_share_the_jobs_and_run_each_once() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let (builder, runs) = counting(Postgres::new(&url).unwrap(), Duration::from_secs(30));
        nodes.push((builder.open().await.unwrap(), runs));
    }
    let client = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let jobs = (0..600).map(|n| job(n, ms(u64::from(n))));
    assert!(client.schedule_all(jobs).await.iter().all(Result::is_ok));
    let done = || nodes.iter().map(|(node, _)| node.metrics().done).sum::<u64>();
    until("all are done", || done() == 600).await;
    let mut all = BTreeMap::new();
    for (node, runs) in &nodes {
        assert_eq!(node.metrics().lost, 0);
        for (&n, &(count, _)) in runs.lock().unwrap().iter() {
            *all.entry(n).or_insert(0) += count;
        }
    }
    assert!(all.len() == 600 && all.values().all(|&count| count == 1));
}

/// What a store tells from now on.
async fn listen(store: &Postgres) -> UnboundedReceiver<Notice> {
    let (sender, mut notices) = unbounded_channel();
    let listener = store.clone();
    tokio::spawn(async move { listener.listen(sender).await });
    assert_eq!(notices.recv().await, Some(Notice::Listening));
    notices
}

/// A job of a limited kind may have ended during its stop: then its place is free.
#[tokio::test]
async fn a_node_that_owns_nothing_tells_the_others_when_it_leaves() {
    let Some(store) = common::postgres() else { return };
    store.prepare().await.unwrap();
    let mut notices = listen(&store).await;
    let node = store.join(None, &[], ms(60_000)).await.unwrap().node;
    store.leave(node).await.unwrap();
    assert!(store.set_paused("n", true).await.unwrap());
    assert_eq!(notices.recv().await, Some(Notice::Look));
}

#[tokio::test]
async fn a_cancel_and_a_move_are_told_to_the_owner() {
    let Some(store) = common::postgres() else { return };
    store.prepare().await.unwrap();
    let mut notices = listen(&store).await;
    let node = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let claimed = [insert(1, ms(0)), insert(2, ms(0))];
    store.insert(Some(node), ms(60_000), &claimed).await.unwrap();
    for insert in &claimed {
        let id = insert.job.id();
        let told = if id == claimed[0].job.id() {
            store.cancel(id, None).await.unwrap().map(|cancelled| cancelled.removed)
        } else {
            store.reschedule(id, ms(70_000).into(), ms(60_000), false, None, None).await.unwrap()
        };
        assert_eq!(told.unwrap().owner.unwrap().0, node);
        match notices.recv().await {
            Some(Notice::Drop(told, claim)) => assert_eq!((told, claim.id), (node, id)),
            other => panic!("{other:?}"),
        }
    }
    // Only what is due within the window is told to all.
    store.insert(None, ms(60_000), &[insert(3, ms(70_000)), insert(4, ms(50_000))]).await.unwrap();
    assert_eq!(notices.recv().await, Some(Notice::Look));
    let moved = claimed[1].job.id();
    store.reschedule(moved, ms(10).into(), ms(60_000), false, None, None).await.unwrap();
    assert_eq!(notices.recv().await, Some(Notice::Look));
    assert!(notices.try_recv().is_err());
    assert_eq!(store.get(moved).await.unwrap().unwrap().state, State::Waiting);
}

#[tokio::test]
async fn a_job_that_somebody_has_locked_does_not_hold_up_a_take_over() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let dead = store.join(None, &[], ms(10)).await.unwrap().node;
    let claimed = [insert(1, ms(0)), insert(2, ms(0))];
    store.insert(Some(dead), ms(10_000), &claimed).await.unwrap();
    let mut client = common::connect(&url).await;
    let locking = client.transaction().await.unwrap();
    let lock = "SELECT FROM wheelwork_jobs WHERE payload = '1' FOR UPDATE";
    assert_eq!(locking.execute(lock, &[]).await.unwrap(), 1);

    let (builder, runs) = counting(store, Duration::from_secs(3));
    let node = builder.open().await.unwrap();
    until("the other is done", || node.metrics().done == 1).await;
    assert_eq!(runs.lock().unwrap().keys().collect::<Vec<_>>(), [&2]);
    locking.rollback().await.unwrap();
    until("both are done", || node.metrics().done == 2).await;
    assert_eq!(node.metrics().taken_over, 2);
}

/// Something in the database forbids it each time.
#[tokio::test]
async fn a_take_over_that_fails_holds_back_no_claims() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    store.join(None, &[], ms(10)).await.unwrap();
    let refuse = "
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''as the test wants''; END';
        CREATE TRIGGER refuse BEFORE UPDATE ON wheelwork_nodes
            FOR EACH ROW WHEN (NEW.id < 0) EXECUTE FUNCTION refuse()";
    common::connect(&url).await.batch_execute(refuse).await.unwrap();
    let (builder, _) = counting(store.clone(), Duration::from_secs(3));
    let node = builder.open().await.unwrap();
    until("it has failed", || node.metrics().store_errors > 0).await;
    store.insert(None, ms(10_000), &[insert(1, ms(0))]).await.unwrap();
    until("the job is done", || node.metrics().done == 1).await;
    assert_eq!(node.metrics().taken_over, 0);
}

#[tokio::test]
async fn a_node_opens_while_a_transaction_of_the_user_is_open() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let first = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let mut client = common::connect(&url).await;
    let open = client.transaction().await.unwrap();
    first.schedule_in(&open, &job(1, ms(0))).await.unwrap();
    let (builder, _) = counting(Postgres::new(&url).unwrap(), Duration::from_secs(30));
    let node = tokio::time::timeout(Duration::from_secs(60), builder.open()).await;
    let node = node.expect("it waits for the transaction").unwrap();
    open.commit().await.unwrap();
    until("it is done", || node.metrics().done == 1).await;
}

#[tokio::test]
async fn a_claim_that_was_taken_over_completes_nothing() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let paused = store.join(None, &[], ms(0)).await.unwrap().node;
    let new = insert(1, ms(0));
    let stored = store.insert(Some(paused), ms(10_000), std::slice::from_ref(&new)).await.unwrap();
    let old = Claim { id: new.job.id(), epoch: stored[0].stored().unwrap().claimed.unwrap() };
    let other = store.join(None, &[], ms(60_000)).await.unwrap().node;
    assert_eq!(store.take_over().await.unwrap(), 1);
    let claimed = store.claim(other, ms(10_000), &[("n".into(), 1)]).await.unwrap();
    let ends = [old, claimed[0].claim].map(|claim| End { claim, outcome: Outcome::Done });
    assert_eq!(store.finish(&ends).await.unwrap(), [Finished::Lost, Finished::Held]);
    assert_eq!(store.get(old.id).await.unwrap(), None);
}
