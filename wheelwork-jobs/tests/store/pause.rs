//! Kinds that are paused and resumed, on all nodes.

use crate::common::{self, Shared, connect, until};
use crate::on_every_store;
use crate::store::postgres::sql;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::Semaphore;
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{Claim, End, Finished, Outcome, Store};
use wheelwork_jobs::{Job, Jobs, NewJob, Postgres, State};

on_every_store! {
    no_job_of_a_paused_kind_begins_until_it_is_resumed
    what_a_node_holds_is_let_go_when_its_kind_is_paused
    a_run_goes_on_while_its_kind_is_paused
    a_pause_survives_a_restart
    a_claim_that_was_let_go_does_not_count
    jobs_that_are_paused_and_resumed_at_random_run_once
}

const HOUR: Duration = Duration::from_secs(3_600);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

type Runs = Arc<AtomicUsize>;

/// A node for the kinds "n" and "m", and how often each has run.
async fn node<S: Shared>(store: S) -> (Jobs<S>, [Runs; 2]) {
    let runs: [Runs; 2] = Default::default();
    let count = |runs: &Runs| {
        let runs = runs.clone();
        move |_: Job<u32, S>| {
            runs.fetch_add(1, SeqCst);
            async { Ok::<_, String>(()) }
        }
    };
    let builder = Jobs::builder(store).handle("n", count(&runs[0])).handle("m", count(&runs[1]));
    (builder.open().await.unwrap(), runs)
}

fn job(kind: &str, n: u32) -> NewJob {
    NewJob::new(kind, &n).unwrap()
}

async fn no_job_of_a_paused_kind_begins_until_it_is_resumed(store: impl Shared) {
    let (first, runs) = node(store.clone()).await;
    let (second, _) = node(store.clone()).await;
    let other = Jobs::open(store).await.unwrap();
    assert!(other.pause("n").await.unwrap());
    assert!(!first.pause("n").await.unwrap());
    for jobs in [&first, &second, &other] {
        for n in 0..20 {
            jobs.schedule(job("n", n).due(ms(u64::from(n)))).await.unwrap();
        }
    }
    first.schedule(job("m", 1)).await.unwrap();
    until("the other kind is done", || first.metrics().done + second.metrics().done == 1).await;
    tokio::time::sleep(ms(200)).await;
    assert_eq!((first.metrics().done + second.metrics().done, runs[0].load(SeqCst)), (1, 0));
    let stats = first.stats().await.unwrap();
    let paused: Vec<_> =
        stats.iter().map(|kind| (&*kind.kind, kind.waiting, kind.paused)).collect();
    assert_eq!(paused, [("n", 60, true)]);
    assert!(second.resume("n").await.unwrap());
    assert!(!second.resume("n").await.unwrap());
    until("all are done", || first.metrics().done + second.metrics().done == 61).await;
}

async fn what_a_node_holds_is_let_go_when_its_kind_is_paused(store: impl Shared) {
    let (jobs, runs) = node(store.clone()).await;
    let soon = ms(25_000); // within the window
    let all = (0..100).map(|n| job("n", n).due(soon));
    let ids: Vec<_> = jobs.schedule_all(all).await.into_iter().map(Result::unwrap).collect();
    let of_other_kind = jobs.schedule(job("m", 0).due(soon)).await.unwrap();
    until("all are held", || jobs.metrics().held == 101).await;
    let other = Jobs::open(store).await.unwrap();
    other.pause("n").await.unwrap();
    until("they are let go", || jobs.metrics().held == 1).await;
    let all_wait = async {
        for id in &ids {
            while other.get(*id).await.unwrap().unwrap().state != State::Waiting {
                tokio::time::sleep(ms(1)).await;
            }
        }
    };
    tokio::time::timeout(ms(60_000), all_wait).await.expect("the store knows it, too");
    assert!(other.cancel(ids[0]).await.unwrap());
    assert!(other.reschedule(ids[1], ms(0)).await.unwrap());
    assert!(other.reschedule(of_other_kind, ms(0)).await.unwrap());
    until("the other kind runs", || runs[1].load(SeqCst) == 1).await;
    tokio::time::sleep(ms(100)).await;
    assert_eq!(runs[0].load(SeqCst), 0);
    other.resume("n").await.unwrap();
    until("what is due is done", || runs[0].load(SeqCst) == 1 && jobs.metrics().done == 2).await;
    until("the others are held again", || jobs.metrics().held == 98).await;
    assert_eq!(jobs.metrics().lost, 0);
}

async fn a_run_goes_on_while_its_kind_is_paused<S: Shared>(store: S) {
    let gate = Arc::new(Semaphore::new(0));
    let pass = gate.clone();
    let handle = move |job: Job<u32, S>| {
        let pass = pass.clone();
        async move {
            pass.acquire().await.map_err(|error| error.to_string())?.forget();
            if job.attempt == 1 { Err("again".to_owned()) } else { Ok(()) }
        }
    };
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    let retried = jobs.schedule(job("n", 0)).await.unwrap();
    until("it runs", || jobs.metrics().running == 1).await;
    jobs.pause("n").await.unwrap();
    gate.add_permits(2);
    until("it has failed", || jobs.metrics().retried == 1).await;
    assert!(jobs.reschedule(retried, ms(0)).await.unwrap());
    tokio::time::sleep(ms(100)).await;
    assert_eq!(jobs.metrics().fired, 1);
    jobs.resume("n").await.unwrap();
    until("it is done", || jobs.metrics().done == 1).await;
}

