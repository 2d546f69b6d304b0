//! Limits of a kind over all nodes.

use crate::common::{self, Shared, connect, until};
use crate::on_every_store;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::kind::Rate;
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{
    Claim, ClaimedLimited, End, Insert, KindLimits, Most, NodeId, Outcome,
};
use wheelwork_jobs::{Job, Jobs, JobsBuilder, Kind, NewJob, Postgres, Retry, Store};

on_every_store! {
    no_more_jobs_run_at_once_than_all_nodes_together_may
    every_way_in_which_a_job_ends_makes_a_place
    all_places_are_taken_at_once
    a_limited_job_is_run_in_time_and_not_before
    a_rate_is_kept_by_all_nodes_together
    a_rate_lets_a_burst_through_at_once
    the_most_urgent_job_takes_the_place
    a_limited_kind_can_be_paused
    the_end_of_a_job_lets_the_next_one_begin_at_once
    a_job_that_is_taken_away_makes_a_place_on_another_node
    a_glance_tells_whether_it_has_counted_all_claimed_jobs
}

const HOUR: Duration = Duration::from_secs(3_600);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn job(n: u32) -> NewJob {
    NewJob::new("n", &n).unwrap()
}

/// How many run now, and how many ran at once at most.
#[derive(Clone, Default)]
struct Crowd(Arc<[AtomicUsize; 2]>);

impl Crowd {
    async fn run(&self, time: Duration) {
        let now = self.0[0].fetch_add(1, SeqCst) + 1;
        self.0[1].fetch_max(now, SeqCst);
        tokio::time::sleep(time).await;
        self.0[0].fetch_sub(1, SeqCst);
    }

    fn most(&self) -> usize {
        self.0[1].load(SeqCst)
    }
}

fn node<S: Shared>(store: &S, kind: Kind, crowd: &Crowd, time: Duration) -> JobsBuilder<S> {
    let crowd = crowd.clone();
    let handle = move |_: Job<u32, S>| {
        let crowd = crowd.clone();
        async move {
            crowd.run(time).await;
            Ok::<_, String>(())
        }
    };
    Jobs::builder(store.clone()).handle(kind, handle)
}

async fn no_more_jobs_run_at_once_than_all_nodes_together_may<S: Shared>(store: S) {
    let (crowd, others) = (Crowd::default(), Crowd::default());
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let limited = Kind::new("n").total_concurrency(4);
        let other = others.clone();
        let handle = move |_: Job<u32, S>| {
            let other = other.clone();
            async move {
                other.run(ms(5)).await;
                Ok::<_, String>(())
            }
        };
        let builder = node(&store, limited, &crowd, ms(10)).handle("other", handle);
        nodes.push(builder.open().await.unwrap());
    }
    for n in 0..120 {
        let due = ms(u64::from(n % 10) * 5);
        nodes[n as usize % 3].schedule(job(n).due(due)).await.unwrap();
        nodes[0].schedule(NewJob::new("other", &n).unwrap()).await.unwrap();
    }
    let done = || nodes.iter().map(|node| node.metrics().done).sum::<u64>() == 240;
    until("all are done", done).await;
    assert!((1..=4).contains(&crowd.most()), "{} ran at once", crowd.most());
    assert!(nodes.iter().all(|node| node.metrics().lost == 0));
}

async fn every_way_in_which_a_job_ends_makes_a_place<S: Shared>(store: S) {
    let handle = |job: Job<u32, S>| async move {
        match job.payload {
            0 => Err("no"),
            1 => {
                if job.claims == 1 && job.attempt == 1 && job.due < SystemTime::now() - HOUR {
                    job.snooze(ms(5));
                }
                Ok(())
            }
            2 => {
                job.cancellation().cancelled().await;
                Ok(())
            }
            _ => Ok(()),
        }
    };
    let retry = Retry::default().attempts(3).first(ms(5));
    let kind = Kind::new("n").total_concurrency(1).retry(retry);
    let jobs = Jobs::builder(store.clone()).handle(kind, handle).open().await.unwrap();
    let other = Jobs::open(store).await.unwrap();
    jobs.schedule(job(0)).await.unwrap();
    until("it has failed for good", || jobs.metrics().buried == 1).await;
    jobs.schedule(job(1).due(SystemTime::now() - 2 * HOUR)).await.unwrap();
    until("it was put off, and done", || jobs.metrics().snoozed == 1 && jobs.metrics().done == 1)
        .await;
    for (n, canceller) in [&jobs, &other].into_iter().enumerate() {
        let running = jobs.schedule(job(2)).await.unwrap();
        until("it runs", || jobs.metrics().running == 1).await;
        jobs.schedule(job(3)).await.unwrap();
        assert!(canceller.cancel(running).await.unwrap());
        let done = 2 + n as u64;
        until("the next one is done", || jobs.metrics().done == done).await;
    }
}

