//! Nothing begins after its cancel or its move has returned true, on whatever node it is.

use crate::common::{self, Shared, until};
use crate::on_every_store;
use crate::tests::flaky::Hindered;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::{self, Runtime};
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{Claim, Insert};
use wheelwork_jobs::{Job, JobId, Jobs, NewJob, Postgres, Store};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const HOUR: Duration = Duration::from_secs(3_600);

/// They are cancelled and moved when they are about to begin.
async fn nothing_begins_after_its_cancel(store: impl Shared) {
    const JOBS: u32 = 400;
    let revoked = Arc::<Mutex<HashSet<u32>>>::default();
    let (known, broken) = (revoked.clone(), Arc::new(AtomicUsize::new(0)));
    let breaks = broken.clone();
    let handle = move |job: Job<u32, _>| {
        if known.lock().unwrap().contains(&job.payload) {
            breaks.fetch_add(1, SeqCst);
        }
        async { Ok::<_, String>(()) }
    };
    let node = Jobs::builder(store.clone()).handle("n", handle).open().await.unwrap();
    let client = Jobs::open(store).await.unwrap();
    let due = |n| ms(20 + u64::from(n));
    let new = (0..JOBS).map(|n| NewJob::new("n", &n).unwrap().due(due(n)));
    let ids: Vec<_> = node.schedule_all(new).await.into_iter().map(Result::unwrap).collect();
    let begun = Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for (n, id) in (0..JOBS).zip(ids) {
        let (client, revoked) = (client.clone(), revoked.clone());
        calls.spawn(async move {
            let at = due(n).saturating_sub(ms(10));
            tokio::time::sleep(at.saturating_sub(begun.elapsed())).await;
            let answer = match n % 2 {
                0 => client.cancel(id).await,
                _ => client.reschedule(id, HOUR).await,
            };
            if answer.unwrap() {
                revoked.lock().unwrap().insert(n);
            }
        });
    }
    while calls.join_next().await.is_some() {}
    until("the rest has run", || {
        let metrics = node.metrics();
        metrics.held == 0 && metrics.running == 0
    })
    .await;
    assert_eq!(broken.load(SeqCst), 0, "of {}", revoked.lock().unwrap().len());
}

/// A node with one thread for its handlers. The first handler blocks it, and the run of a second job has begun.
struct Busy<S: Store> {
    node: Jobs<S>,
    runs: Arc<AtomicUsize>,
    waits: JobId,
    release: mpsc::Sender<()>,
    one_thread: Runtime,
}

impl<S: Store> Busy<S> {
    async fn open(store: S) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (runs, released) = (Arc::new(AtomicUsize::new(0)), Mutex::new(released));
        let count = runs.clone();
        let handle = move |_: Job<(), _>| {
            count.fetch_add(1, SeqCst);
            released.lock().unwrap().recv().map_err(|error| error.to_string())
        };
        let one_thread = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let builder = Jobs::builder(store).handle_blocking("n", handle);
        let node = one_thread.spawn(async move { builder.open().await.unwrap() }).await.unwrap();
        node.schedule(NewJob::new("n", &()).unwrap()).await.unwrap();
        until("the first one runs", || runs.load(SeqCst) == 1).await;
        let waits = node.schedule(NewJob::new("n", &()).unwrap()).await.unwrap();
        until("the second one has begun", || node.metrics().running == 2).await;
        Self { node, runs, waits, release, one_thread }
    }

    async fn ends_without_the_second_one(self) {
        self.release.send(()).unwrap();
        until("both runs have ended", || self.node.metrics().running == 0).await;
        assert_eq!(self.runs.load(SeqCst), 1);
        let metrics = self.node.metrics();
        let [late, took] = [&metrics.kinds[0].late_by, &metrics.kinds[0].took].map(|it| it.count());
        assert_eq!(
            (metrics.fired, late, took),
            (1, 1, 1),
            "a handler that is not called counts nowhere"
        );
        self.one_thread.shutdown_background();
    }
}

async fn a_handler_that_waits_for_a_thread_is_not_called_after_a_cancel(store: impl Shared) {
    let busy = Busy::open(store.clone()).await;
    assert!(Jobs::open(store).await.unwrap().cancel(busy.waits).await.unwrap());
    busy.ends_without_the_second_one().await;
}

/// Others may have its job by then.
async fn a_handler_that_waits_for_a_thread_is_not_called_after_its_node_has_left(
    store: impl Shared,
) {
    let busy = Busy::open(store).await;
    assert_eq!(busy.node.stop(ms(0)).await.unwrap().still_running, 2);
    busy.ends_without_the_second_one().await;
}

