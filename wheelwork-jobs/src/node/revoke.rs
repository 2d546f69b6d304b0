//! Claims that were revoked: the job was cancelled or moved, and its owner may not know yet.
//!
//! A handler that is called after a cancel has returned true would break the promise of `cancel`. So the call
//! returns when the owner cannot begin the job any more, whatever becomes of notices, networks and processes:
//!
//! | who | believes what |
//! |---|---|
//! | the store | from the statement that cancels on, the claim is *revoked*, until its owner acknowledges that, or has ended |
//! | the owner | it hears of it by a notice, which it does not believe before it has asked for the row, or by an answer: that prolongs its life, or tells of the claim as a run begins or ends, or after lost notices. It drops the job, and then acknowledges. It begins no job after the end of its lease |
//! | the caller | it asks the store until the claim is not revoked any more, or its owner has ended |
//!
//! An owner that cannot be reached ends when its life lapses, and its lease lapses before that. A node that takes a
//! new number begins meanwhile only what the store confirms under the new one. So a caller waits a few milliseconds if
//! the owner gets the notice, else until the owner's next beat, and at most for the owner's liveness.

use super::{Node, lock, until};
use crate::host;
use crate::job::JobId;
use crate::store::{Claim, NodeId, Removed, Result, Store, StoreError};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// So many claims go in one call.
const BATCH: usize = 1_000;

/// Between two questions about a claim: a quarter of the time since the first one, within this.
const PAUSE: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));

/// After a question that had no answer.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// After this time without an answer, the caller is told.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Default)]
pub(super) struct Revocations {
    /// What notices say of claims of this node.
    suspects: Mutex<HashSet<Claim>>,
    more_suspects: Notify,
    /// Revoked claims of others, whose end somebody waits for.
    waits: Mutex<Vec<Wait>>,
    more_waits: Notify,
    /// Those of this node that it has dropped, with the numbers that it had.
    dropped: Mutex<Vec<(NodeId, Claim)>>,
    more_dropped: Notify,
}

/// Somebody waits until a job cannot begin any more.
struct Wait {
    claim: (NodeId, Claim),
    since: Instant,
    ask_at: Instant,
    fails_since: Option<Instant>,
    over: oneshot::Sender<Result<()>>,
}

impl Revocations {
    /// Those to ask about now. Nobody waits any more for what its caller has given up.
    fn due(&self) -> Vec<(NodeId, Claim)> {
        let now = host::now();
        let mut waits = lock(&self.waits);
        waits.retain(|wait| !wait.over.is_closed());
        let due = waits.iter().filter(|wait| wait.ask_at <= now);
        due.take(BATCH).map(|wait| wait.claim).collect()
    }

    fn next(&self) -> Option<Instant> {
        lock(&self.waits).iter().map(|wait| wait.ask_at).min()
    }

    /// Those that were asked about are over, apart from those that are still revoked.
    fn asked(&self, asked: &[(NodeId, Claim)], revoked: &[(NodeId, Claim)]) {
        let asked: HashSet<_> = asked.iter().collect();
        let revoked: HashSet<_> = revoked.iter().collect();
        let now = host::now();
        let is_over =
            |wait: &mut Wait| asked.contains(&wait.claim) && !revoked.contains(&wait.claim);
        let mut waits = lock(&self.waits);
        let over: Vec<_> = waits.extract_if(.., is_over).collect();
        for wait in waits.iter_mut().filter(|wait| asked.contains(&wait.claim)) {
            wait.fails_since = None;
            wait.ask_at = now + ((now - wait.since) / 4).clamp(PAUSE.0, PAUSE.1);
        }
        drop(waits);
        over.into_iter().for_each(|wait| _ = wait.over.send(Ok(())));
    }

    fn failed(&self, asked: &[(NodeId, Claim)], error: &StoreError) {
        let asked: HashSet<_> = asked.iter().collect();
        let now = host::now();
        let mut waits = lock(&self.waits);
        for wait in waits.iter_mut().filter(|wait| asked.contains(&wait.claim)) {
            wait.fails_since.get_or_insert(now);
            wait.ask_at = now + AFTER_ERROR;
        }
        let is_over = |wait: &mut Wait| wait.fails_since.is_some_and(|at| now >= at + PATIENCE);
        for wait in waits.extract_if(.., is_over) {
            let _ = wait.over.send(Err(unknown(error.to_string())));
        }
    }
}

fn unknown(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::new("learn whether the job's node has heard of it", why)
}

/// Asks for ever about revoked claims that somebody waits for.
pub(super) async fn look<S: Store>(node: Arc<Node<S>>) {
    let revocations = &node.revocations;
    loop {
        tokio::select! {
            biased;
            () = revocations.more_waits.notified() => {}
            () = until(revocations.next()) => {}
        }
        let due = revocations.due();
        if due.is_empty() {
            continue;
        }
        match node.store.revoked(&due).await {
            Ok(revoked) => revocations.asked(&due, &revoked),
            Err(error) => {
                node.note_error(&error);
                revocations.failed(&due, &error);
            }
        }
    }
}