/// A call claims a thousand at most, and the next beat is minutes away.
async fn all_places_are_taken_at_once<S: Shared>(store: S) {
    let jobs = Jobs::open(store.clone()).await.unwrap();
    assert!(jobs.schedule_all((0..1_500).map(job)).await.iter().all(Result::is_ok));
    let kind = Kind::new("n").concurrency(1_500).total_concurrency(1_500);
    let node = node(&store, kind, &Crowd::default(), HOUR).window(HOUR).liveness(HOUR);
    let node = node.open().await.unwrap();
    until("all run", || node.metrics().running == 1_500).await;
}

async fn a_limited_job_is_run_in_time_and_not_before<S: Shared>(store: S) {
    let late = Arc::new(AtomicUsize::new(0));
    let note = late.clone();
    let handle = move |job: Job<u32, S>| {
        let early = SystemTime::now() < job.due;
        note.fetch_add(if early { 1_000 } else { 1 }, SeqCst);
        async { Ok::<_, String>(()) }
    };
    let kind = Kind::new("n").total_concurrency(1);
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    // The last one is due first: it is looked at when it is due, and not at the next beat.
    let begun = Instant::now();
    for n in (0..10).rev() {
        jobs.schedule(job(n).due(ms(200 + 30 * u64::from(n)))).await.unwrap();
    }
    until("all are done", || jobs.metrics().done == 10).await;
    assert_eq!(late.load(SeqCst), 10);
    assert!(begun.elapsed() >= ms(470));
}

async fn a_rate_is_kept_by_all_nodes_together<S: Shared>(store: S) {
    let crowd = Crowd::default();
    let kind = || Kind::new("n").rate(50, Duration::from_secs(1));
    let first = node(&store, kind(), &crowd, ms(0)).open().await.unwrap();
    let second = node(&store, kind(), &crowd, ms(0)).open().await.unwrap();
    let begun = Instant::now();
    for n in 0..60 {
        first.schedule(job(n)).await.unwrap();
    }
    let done = || first.metrics().done + second.metrics().done;
    until("all are done", || done() == 60).await;
    // One, and 50 in a second.
    assert!(begun.elapsed() >= ms(1_150), "{:?}", begun.elapsed());
}

async fn a_glance_tells_whether_it_has_counted_all_claimed_jobs<S: Shared>(store: S) {
    let crowd = Crowd::default();
    let node = node(&store, Kind::new("n"), &crowd, HOUR)
        .handle("other", async |_: Job<u32, S>| {
            tokio::time::sleep(HOUR).await;
            Ok::<_, String>(())
        })
        .open()
        .await
        .unwrap();
    node.schedule(job(1)).await.unwrap();
    node.schedule(NewJob::new("other", &1).unwrap()).await.unwrap();
    until("both run", || node.metrics().running == 2).await;
    let glance = store.glance(Most { kinds: 1, ..Most::ALL }).await.unwrap();
    let counted: u64 = glance.kinds.iter().map(|kind| kind.claimed).sum();
    assert!(counted == 2 || !glance.all_claimed, "{glance:?}");
}

/// A node, and what it claims.
/// Tries again if somebody has locked a row for longer than the store waits, as on a busy machine.
async fn claim(
    store: &impl Shared,
    node: NodeId,
    room: usize,
    limits: KindLimits,
) -> ClaimedLimited {
    for _ in 0..200 {
        match store.claim_limited(node, HOUR, &"n".into(), room, limits).await {
            Err(error) if error.is_undone() => {}
            claimed => return claimed.unwrap(),
        }
    }
    panic!("no answer to 200 claims");
}