/// Nobody can ask it.
#[tokio::test]
async fn a_cancel_waits_until_a_silent_owner_is_dead() {
    waits_until_a_silent_owner_is_dead(async |client, job| {
        assert!(client.cancel(job.id()).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_move_waits_until_a_silent_owner_is_dead() {
    waits_until_a_silent_owner_is_dead(async |client, job| {
        assert!(client.reschedule(job.id(), HOUR).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_replacement_waits_until_a_silent_owner_is_dead() {
    waits_until_a_silent_owner_is_dead(async |client, job| {
        let new = NewJob::new("n", &()).unwrap().key("the key").due(HOUR);
        assert_eq!(client.replace(new).await.unwrap(), Some(job.id()));
    })
    .await;
}

/// There is no other node that would see the end of its life.
async fn waits_until_a_silent_owner_is_dead(revoke: impl AsyncFnOnce(Jobs<Postgres>, NewJob)) {
    let Some(store) = common::postgres() else { return };
    store.prepare().await.unwrap();
    let begun = Instant::now();
    let silent = store.join(None, &[], ms(1_000)).await.unwrap().node;
    let job = NewJob::new("n", &()).unwrap().key("the key");
    let insert = Insert { job: job.clone(), claim: true };
    let stored = store.insert(Some(silent), HOUR, &[insert]).await.unwrap();
    assert!(stored[0].stored().unwrap().claimed.is_some());
    let client = Jobs::open(store.clone()).await.unwrap();
    tokio::time::timeout(ms(60_000), revoke(client, job)).await.expect("an answer");
    assert!(begun.elapsed() >= ms(990), "after {:?}", begun.elapsed());
    assert!(!store.beat(silent, HOUR, &[]).await.unwrap().alive);
}

/// The owner may still begin the job, and so the call has not returned.
async fn a_cancel_that_waits_for_the_owner_does_not_count(store: impl Shared) {
    store.prepare().await.unwrap();
    let owner = store.join(None, &[], HOUR).await.unwrap().node;
    let job = NewJob::new("n", &()).unwrap();
    let insert = Insert { job: job.clone(), claim: true };
    let stored = store.insert(Some(owner), HOUR, &[insert]).await.unwrap();
    let claim = Claim { id: job.id(), epoch: stored[0].stored().unwrap().claimed.unwrap() };
    let client = Jobs::open(store.clone()).await.unwrap();
    let caller = client.clone();
    let cancel = tokio::spawn(async move { caller.cancel(claim.id).await });
    while store.get(claim.id).await.unwrap().is_some() {
        tokio::time::sleep(ms(1)).await;
    }
    tokio::time::sleep(ms(50)).await;
    assert_eq!(client.metrics().cancelled, 0);
    store.acknowledge(owner, &[claim]).await.unwrap();
    assert!(cancel.await.unwrap().unwrap());
    assert_eq!(client.metrics().cancelled, 1);
}

/// It claims nothing, so no notice is about what it claims.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insertion_without_a_claim_delays_no_answer_to_a_cancel() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let hindered = Hindered::new(store.clone(), 1);
    let hindrance = hindered.hindrance.clone();
    let fine = |_: Job<(), _>| async { Ok::<_, String>(()) };
    let builder = Jobs::builder(hindered).liveness(3 * HOUR).window(3 * HOUR).handle("n", fine);
    let node = builder.open().await.unwrap();
    until("it listens", || node.health().listening == Some(true)).await;
    let held = node.schedule(NewJob::new("n", &()).unwrap().due(HOUR)).await.unwrap();
    let other = NewJob::new("other", &()).unwrap();
    let inserting = node.clone();
    let insertion = tokio::spawn(async move { inserting.schedule(other).await });
    hindrance.come.acquire_many(2).await.unwrap().forget();
    // The node does not hold this claim, but an answer with it could be on its way.
    let rumour = "SELECT pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid,
        concat_ws(' ', 'drop', owner, id, epoch + 1)) FROM wheelwork_jobs WHERE owner IS NOT NULL";
    common::connect(&url).await.batch_execute(rumour).await.unwrap();
    tokio::time::sleep(ms(300)).await;
    let client = Jobs::open(store).await.unwrap();
    let cancelled = tokio::time::timeout(ms(60_000), client.cancel(held)).await;
    assert!(cancelled.expect("an answer").unwrap());
    assert!(!insertion.is_finished());
}

on_every_store! {
    a_cancel_that_waits_for_the_owner_does_not_count
    nothing_begins_after_its_cancel
    a_handler_that_waits_for_a_thread_is_not_called_after_a_cancel
    a_handler_that_waits_for_a_thread_is_not_called_after_its_node_has_left
}
