//! Stores that are around another one: one whose calls fail at random, before they have done anything or after
//! they have done all of it, one that tells nothing, one that panics, and one that hinders calls as its test says.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use wheelwork_jobs::store::{
    Beat, Calls, Cancelled, Claim, Claimed, ClaimedLimited, End, Finished, Insert, Insertion,
    Joined, Keep, KindLimits, Most, NodeId, Notice, Removed, Replaced, Started, Store,
};
use wheelwork_jobs::{
    Filter, Glance, JobId, NewJob, Peek, Progress, Reading, StoreError, StoredJob, Timestamp, When,
};

pub struct Flaky<S> {
    pub store: S,
    /// Whether the answer to `join` can get lost: not if it comes from the memory of the same process.
    pub join_answers_get_lost: bool,
}

/// A fifth of the calls fail, half of these after they have done all of it.
async fn flaky<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let failed = |when| Err(StoreError::new("answer", when));
    match fastrand::u8(..10) {
        0 => failed("it fails before"),
        1 => {
            call.await?;
            failed("it fails after")
        }
        _ => call.await,
    }
}

async fn as_it_is<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    call.await
}

/// Calls that go through a function to the store inside.
macro_rules! forward {
    ($by:ident: $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(async fn $name(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
            $by(self.store.$name($($argument),*)).await
        })*
    };
}

/// All calls but those that the stores below have for themselves. What changes something goes through the function.
macro_rules! forward_the_rest {
    ($by:ident) => {
        forward! { as_it_is:
            get(id: JobId) -> Option<StoredJob>;
            find(key: &str) -> Option<StoredJob>;
            list(filter: &Filter) -> Vec<StoredJob>;
            glance(most: Most) -> Glance;
            peek(peek: &Peek) -> Vec<StoredJob>;
        }

        forward! { $by:
            beat(node: NodeId, liveness: Duration, kinds: &[Arc<str>]) -> Beat;
            take_over() -> u64;
            tell() -> ();
            holding(node: NodeId, claims: &[Claim]) -> Vec<Claim>;
            start(node: NodeId, claims: &[Claim]) -> Vec<Started>;
            finish(ends: &[End]) -> Vec<Finished>;
            cancel(id: JobId, me: Option<NodeId>) -> Option<Cancelled>;
            reschedule(
                id: JobId, when: When, window: Duration, dead: bool, from: Option<Timestamp>, me: Option<NodeId>
            ) -> Option<Removed>;
            revoked(claims: &[(NodeId, Claim)]) -> Vec<(NodeId, Claim)>;
            acknowledge(node: NodeId, claims: &[Claim]) -> ();
            replace(window: Duration, job: &NewJob, me: Option<NodeId>) -> Replaced;
            prune(kind: Option<&str>, before: Timestamp, most: usize) -> usize;
            claim_limited(
                node: NodeId, window: Duration, kind: &Arc<str>, room: usize, limits: KindLimits
            ) -> ClaimedLimited;
            set_paused(kind: &str, paused: bool) -> bool;
            report(reports: &[(Claim, Progress)]) -> ();
            prune_done(before: Timestamp, most: usize) -> usize;
            forget_done(most: usize) -> usize;
            unmark(most: usize) -> usize;
        }

        async fn tend(&self) {
            self.store.tend().await;
        }
    };
}

macro_rules! around {
    ($($store:ident)*) => {
        $(impl<S: Store> Store for $store<S> {
            const VERSION: u32 = S::VERSION;

            forward! { as_it_is: prepare() -> (); version() -> u32; clock() -> Reading; }
        })*
    };
}

around! { Flaky Silent Broken Hindered }

impl<S: Store> Calls for Flaky<S> {
    forward_the_rest!(flaky);

    forward! { as_it_is: leave(node: NodeId) -> (); }

    forward! { flaky:
        claim(node: NodeId, window: Duration, rooms: &[(Arc<str>, usize)]) -> Vec<Claimed>;
        insert(node: Option<NodeId>, window: Duration, jobs: &[Insert]) -> Vec<Insertion>;
        stored(ids: &[JobId]) -> Vec<(JobId, bool)>;
    }

    async fn join(
        &self,
        old: Option<NodeId>,
        keep: &[Keep],
        liveness: Duration,
    ) -> Result<Joined, StoreError> {
        let join = self.store.join(old, keep, liveness);
        // The first one must succeed: without it there is no node.
        if old.is_none() || !self.join_answers_get_lost { join.await } else { flaky(join).await }
    }

    async fn listen(&self, notices: UnboundedSender<Notice>) {
        self.store.listen(notices).await;
    }
}