async fn fill(store: &impl Shared, jobs: impl IntoIterator<Item = NewJob>) -> NodeId {
    store.prepare().await.unwrap();
    let node = store.join(None, &[], HOUR).await.unwrap().node;
    let insert = |job| Insert { job, claim: false };
    let jobs: Vec<_> = jobs.into_iter().map(insert).collect();
    store.insert(Some(node), HOUR, &jobs).await.unwrap();
    // A kind that nobody knew.
    let nothing = KindLimits { concurrency: Some(0), rate: None };
    claim(store, node, 0, nothing).await;
    node
}

async fn a_rate_lets_a_burst_through_at_once(store: impl Shared) {
    let me = fill(&store, (0..40).map(job)).await;
    let rate = Rate { burst: 3, interval: Duration::from_secs(1_000) };
    let limits = KindLimits { concurrency: None, rate: Some(rate) };
    let before = SystemTime::now();
    assert_eq!(claim(&store, me, 2, limits).await.claimed.len(), 2);
    assert_eq!(claim(&store, me, 9, limits).await.claimed.len(), 1);
    let none = claim(&store, me, 9, limits).await;
    assert!(none.claimed.is_empty() && !none.busy);
    let next = SystemTime::from(none.next.unwrap());
    assert!(
        next >= before + Duration::from_secs(999) && next <= before + Duration::from_secs(1_060)
    );
    // A shorter interval, as after a clock that was set back: the bucket is full soon, and no fuller.
    let rate = Some(Rate { burst: 3, interval: ms(1) });
    claim(&store, me, 0, KindLimits { concurrency: None, rate }).await;
    tokio::time::sleep(ms(20)).await;
    assert_eq!(claim(&store, me, 9, KindLimits { concurrency: None, rate }).await.claimed.len(), 3);
}

async fn the_most_urgent_job_takes_the_place(store: impl Shared) {
    let jobs = (0..20).map(|n| job(n).priority(u8::try_from(n % 4).unwrap()));
    let me = fill(&store, jobs).await;
    let limits = KindLimits { concurrency: Some(7), rate: None };
    let claimed = claim(&store, me, 100, limits).await.claimed;
    let mut priorities: Vec<_> = claimed.iter().map(|job| job.priority).collect();
    priorities.sort_unstable();
    assert_eq!(priorities, [2, 2, 3, 3, 3, 3, 3]);
    let full = claim(&store, me, 100, limits).await;
    assert!(full.claimed.is_empty() && !full.busy && full.next.is_none());
    let end = End { claim: claimed[0].claim, outcome: Outcome::Done };
    store.finish(&[end]).await.unwrap();
    assert_eq!(claim(&store, me, 100, limits).await.claimed.len(), 1);
    // A node of another setting.
    let more = KindLimits { concurrency: Some(9), rate: None };
    assert_eq!(claim(&store, me, 100, more).await.claimed.len(), 2);
}

async fn a_limited_kind_can_be_paused(store: impl Shared) {
    let crowd = Crowd::default();
    let kind = Kind::new("n").total_concurrency(2).rate(1_000, Duration::from_secs(1));
    let jobs = node(&store, kind, &crowd, ms(1)).open().await.unwrap();
    jobs.pause("n").await.unwrap();
    for n in 0..10 {
        jobs.schedule(job(n)).await.unwrap();
    }
    tokio::time::sleep(ms(100)).await;
    assert_eq!(jobs.metrics().fired, 0);
    jobs.resume("n").await.unwrap();
    until("all are done", || jobs.metrics().done == 10).await;
}

/// No beat comes that would find the next one.
async fn the_end_of_a_job_lets_the_next_one_begin_at_once<S: Shared>(store: S) {
    let crowd = Crowd::default();
    let builder = node(&store, Kind::new("n").total_concurrency(1), &crowd, ms(1));
    let jobs = builder.liveness(3 * HOUR).window(3 * HOUR).open().await.unwrap();
    let stored = jobs.schedule_all((0..20).map(job)).await;
    assert!(stored.iter().all(Result::is_ok));
    until("all are done", || jobs.metrics().done == 20).await;
    assert_eq!(crowd.most(), 1);
}