/// Asks for ever whether claims hold that a notice says were taken away. After an error, the next beat finds those that
/// were revoked.
pub(super) async fn ask<S: Store>(node: Arc<Node<S>>) {
    let revocations = &node.revocations;
    loop {
        let mut suspects: Vec<Claim> = lock(&revocations.suspects).drain().collect();
        if suspects.is_empty() {
            revocations.more_suspects.notified().await;
            continue;
        }
        suspects.sort_unstable();
        let (held, mut unknown): (Vec<_>, Vec<_>) =
            suspects.into_iter().partition(|claim| node.is_held(*claim));
        node.drop_lost(&held).await;
        if !unknown.is_empty() {
            // Those that are just being claimed do not hold before. One that does not come is a guess about a later
            // claim, which nobody has taken away, or a beat tells of it.
            node.claims_answered().await;
            unknown.retain(|claim| node.is_held(*claim));
            node.drop_lost(&unknown).await;
        }
    }
}

/// Acknowledges for ever what this node has dropped. After an error, the next beat finds the same claims again.
pub(super) async fn acknowledge<S: Store>(node: Arc<Node<S>>) {
    let revocations = &node.revocations;
    loop {
        let mut dropped = std::mem::take(&mut *lock(&revocations.dropped));
        let Some(&(number, _)) = dropped.first() else {
            revocations.more_dropped.notified().await;
            continue;
        };
        // The node may have changed its number.
        let (mine, others): (Vec<_>, Vec<_>) =
            dropped.drain(..).partition(|(owner, _)| *owner == number);
        lock(&revocations.dropped).extend(others);
        let mut claims: Vec<Claim> = mine.into_iter().map(|(_, claim)| claim).collect();
        claims.sort_unstable();
        claims.dedup();
        for batch in claims.chunks(BATCH) {
            if let Err(error) = node.store.acknowledge(number, batch).await {
                node.note_error(&error);
            }
        }
    }
}

impl<S: Store> Node<S> {
    /// Drops those of the claims that do not hold any more.
    async fn drop_lost(&self, claims: &[Claim]) {
        for batch in claims.chunks(BATCH) {
            // Held meanwhile: the claims belong to this number.
            let me = self.settled_number().await;
            let Some(number) = *me else { return };
            match self.store.holding(number, batch).await {
                Ok(holding) => self.revoke_all_but(number, batch, &holding),
                Err(error) => self.note_error(&error),
            }
        }
    }

    /// A notice says that a claim was taken away. The node may have a new number since.
    pub(super) fn suspect(&self, owner: NodeId, claim: Claim) {
        if self.me() == Some(owner) || self.is_held(claim) {
            lock(&self.revocations.suspects).insert(claim);
            self.revocations.more_suspects.notify_one();
        }
        // Its place is free at once, but its owner has no room while the handler runs on.
        if self.handlers.iter().any(|handler| handler.kind.is_limited()) {
            self.look.notify_one();
        }
    }

    /// Revokes those of the claims that do not hold any more, by an answer of the store.
    pub(super) fn revoke_all_but(&self, number: NodeId, claims: &[Claim], holding: &[Claim]) {
        let holding: HashSet<_> = holding.iter().collect();
        let lost = claims.iter().filter(|claim| !holding.contains(claim));
        lost.for_each(|claim| self.revoke(number, *claim));
    }

    /// A claim was revoked. Only its owner acknowledges that: the number says whether it is this node.
    pub(super) fn revoke(&self, owner: NodeId, claim: Claim) {
        self.drop_claim(claim);
        if self.me() == Some(owner) {
            lock(&self.revocations.dropped).push((owner, claim));
            self.revocations.more_dropped.notify_one();
        }
    }

    /// Returns when nobody can begin any more a job that was cancelled or moved. If this node holds it, it is dropped.
    pub(crate) async fn settle(&self, id: JobId, removed: Removed) -> Result<()> {
        let Removed { owner: Some((owner, epoch)), revoked } = removed else { return Ok(()) };
        let claim = Claim { id, epoch };
        self.drop_claim(claim);
        if !revoked {
            return Ok(());
        }
        let (over, waits) = oneshot::channel();
        let (claim, since) = ((owner, claim), host::now());
        let ask_at = since + PAUSE.0;
        lock(&self.revocations.waits).push(Wait { claim, since, ask_at, fails_since: None, over });
        self.revocations.more_waits.notify_one();
        tokio::select! {
            biased;
            answer = waits => answer.unwrap_or_else(|_| Err(unknown("the jobs were stopped"))),
            () = self.ended.cancelled() => Err(unknown("the jobs were stopped")),
        }
    }
}