/// Tells nothing.
#[derive(Clone)]
pub struct Silent<S> {
    pub store: S,
}

impl<S: Store> Calls for Silent<S> {
    forward_the_rest!(as_it_is);

    forward! { as_it_is:
        leave(node: NodeId) -> ();
        join(old: Option<NodeId>, keep: &[Keep], liveness: Duration) -> Joined;
        claim(node: NodeId, window: Duration, rooms: &[(Arc<str>, usize)]) -> Vec<Claimed>;
        insert(node: Option<NodeId>, window: Duration, jobs: &[Insert]) -> Vec<Insertion>;
        stored(ids: &[JobId]) -> Vec<(JobId, bool)>;
    }

    async fn listen(&self, _: UnboundedSender<Notice>) {
        std::future::pending().await
    }
}

/// Panics when it should claim, or the first time that its node leaves.
pub struct Broken<S> {
    pub store: S,
    /// Until it has panicked.
    pub claims: AtomicBool,
}

impl<S: Store> Calls for Broken<S> {
    forward_the_rest!(as_it_is);

    forward! { as_it_is:
        join(old: Option<NodeId>, keep: &[Keep], liveness: Duration) -> Joined;
        insert(node: Option<NodeId>, window: Duration, jobs: &[Insert]) -> Vec<Insertion>;
        stored(ids: &[JobId]) -> Vec<(JobId, bool)>;
    }

    async fn claim(
        &self,
        node: NodeId,
        window: Duration,
        rooms: &[(Arc<str>, usize)],
    ) -> Result<Vec<Claimed>, StoreError> {
        assert!(self.claims.load(SeqCst), "as the test wants");
        self.store.claim(node, window, rooms).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        assert!(!self.claims.swap(false, SeqCst), "as the test wants");
        self.store.leave(node).await
    }

    async fn listen(&self, notices: UnboundedSender<Notice>) {
        self.store.listen(notices).await;
    }
}

/// Insertions are done at once, but have no answer before the gate lets them through. So many claims fail. Questions
/// about the members of groups have no answer.
#[derive(Clone)]
pub struct Hindered<S> {
    pub store: S,
    pub hindrance: Arc<Hindrance>,
}

pub struct Hindrance {
    /// Insertions that have come.
    pub come: Semaphore,
    /// Those that may go on.
    pub gate: Semaphore,
    /// Claims that fail.
    pub failures: Semaphore,
    /// Whether all keys are held.
    pub busy: AtomicBool,
    /// How many bytes of payload each insertion had.
    pub sizes: Mutex<Vec<usize>>,
}

impl<S> Hindered<S> {
    pub fn new(store: S, gate: usize) -> Self {
        let [come, gate, failures] = [0, gate, 0].map(Semaphore::new);
        let (busy, sizes) = (AtomicBool::new(false), Mutex::default());
        Self { store, hindrance: Arc::new(Hindrance { come, gate, failures, busy, sizes }) }
    }
}

impl<S: Store> Calls for Hindered<S> {
    forward_the_rest!(as_it_is);

    forward! { as_it_is:
        leave(node: NodeId) -> ();
        join(old: Option<NodeId>, keep: &[Keep], liveness: Duration) -> Joined;
    }

    async fn claim(
        &self,
        node: NodeId,
        window: Duration,
        rooms: &[(Arc<str>, usize)],
    ) -> Result<Vec<Claimed>, StoreError> {
        match self.hindrance.failures.try_acquire() {
            Ok(failure) => {
                failure.forget();
                Err(StoreError::new("claim", "as the test wants").undone())
            }
            Err(_) => self.store.claim(node, window, rooms).await,
        }
    }

    async fn stored(&self, _: &[JobId]) -> Result<Vec<(JobId, bool)>, StoreError> {
        std::future::pending().await
    }

    async fn insert(
        &self,
        node: Option<NodeId>,
        window: Duration,
        jobs: &[Insert],
    ) -> Result<Vec<Insertion>, StoreError> {
        let size = jobs.iter().map(|insert| insert.job.payload.len()).sum();
        self.hindrance.sizes.lock().unwrap().push(size);
        if self.hindrance.busy.load(SeqCst) {
            return Ok(jobs.iter().map(|_| Insertion::Busy).collect());
        }
        let answer = self.store.insert(node, window, jobs).await;
        self.hindrance.come.add_permits(1);
        self.hindrance.gate.acquire().await.unwrap().forget();
        answer
    }

    async fn listen(&self, notices: UnboundedSender<Notice>) {
        self.store.listen(notices).await;
    }
}