/// Its handler does not listen, so its own node has no room. No beat comes that would find the next one.
async fn a_job_that_is_taken_away_makes_a_place_on_another_node<S: Shared>(store: S) {
    let kinds = ["cancelled", "moved", "replaced"];
    let open = async || {
        let handle = |job: Job<bool, S>| async move {
            if job.payload { std::future::pending().await } else { Ok::<_, String>(()) }
        };
        let builder = Jobs::builder(store.clone()).liveness(3 * HOUR).window(3 * HOUR);
        let limited = |kind| Kind::new(kind).concurrency(1).total_concurrency(1);
        let all = |builder: JobsBuilder<S>, kind| builder.handle(limited(kind), handle);
        kinds.into_iter().fold(builder, all).open().await.unwrap()
    };
    let (first, new) = (open().await, |kind, stays: bool| NewJob::new(kind, &stays).unwrap());
    let stays = kinds.map(|kind| new(kind, true).key(kind));
    let [cancelled, moved, _] = [0, 1, 2].map(|n| stays[n].id());
    first.schedule_all(stays).await.into_iter().for_each(|stored| _ = stored.unwrap());
    until("all run", || first.metrics().fired == 3).await;
    let second = open().await;
    let next = kinds.map(|kind| new(kind, false));
    second.schedule_all(next).await.into_iter().for_each(|stored| _ = stored.unwrap());
    until("it hears of jobs", || second.health().listening == Some(true)).await;
    // A look that is under way would find the place.
    tokio::time::sleep(ms(300)).await;
    assert_eq!(second.metrics().done, 0);
    assert!(second.cancel(cancelled).await.unwrap());
    until("the next one is done", || second.metrics().done == 1).await;
    assert!(second.reschedule(moved, 100 * HOUR).await.unwrap());
    until("the next one is done", || second.metrics().done == 2).await;
    let replacement = new("replaced", true).key("replaced").due(100 * HOUR);
    assert!(second.replace(replacement).await.unwrap().is_some());
    until("the next one is done", || second.metrics().done == 3).await;
}

/// A statement that began before another turn has ended does not see its claims.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_waits_does_not_count_from_the_past() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let first = fill(&store, (0..20).map(job)).await;
    // Its limit is long, so that the wait for a lock does not end by itself.
    let late = Postgres::with(url.parse::<Config>().unwrap(), NoTls, ms(600_000));
    let second = late.join(None, &[], HOUR).await.unwrap().node;
    let mut user = connect(&url).await;
    let limits = KindLimits { concurrency: Some(3), rate: None };
    // It waits for the row of its node.
    let transaction = user.transaction().await.unwrap();
    let lock = "SELECT FROM wheelwork_nodes WHERE id = $1 FOR UPDATE";
    transaction.execute(lock, &[&second.0]).await.unwrap();
    let waiting = tokio::spawn(async move { claim(&late, second, 9, limits).await });
    let watcher = connect(&url).await;
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    while watcher.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(ms(1)).await;
    }
    assert_eq!(claim(&store, first, 9, limits).await.claimed.len(), 3);
    transaction.commit().await.unwrap();
    let claimed = waiting.await.unwrap();
    assert!(claimed.claimed.is_empty() && claimed.busy);
}

/// Nodes that claim as fast as they can never have more claims together than they may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_at_the_same_time_keep_the_limit() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    fill(&Postgres::new(&url).unwrap(), (0..3_000).map(job)).await;
    let held = Arc::new(AtomicUsize::new(0));
    let limits = KindLimits { concurrency: Some(5), rate: None };
    let claimer = |_| {
        let (store, held) = (Postgres::new(&url).unwrap(), held.clone());
        tokio::spawn(async move {
            let me = store.join(None, &[], HOUR).await.unwrap().node;
            let (begun, mut all) = (Instant::now(), 0);
            while begun.elapsed() < ms(2_500) {
                let claimed = claim(&store, me, 3, limits).await.claimed;
                let now = held.fetch_add(claimed.len(), SeqCst) + claimed.len();
                assert!(now <= 5, "{now} claims at once");
                all += claimed.len();
                held.fetch_sub(claimed.len(), SeqCst);
                let end = |claim: Claim| End { claim, outcome: Outcome::Done };
                let ends: Vec<_> = claimed.iter().map(|job| end(job.claim)).collect();
                store.finish(&ends).await.unwrap();
            }
            all
        })
    };
    let mut all = 0;
    for claimer in (0..6).map(claimer).collect::<Vec<_>>() {
        all += claimer.await.unwrap();
    }
    assert!(all > 0);
}

