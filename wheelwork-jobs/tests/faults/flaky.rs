//! Stores that are around another one: one whose calls fail at random, before they have done anything or after
//! they have done all of it, one that tells nothing, and one that panics.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use wheelwork_jobs::store::{
    Beat, Cancelled, Claim, Claimed, ClaimedLimited, End, Finished, InTransaction, Insert,
    Insertion, Joined, Kept, KindLimits, NodeId, Notice, Removed, Replaced, Started, Store,
};
use wheelwork_jobs::{
    Filter, Glance, JobId, KindStats, NewJob, Peek, Progress, Reading, StoreError, StoredJob,
    Timestamp, When,
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

impl<S: Store> Store for Flaky<S> {
    type Transaction<'t> = S::Transaction<'t>;

    async fn prepare(&self) -> Result<(), StoreError> {
        self.store.prepare().await
    }

    const VERSION: u32 = S::VERSION;

    async fn version(&self) -> Result<u32, StoreError> {
        self.store.version().await
    }

    async fn clock(&self) -> Result<Reading, StoreError> {
        self.store.clock().await
    }

    async fn join(
        &self,
        old: Option<NodeId>,
        keep: &[Claim],
        liveness: Duration,
    ) -> Result<Joined, StoreError> {
        let join = self.store.join(old, keep, liveness);
        // The first one must succeed: without it there is no node.
        if old.is_none() || !self.join_answers_get_lost { join.await } else { flaky(join).await }
    }

    async fn claim_limited(
        &self,
        node: NodeId,
        window: Duration,
        kind: &Arc<str>,
        room: usize,
        limits: KindLimits,
    ) -> Result<ClaimedLimited, StoreError> {
        flaky(self.store.claim_limited(node, window, kind, room, limits)).await
    }

    async fn set_paused(&self, kind: &str, paused: bool) -> Result<bool, StoreError> {
        flaky(self.store.set_paused(kind, paused)).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.store.leave(node).await
    }

    async fn beat(
        &self,
        node: NodeId,
        liveness: Duration,
        kinds: &[Arc<str>],
    ) -> Result<Beat, StoreError> {
        flaky(self.store.beat(node, liveness, kinds)).await
    }

    async fn take_over(&self) -> Result<u64, StoreError> {
        flaky(self.store.take_over()).await
    }

    async fn insert(
        &self,
        node: Option<NodeId>,
        window: Duration,
        jobs: &[Insert],
    ) -> Result<Vec<Insertion>, StoreError> {
        flaky(self.store.insert(node, window, jobs)).await
    }

    async fn claim(
        &self,
        node: NodeId,
        window: Duration,
        rooms: &[(Arc<str>, usize)],
    ) -> Result<Vec<Claimed>, StoreError> {
        flaky(self.store.claim(node, window, rooms)).await
    }

    async fn holding(&self, node: NodeId, claims: &[Claim]) -> Result<Vec<Claim>, StoreError> {
        flaky(self.store.holding(node, claims)).await
    }

    async fn start(&self, node: NodeId, claims: &[Claim]) -> Result<Vec<Started>, StoreError> {
        flaky(self.store.start(node, claims)).await
    }

    async fn finish(&self, ends: &[End]) -> Result<Vec<Finished>, StoreError> {
        flaky(self.store.finish(ends)).await
    }

    async fn report(&self, reports: &[(Claim, Progress)]) -> Result<(), StoreError> {
        flaky(self.store.report(reports)).await
    }

    async fn prune_done(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        flaky(self.store.prune_done(before, most)).await
    }

    async fn forget_done(&self, most: usize) -> Result<usize, StoreError> {
        flaky(self.store.forget_done(most)).await
    }

    async fn unmark(&self, most: usize) -> Result<usize, StoreError> {
        flaky(self.store.unmark(most)).await
    }

    fn complete_kept_in<'a>(
        &'a self,
        transaction: &'a Self::Transaction<'_>,
        claim: Claim,
        kept: &'a Kept,
    ) -> InTransaction<'a, Result<bool, StoreError>> {
        self.store.complete_kept_in(transaction, claim, kept)
    }

    async fn glance(&self) -> Result<Glance, StoreError> {
        self.store.glance().await
    }

    async fn peek(&self, peek: &Peek) -> Result<Vec<StoredJob>, StoreError> {
        self.store.peek(peek).await
    }

    async fn cancel(&self, id: JobId, me: Option<NodeId>) -> Result<Option<Cancelled>, StoreError> {
        flaky(self.store.cancel(id, me)).await
    }

    async fn revoked(
        &self,
        claims: &[(NodeId, Claim)],
    ) -> Result<Vec<(NodeId, Claim)>, StoreError> {
        flaky(self.store.revoked(claims)).await
    }

    async fn acknowledge(&self, node: NodeId, claims: &[Claim]) -> Result<(), StoreError> {
        flaky(self.store.acknowledge(node, claims)).await
    }

    async fn reschedule(
        &self,
        id: JobId,
        when: When,
        window: Duration,
        dead: bool,
        from: Option<Timestamp>,
        me: Option<NodeId>,
    ) -> Result<Option<Removed>, StoreError> {
        flaky(self.store.reschedule(id, when, window, dead, from, me)).await
    }

    fn insert_in<'a>(
        &'a self,
        transaction: &'a Self::Transaction<'_>,
        window: Duration,
        job: &'a NewJob,
    ) -> InTransaction<'a, Result<Insertion, StoreError>> {
        self.store.insert_in(transaction, window, job)
    }

    fn complete_in<'a>(
        &'a self,
        transaction: &'a Self::Transaction<'_>,
        claim: Claim,
    ) -> InTransaction<'a, Result<bool, StoreError>> {
        self.store.complete_in(transaction, claim)
    }

    fn repeat_in<'a>(
        &'a self,
        transaction: &'a Self::Transaction<'_>,
        window: Duration,
        claim: Claim,
        due: Timestamp,
    ) -> InTransaction<'a, Result<bool, StoreError>> {
        self.store.repeat_in(transaction, window, claim, due)
    }

    async fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        self.store.get(id).await
    }

    async fn find(&self, key: &str) -> Result<Option<StoredJob>, StoreError> {
        self.store.find(key).await
    }

    async fn replace(
        &self,
        window: Duration,
        job: &NewJob,
        me: Option<NodeId>,
    ) -> Result<Replaced, StoreError> {
        flaky(self.store.replace(window, job, me)).await
    }

    async fn prune(
        &self,
        kind: Option<&str>,
        before: Timestamp,
        most: usize,
    ) -> Result<usize, StoreError> {
        flaky(self.store.prune(kind, before, most)).await
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<StoredJob>, StoreError> {
        self.store.list(filter).await
    }

    async fn stored(&self, ids: &[JobId]) -> Result<Vec<(JobId, bool)>, StoreError> {
        flaky(self.store.stored(ids)).await
    }

    async fn stats(&self) -> Result<Vec<KindStats>, StoreError> {
        self.store.stats().await
    }

    async fn tend(&self) {
        self.store.tend().await;
    }

    async fn listen(&self, notices: UnboundedSender<Notice>) {
        self.store.listen(notices).await;
    }
}