async fn a_pause_survives_a_restart(store: impl Shared) {
    let jobs = Jobs::open(store.clone()).await.unwrap();
    jobs.pause("n").await.unwrap();
    jobs.schedule(job("n", 0)).await.unwrap();
    jobs.stop(ms(1_000)).await.unwrap();
    let (node, runs) = node(store).await;
    node.schedule(job("n", 1)).await.unwrap();
    node.schedule(job("m", 1)).await.unwrap();
    until("the other kind runs", || runs[1].load(SeqCst) == 1).await;
    assert_eq!(runs[0].load(SeqCst), 0);
    node.resume("n").await.unwrap();
    until("both run", || runs[0].load(SeqCst) == 2).await;
}

async fn a_claim_that_was_let_go_does_not_count(store: impl Shared) {
    store.prepare().await.unwrap();
    let me = store.join(None, &[], HOUR).await.unwrap().node;
    let insert = [wheelwork_jobs::store::Insert { job: job("n", 0), claim: true }];
    let stored = store.insert(Some(me), HOUR, &insert).await.unwrap();
    let claim =
        Claim { id: insert[0].job.id(), epoch: stored[0].stored().unwrap().claimed.unwrap() };
    let end = [End { claim, outcome: Outcome::LetGo }];
    assert_eq!(store.finish(&end).await.unwrap(), [Finished::Held]);
    assert_eq!(store.holding(me, &[claim]).await.unwrap(), []);
    assert_eq!(store.finish(&end).await.unwrap(), [Finished::Lost]);
    let again = store.claim(me, HOUR, &[("n".into(), 1)]).await.unwrap();
    assert_eq!(again[0].claims, 1);
    assert!(store.set_paused("n", true).await.unwrap());
    assert_eq!(
        store.finish(&[End { claim: again[0].claim, ..end[0].clone() }]).await.unwrap(),
        [Finished::Held]
    );
    assert!(store.claim(me, HOUR, &[("n".into(), 1)]).await.unwrap().is_empty());
    let beat = store.beat(me, HOUR, &["m".into(), "n".into()]).await.unwrap();
    assert_eq!((beat.paused, beat.next_due), (vec!["n".to_owned()], None));
}

async fn jobs_that_are_paused_and_resumed_at_random_run_once(store: impl Shared) {
    let (first, runs) = node(store.clone()).await;
    let (second, others) = node(store).await;
    let total = || runs[0].load(SeqCst) + others[0].load(SeqCst);
    for n in 0..400 {
        let jobs = if n % 2 == 0 { &first } else { &second };
        jobs.schedule(job("n", n).due(ms(fastrand::u64(..300)))).await.unwrap();
        if n % 20 == 0 {
            jobs.pause("n").await.unwrap();
        } else if n % 20 == 10 {
            jobs.resume("n").await.unwrap();
        }
    }
    first.resume("n").await.unwrap();
    until("all have run", || total() == 400).await;
    until("all are done", || first.metrics().done + second.metrics().done == 400).await;
    assert_eq!(total(), 400);
}

/// Before it has heard anything, a node does not claim what it schedules itself.
#[tokio::test]
async fn an_insert_does_not_claim_for_a_paused_kind() {
    let Some(store) = common::postgres() else { return };
    store.prepare().await.unwrap();
    let me = store.join(None, &[], HOUR).await.unwrap().node;
    store.set_paused("n", true).await.unwrap();
    let insert = |kind| wheelwork_jobs::store::Insert { job: job(kind, 0), claim: true };
    let stored = store.insert(Some(me), HOUR, &[insert("n"), insert("m")]).await.unwrap();
    let claimed: Vec<_> =
        stored.iter().map(|job| job.stored().unwrap().claimed.is_some()).collect();
    assert_eq!(claimed, [false, true]);
}

#[tokio::test]
async fn a_claim_locks_no_job_of_a_paused_kind() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let me = store.join(None, &[], HOUR).await.unwrap().node;
    let insert = wheelwork_jobs::store::Insert { job: job("n", 0), claim: false };
    store.insert(None, HOUR, &[insert]).await.unwrap();
    store.set_paused("n", true).await.unwrap();
    let (mut claims, other) = (connect(&url).await, connect(&url).await);
    claims.batch_execute(sql::CONNECTED).await.unwrap();
    let claim = claims.transaction().await.unwrap();
    let (kinds, rooms) = (["n"].as_slice(), [5_i64].as_slice());
    let claimed = claim.query(sql::CLAIM, &[&me.0, &1_i64, &kinds, &rooms]).await.unwrap();
    assert!(claimed.is_empty());
    let free = "SELECT id FROM wheelwork_jobs FOR UPDATE SKIP LOCKED";
    assert_eq!(other.query(free, &[]).await.unwrap().len(), 1);
}