#[tokio::test]
async fn the_places_of_a_dead_node_are_free_when_its_life_has_lapsed() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let limits = KindLimits { concurrency: Some(2), rate: None };
    let dead = store.join(None, &[], HOUR).await.unwrap().node;
    let insert: Vec<_> = (0..6).map(|n| Insert { job: job(n), claim: false }).collect();
    store.insert(Some(dead), HOUR, &insert).await.unwrap();
    claim(&store, dead, 9, limits).await;
    assert_eq!(claim(&store, dead, 9, limits).await.claimed.len(), 2);
    let crowd = Crowd::default();
    let kind = Kind::new("n").total_concurrency(2);
    let builder = node(&store, kind, &crowd, ms(1));
    let node = builder.liveness(Duration::from_secs(3)).open().await.unwrap();
    assert_eq!(node.metrics().done, 0);
    let lapse = "UPDATE wheelwork_nodes SET expires = now() WHERE id = $1";
    connect(&url).await.execute(lapse, &[&dead.0]).await.unwrap();
    until("all are done", || node.metrics().done == 6).await;
    assert_eq!(node.metrics().taken_over, 2);
}

/// Whoever holds the row of a kind stops that kind alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_whose_row_is_locked_keeps_no_other_waiting() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let crowd = Crowd::default();
    let builder = node(&store, Kind::new("n").total_concurrency(2), &crowd, ms(1));
    let handle = |_: Job<u32, Postgres>| async { Ok::<_, String>(()) };
    let jobs = builder.handle("other", handle).open().await.unwrap();
    jobs.schedule(job(0)).await.unwrap();
    until("the first is done", || jobs.metrics().done == 1).await;
    let mut user = connect(&url).await;
    let transaction = user.transaction().await.unwrap();
    let lock = "SELECT FROM wheelwork_kinds WHERE kind = 'n' FOR UPDATE";
    transaction.execute(lock, &[]).await.unwrap();
    for n in 0..50 {
        jobs.schedule(job(n)).await.unwrap();
        jobs.schedule(NewJob::new("other", &n).unwrap()).await.unwrap();
    }
    until("the others are done", || jobs.metrics().done == 51).await;
    assert_eq!(jobs.metrics().store_errors, 0);
    transaction.commit().await.unwrap();
    until("all are done", || jobs.metrics().done == 101).await;
}

/// Its claims fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_whose_row_is_not_committed_keeps_no_other_waiting() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let client = Jobs::open(store.clone()).await.unwrap();
    let mut user = connect(&url).await;
    let transaction = user.transaction().await.unwrap();
    let insert = "INSERT INTO wheelwork_kinds (kind) VALUES ('n')";
    transaction.execute(insert, &[]).await.unwrap();
    let crowd = Crowd::default();
    let builder = node(&store, Kind::new("n").total_concurrency(2), &crowd, ms(1));
    let handle = |_: Job<u32, Postgres>| async { Ok::<_, String>(()) };
    let jobs = builder.handle("other", handle).open().await.unwrap();
    // Stored by another one: the node has to look for them.
    for n in 0..10 {
        client.schedule(job(n)).await.unwrap();
        client.schedule(NewJob::new("other", &n).unwrap()).await.unwrap();
    }
    until("the others are done", || jobs.metrics().done == 10).await;
    transaction.commit().await.unwrap();
    until("all are done", || jobs.metrics().done == 20).await;
}

/// The one that it replaces was claimed under a limit.
#[tokio::test]
async fn a_job_that_replaces_another_one_counts_for_no_limit() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let me = fill(&store, [job(1).key("k")]).await;
    let limits = KindLimits { concurrency: Some(1), rate: None };
    assert_eq!(claim(&store, me, 1, limits).await.claimed.len(), 1);
    let new = NewJob::new("other", &1).unwrap().key("k");
    assert!(store.replace(HOUR, &new, Some(me)).await.unwrap().before.is_some());
    let row = connect(&url).await.query_one("SELECT limited FROM wheelwork_jobs", &[]).await;
    assert!(!row.unwrap().get::<_, bool>(0));
}