/// Calls that go to the store inside.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(async fn $name(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
            self.store.$name($($argument),*).await
        })*
    };
}

/// All calls but those that the stores below have for themselves.
macro_rules! forward_the_rest {
    () => {
        type Transaction<'t> = S::Transaction<'t>;
        const VERSION: u32 = S::VERSION;

        forward! {
            prepare() -> ();
            version() -> u32;
            clock() -> Reading;
            join(old: Option<NodeId>, keep: &[Claim], liveness: Duration) -> Joined;
            leave(node: NodeId) -> ();
            beat(node: NodeId, liveness: Duration, kinds: &[Arc<str>]) -> Beat;
            take_over() -> u64;
            insert(node: Option<NodeId>, window: Duration, jobs: &[Insert]) -> Vec<Insertion>;
            holding(node: NodeId, claims: &[Claim]) -> Vec<Claim>;
            start(node: NodeId, claims: &[Claim]) -> Vec<Started>;
            finish(ends: &[End]) -> Vec<Finished>;
            cancel(id: JobId, me: Option<NodeId>) -> Option<Cancelled>;
            reschedule(
                id: JobId, when: When, window: Duration, dead: bool, from: Option<Timestamp>, me: Option<NodeId>
            ) -> Option<Removed>;
            revoked(claims: &[(NodeId, Claim)]) -> Vec<(NodeId, Claim)>;
            acknowledge(node: NodeId, claims: &[Claim]) -> ();
            get(id: JobId) -> Option<StoredJob>;
            stored(ids: &[JobId]) -> Vec<(JobId, bool)>;
            find(key: &str) -> Option<StoredJob>;
            replace(window: Duration, job: &NewJob, me: Option<NodeId>) -> Replaced;
            prune(kind: Option<&str>, before: Timestamp, most: usize) -> usize;
            list(filter: &Filter) -> Vec<StoredJob>;
            stats() -> Vec<KindStats>;
            claim_limited(
                node: NodeId, window: Duration, kind: &Arc<str>, room: usize, limits: KindLimits
            ) -> ClaimedLimited;
            set_paused(kind: &str, paused: bool) -> bool;
            report(reports: &[(Claim, Progress)]) -> ();
            prune_done(before: Timestamp, most: usize) -> usize;
            forget_done(most: usize) -> usize;
            unmark(most: usize) -> usize;
            glance() -> Glance;
            peek(peek: &Peek) -> Vec<StoredJob>;
        }

        async fn tend(&self) {
            self.store.tend().await;
        }

        fn insert_in<'a>(
            &'a self,
            transaction: &'a Self::Transaction<'_>,
            window: Duration,
            job: &'a NewJob,
        ) -> InTransaction<'a, Result<Insertion, StoreError>> {
            self.store.insert_in(transaction, window, job)
        }

        fn complete_kept_in<'a>(
            &'a self,
            transaction: &'a Self::Transaction<'_>,
            claim: Claim,
            kept: &'a Kept,
        ) -> InTransaction<'a, Result<bool, StoreError>> {
            self.store.complete_kept_in(transaction, claim, kept)
        }

        fn complete_in<'a>(
            &'a self,
            transaction: &'a Self::Transaction<'_>,
            claim: Claim,
        ) -> InTransaction<'a, Result<bool, StoreError>> {
            self.store.complete_in(transaction, claim)
        }

        fn repeat_in<'a>(
            &'a self,
            transaction: &'a Self::Transaction<'_>,
            window: Duration,
            claim: Claim,
            due: Timestamp,
        ) -> InTransaction<'a, Result<bool, StoreError>> {
            self.store.repeat_in(transaction, window, claim, due)
        }
    };
}

/// Tells nothing.
#[derive(Clone)]
pub struct Silent<S> {
    pub store: S,
}

impl<S: Store> Store for Silent<S> {
    forward_the_rest!();
    forward! { claim(node: NodeId, window: Duration, rooms: &[(Arc<str>, usize)]) -> Vec<Claimed>; }

    async fn listen(&self, _: UnboundedSender<Notice>) {
        std::future::pending().await
    }
}

/// Panics when it should claim.
pub struct Broken<S> {
    pub store: S,
}

impl<S: Store> Store for Broken<S> {
    forward_the_rest!();

    async fn claim(
        &self,
        _: NodeId,
        _: Duration,
        _: &[(Arc<str>, usize)],
    ) -> Result<Vec<Claimed>, StoreError> {
        panic!("as the test wants")
    }

    async fn listen(&self, notices: UnboundedSender<Notice>) {
        self.store.listen(notices).await;
    }
}
